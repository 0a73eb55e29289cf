"""The one place that reads ``settings.JOBKIT``."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

SETTING: Final = "JOBKIT"
DEFAULT_ALIAS: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class KitSettings:
    """The settings of one alias: each field is the lower-cased name of a setting, with its default.

    Dotted paths stand as they were given; `kit` imports them.
    """

    alias: str
    storage: str = "default"
    """Alias in STORAGES."""
    prefix: str = "jobs"
    """Pseudo-directory that holds one directory per job."""
    status_class: str = "django_jobkit.jobs.JobStatus"
    cache: str | None = "default"
    """Alias in CACHES, or None to go without."""
    metadata_ttl: float = 600
    """Seconds for which a finished job's row is kept."""
    list_ttl: float = 60
    """Seconds for which the list of IDs is kept."""
    cache_retry: float = 5
    """Seconds for which a cache that failed is left alone."""
    per_page: int = 20
    max_per_page: int = 200
    """The most rows that a reader may ask for."""
    search_limit: int = 500
    """How many jobs' files a filter reads, at most, where their IDs don't tell."""
    concurrency: int = 10
    """How many files are read at a time."""
    timeout: float = 10
    """Seconds that a storage call, or a page's reading, may take, retries included."""
    sort_key: str | None = "django_jobkit.jobs.ids.sort_key"
    load: str | None = None
    """Dotted path to a function ``load(job_id)`` that makes the history's rows, or None for the statuses."""
    retry: str | None = None
    """Dotted path to a function ``retry(job_id, status, request)`` that submits a job anew, and returns its new ID."""
    lease: float | None = None
    """Seconds for which a worker that gives no sign of life keeps its job, or None for no leases."""
    queued_warning: float | None = 3600
    """Seconds after which a job that is still queued is shown as doubtful, or None for never."""
    progress_interval: float = 1
    """The least seconds between two records of a running job's progress."""
    access: str = "django_jobkit.access.StaffAccess"


class Problem(NamedTuple):
    """Something wrong with a setting: which, what, and what to do."""

    setting: str
    message: str
    hint: str


_POSITIVE: Final = {
    "metadata_ttl",
    "list_ttl",
    "cache_retry",
    "timeout",
    "lease",
    "progress_interval",
    "queued_warning",
}
_COUNTS: Final = {"per_page", "max_per_page", "search_limit", "concurrency"}
_OPTIONAL: Final = {"cache", "sort_key", "load", "retry", "lease", "queued_warning"}
_NAMES: Final = {field.name.upper() for field in fields(KitSettings)} - {"ALIAS"}


def problems() -> list[Problem]:
    """What is wrong with JOBKIT, as far as it can be told without importing or opening anything."""
    raw = getattr(settings, SETTING, {})
    if not isinstance(raw, Mapping):
        return [Problem(SETTING, f"JOBKIT is a dict of aliases, not {type(raw).__name__}.", 'JOBKIT = {"default": {}}')]
    found = []
    for alias, options in raw.items():
        where = f"JOBKIT[{alias!r}]"
        if not isinstance(options, Mapping):
            hint = f'Write the settings of an alias as in JOBKIT = {{"default": {{"{str(alias).upper()}": ...}}}}.'
            found.append(Problem(where, f"{where} is a dict of settings, not {type(options).__name__}.", hint))
            continue
        found += _problems_of(where, options)
    return found


def _problems_of(where: str, options: Mapping[Any, Any]) -> list[Problem]:
    return [problem for name, value in options.items() if (problem := _problem_of(where, name, value))]


def _problem_of(where: str, name: Any, value: Any) -> Problem | None:
    setting = f"{where}[{name!r}]"
    if name not in _NAMES:
        close = difflib.get_close_matches(str(name).upper(), _NAMES, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"The settings are {', '.join(sorted(_NAMES))}."
        return Problem(setting, f"{setting} is no setting of django_jobkit.", hint)
    field = name.lower()
    if value is None and field in _OPTIONAL:
        return None
    if field in _COUNTS:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            return Problem(setting, f"{setting} is {value!r}.", "Set a whole number of 1 or more.")
    elif field in _POSITIVE:
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
            optional = " or None" if field in _OPTIONAL else ""
            return Problem(setting, f"{setting} is {value!r}.", f"Set a number of seconds above 0{optional}.")
    elif not isinstance(value, str) or not value.strip(" /"):
        return Problem(setting, f"{setting} is {value!r}.", "Set a text that isn't empty.")
    elif field == "prefix" and (".." in value.split("/") or "\\" in value):
        return Problem(setting, f"{setting} is {value!r}.", "Set a path below the storage's root, as in 'jobs'.")
    return None


def aliases() -> list[str]:
    """The aliases that are configured; just ``default`` where there is no JOBKIT setting."""
    raw = getattr(settings, SETTING, None) or {}
    return list(raw) if isinstance(raw, Mapping) and raw else [DEFAULT_ALIAS]


def get(alias: str = DEFAULT_ALIAS) -> KitSettings:
    """The settings of one alias, read on first use.

    Raises ImproperlyConfigured, naming the setting, if anything in JOBKIT is wrong or there is no such alias.
    """
    with _lock:
        if (found := _read.get(alias)) is None:
            found = _read[alias] = _settings_of(alias)
        return found


def changed(alias: str, options: Mapping[str, Any]) -> KitSettings:
    """The settings of an alias with these in place of the site's own; the alias needn't be the site's.

    Raises ImproperlyConfigured as `get` does. Changes nothing: see `django_jobkit.testing`.
    """
    _raise_if_any(_problems_of(f"{SETTING}[{alias!r}]", options))
    site = get(alias) if alias in aliases() else KitSettings(alias=alias)
    return replace(site, **{name.lower(): value for name, value in options.items()})


def _raise_if_any(wrong: list[Problem]) -> None:
    if wrong:
        raise ImproperlyConfigured(" ".join(f"{problem.message} {problem.hint}" for problem in wrong))


def _settings_of(alias: str) -> KitSettings:
    _raise_if_any(problems())
    if alias not in aliases():
        raise ImproperlyConfigured(
            f"There is no JOBKIT[{alias!r}]; add it to settings.JOBKIT, which has {', '.join(map(repr, aliases()))}."
        )
    options = (getattr(settings, SETTING, None) or {}).get(alias, {})
    return KitSettings(alias=alias, **{name.lower(): value for name, value in options.items()})


_read: dict[str, KitSettings] = {}
_lock = threading.Lock()


def _forget(*, setting: str, **_: Any) -> None:
    if setting == SETTING:
        with _lock:
            _read.clear()


setting_changed.connect(_forget, dispatch_uid="django_jobkit.conf")
