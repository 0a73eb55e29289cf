"""Tries what system checks can't know: does this site's storage and cache do what the kit needs of them?

Each check yields findings in plain sentences; `jobkit_doctor` prints them. Everything is tried on a probe directory
and probe keys of its own, which are removed afterwards.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from django.conf import settings
from django.core.cache import caches
from django.utils import timezone

from . import checks
from .exceptions import JobKitError, StorageMisconfigured, VersionConflict
from .jobs.files import ABSENT
from .kit import JobKit

MOST_CLOCK_DIFFERENCE: Final = timedelta(seconds=5)
"""Leases and histories of several machines are compared by their clocks; a storage tells times to the second."""

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: ``advice`` is empty where there is nothing to do."""

    level: Level
    what: str
    advice: str = ""


def examine(kit: JobKit) -> Iterator[Finding]:
    """All findings about one kit, as they are made. Raises nothing that a storage or a cache raises."""
    yield from _settings()
    yield from _storage(kit)
    yield from _cache(kit)


def _settings() -> Iterator[Finding]:
    found = [message for message in checks.check_settings() if not message.is_silenced()]
    if not found:
        yield Finding("ok", "settings: nothing to say against them")
    for message in found:
        yield Finding("error" if message.is_serious() else "warning", f"settings: {message.msg}", message.hint or "")


# --- storage ----------------------------------------------------------------------------------------------------


def _storage(kit: JobKit) -> Iterator[Finding]:
    probe = f"{kit.prefix}/jobkit-doctor-{secrets.token_hex(6)}"
    place = f"storage {kit.settings.storage!r}, {kit.prefix}/"
    try:
        storage = kit.storage
    except Exception as error:  # whatever a third-party storage raises while it is made
        yield Finding("error", f"{place}: can't be opened: {error}", "Mend its entry in STORAGES.")
        return
    name = f"{probe}/status.json"
    steps: list[tuple[str, Callable[[], str | None]]] = [
        ("write", lambda: _expect(storage.write(name, b'{"probe":1}') != "", "gave no version")),
        ("read back", lambda: _expect(storage.read(name).data == b'{"probe":1}', "other bytes than were written")),
        ("overwrite", lambda: _overwrite(kit, name)),
        ("write on a condition", lambda: _swap(kit, name)),
        ("list", lambda: _expect(probe.rpartition("/")[2] in storage.list_dirs(kit.prefix), "the job isn't listed")),
    ]
    try:
        for step, attempt in steps:
            finding = _try(f"{place}: {step}", attempt)
            yield finding
            if finding.level == "error" and step in ("write", "read back"):
                return
        yield _clock(kit, name)
    finally:
        yield _try(f"{place}: delete", lambda: _delete(kit, probe))


def _try(what: str, attempt: Callable[[], str | None]) -> Finding:
    try:
        wrong = attempt()
    except StorageMisconfigured as error:
        return Finding("error", f"{what}: {error}", "Mend the storage's entry in STORAGES, or what it names.")
    except JobKitError as error:
        return Finding(
            "error", f"{what}: {error}", "See that the place exists, can be reached, and that this site may do this."
        )
    except FileNotFoundError:
        return Finding("error", f"{what}: the file isn't there", "The storage loses or hides what was just written.")
    if wrong is None:
        return Finding("ok", what)
    return Finding("warning" if wrong.startswith("can't be made safe") else "error", f"{what}: {wrong}", _advice(wrong))


def _expect(right: bool, wrong: str) -> str | None:
    return None if right else wrong


def _advice(wrong: str) -> str:
    if wrong.startswith("can't be made safe"):
        return "Use local files, Google Cloud Storage or S3, or have each job recorded by one worker at a time."
    return "Use another storage, or see what stands between this site and it (a cache, a proxy, versioning)."


def _overwrite(kit: JobKit, name: str) -> str | None:
    kit.storage.write(name, b'{"probe":2}')
    return _expect(kit.storage.read(name).data == b'{"probe":2}', "the old bytes are still there")


def _swap(kit: JobKit, name: str) -> str | None:
    stale = kit.storage.read(name).version
    kit.storage.write(name, b'{"probe":3}', if_version=stale)
    for condition in (stale, ABSENT):
        try:
            kit.storage.write(name, b'{"probe":4}', if_version=condition)
        except VersionConflict:
            continue
        return "a write on a condition that isn't met goes through"
    if not kit.storage.atomic_swap:
        return "can't be made safe against other processes with this storage"
    return None


def _clock(kit: JobKit, name: str) -> Finding:
    what = f"storage {kit.settings.storage!r}: clock"
    try:
        kit.storage.write(name, b'{"probe":5}')
        now = datetime.now(UTC)
        modified = kit.django_storage.get_modified_time(name)
        if timezone.is_naive(modified):
            modified = timezone.make_aware(modified)
    except Exception as error:  # not every storage can tell, and each says so in its own way
        return Finding("ok", f"{what}: the storage can't tell its time ({type(error).__name__})")
    difference = abs(modified - now)
    if difference > MOST_CLOCK_DIFFERENCE:
        return Finding(
            "error",
            f"{what}: {difference.total_seconds():.0f} s apart from this machine's",
            "Set this machine's clock by NTP: leases and the order of the history depend on it.",
        )
    return Finding("ok", f"{what}: agrees with this machine's")


def _delete(kit: JobKit, probe: str) -> str | None:
    kit.storage.delete_tree(probe)
    left = probe.rpartition("/")[2] in kit.storage.list_dirs(kit.prefix)
    return _expect(not left, f"{probe} is still listed")


# --- cache ------------------------------------------------------------------------------------------------------


def _cache(kit: JobKit) -> Iterator[Finding]:
    alias = kit.settings.cache
    if alias is None:
        yield Finding("ok", "cache: none; every page is read from the storage")
        return
    key = f"jobkit:doctor:{secrets.token_hex(6)}"
    what = f"cache {alias!r}"
    try:
        caches[alias].set(key, "1", 60)
        if caches[alias].get(key) != "1":
            yield Finding("error", f"{what}: doesn't keep what is set", "Set CACHE to None, or use a cache that does.")
            return
        yield Finding("ok", f"{what}: set and get")
        yield _atomicity(alias, what, key)
        yield _visibility(alias, what, key)
        caches[alias].delete(key)
    except Exception as error:  # what a cache raises depends on its backend
        yield Finding(
            "error",
            f"{what}: {type(error).__name__}: {error}",
            "Start its server, or mend LOCATION. Pages work without it, but each then lists all jobs.",
        )


def _atomicity(alias: str, what: str, key: str) -> Finding:
    def add(name: str) -> bool:
        return bool(caches[alias].add(name, "1", 60))

    names = [f"{key}:{n}" for n in range(25)]
    with ThreadPoolExecutor(8) as pool:
        winners = [sum(pool.map(add, [name] * 8)) for name in names]
    caches[alias].delete_many(names)
    if winners != [1] * len(names):
        return Finding(
            "warning",
            f"{what}: add() isn't atomic",
            "Several processes may list all jobs at once. Use a cache server such as Redis.",
        )
    return Finding("ok", f"{what}: add() is atomic")


_SET_IN_ANOTHER_PROCESS: Final = (
    "import sys, django; django.setup(); from django.core.cache import caches; "
    "caches[sys.argv[1]].set(sys.argv[2], 'other', 60)"
)


def _visibility(alias: str, what: str, key: str) -> Finding:
    environment = {"DJANGO_SETTINGS_MODULE": str(settings.SETTINGS_MODULE)} | os.environ
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    other = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _SET_IN_ANOTHER_PROCESS, alias, key],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if other.returncode:
        reason = other.stderr.strip().rpartition("\n")[2]
        return Finding(
            "warning", f"{what}: can't be tried from another process: {reason}", "Set DJANGO_SETTINGS_MODULE."
        )
    if caches[alias].get(key) != "other":
        return Finding(
            "warning",
            f"{what}: what one process sets, others don't see",
            "Jobs deleted or finished in one process show up as they were in others until the TTL ends. "
            "Use a cache server such as Redis, or set CACHE to None.",
        )
    return Finding("ok", f"{what}: seen by other processes")
