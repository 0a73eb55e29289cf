from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.storage import FileSystemStorage, InMemoryStorage
from django.core.management import CommandError, call_command
from django.test import override_settings

from django_jobkit.doctor import examine
from django_jobkit.kit import JobKit

LOCMEM = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "doctor"}


class Forgetful(InMemoryStorage):
    """Answers, and never changes what it holds."""

    def _save(self, name, content):
        return name if self.exists(name) else super()._save(name, content)

    def get_available_name(self, name, max_length=None):
        return name


class WrongClock(FileSystemStorage):
    def get_modified_time(self, name):
        return datetime.now(UTC) + timedelta(minutes=3)


class Timeless(FileSystemStorage):
    def get_modified_time(self, name):
        raise NotImplementedError


def site(storage="django.core.files.storage.FileSystemStorage", location="", cache=None, **kit):
    options = {"location": str(location)} if location else {}
    return override_settings(
        JOBKIT={"default": {"CACHE": "default" if cache else None} | kit},
        STORAGES={"default": {"BACKEND": storage, "OPTIONS": options}},
        CACHES={"default": cache or LOCMEM},
    )


def findings():
    return list(examine(JobKit("default")))


def test_a_sound_site_has_one_line_per_check_and_keeps_nothing_of_the_probe(tmp_path):
    with site(location=tmp_path):
        found = findings()
    assert [(finding.level, finding.what, finding.advice) for finding in found] == [
        ("ok", "settings: nothing to say against them", ""),
        ("ok", "storage 'default', jobs/: write", ""),
        ("ok", "storage 'default', jobs/: read back", ""),
        ("ok", "storage 'default', jobs/: overwrite", ""),
        ("ok", "storage 'default', jobs/: write on a condition", ""),
        ("ok", "storage 'default', jobs/: list", ""),
        ("ok", "storage 'default': clock: agrees with this machine's", ""),
        ("ok", "storage 'default', jobs/: delete", ""),
        ("ok", "cache: none; every page is read from the storage", ""),
    ]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert list((tmp_path / "jobs").iterdir()) == []


@pytest.mark.parametrize(
    ("arrange", "level", "what", "advice"),
    [
        (
            lambda path: site(location=path / "file"),
            "error",
            "storage 'default', jobs/: write",
            "See that the place exists",
        ),
        (
            lambda path: site("tests.test_doctor.Forgetful"),
            "error",
            "overwrite: the old bytes are still there",
            "Use another storage",
        ),
        (
            lambda path: site("tests.test_doctor.WrongClock", path),
            "error",
            "clock: 180 s apart from this machine's",
            "NTP",
        ),
        (
            lambda path: site("tests.test_doctor.Timeless", path),
            "ok",
            "clock: the storage can't tell its time (NotImplementedError)",
            "",
        ),
        (
            lambda path: site("tests.nowhere.Storage"),
            "error",
            "can't be opened",
            "STORAGES",
        ),
        (
            lambda path: site(location=path, cache=LOCMEM),
            "warning",
            "cache 'default': what one process sets, others don't see",
            "Redis",
        ),
        (
            lambda path: site(location=path, cache={"BACKEND": "django.core.cache.backends.dummy.DummyCache"}),
            "error",
            "cache 'default': doesn't keep what is set",
            "Set CACHE to None",
        ),
        (
            lambda path: site(
                location=path,
                cache={"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://127.0.0.1:1"},
            ),
            "error",
            "cache 'default': Connection",
            "Start its server",
        ),
        (
            lambda path: site(location=path, cache=LOCMEM, LIST_TTL=60),
            "warning",
            "settings: The cache 'default'",
            "django-redis",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(tmp_path, arrange, level, what, advice):
    (tmp_path / "file").touch()
    with arrange(tmp_path):
        found = [finding for finding in findings() if what in finding.what]
    assert [finding.level for finding in found] == [level]
    assert advice in found[0].advice


def test_the_command_prints_a_line_per_check_and_succeeds(tmp_path):
    out = StringIO()
    with site(location=tmp_path):
        call_command("jobkit_doctor", stdout=out, no_color=True)
    assert "JOBKIT['default']\n  ok       settings: nothing" in out.getvalue()
    assert out.getvalue().endswith("Nothing is wrong.\n")


def test_the_command_fails_when_something_is_wrong(tmp_path):
    out = StringIO()
    with site("tests.test_doctor.WrongClock", tmp_path), pytest.raises(CommandError) as caught:
        call_command("jobkit_doctor", stdout=out, no_color=True)
    assert caught.value.returncode == 1
    assert "  error    storage 'default': clock: 180 s" in out.getvalue()


def test_one_kit_can_be_chosen_and_one_that_is_not_there_is_refused(tmp_path):
    out = StringIO()
    with site(location=tmp_path):
        call_command("jobkit_doctor", "--kit", "default", stdout=out)
        with pytest.raises(CommandError, match=r"no JOBKIT\['comics'\]"):
            call_command("jobkit_doctor", "--kit", "comics", stdout=out)


@pytest.mark.component
def test_a_real_site_with_redis_is_seen_by_other_processes(tmp_path, redis_url):
    environment = os.environ | {"JOBKIT_TEST_LOCATION": str(tmp_path), "JOBKIT_TEST_REDIS": redis_url}
    command = [sys.executable, "-m", "django", "jobkit_doctor", "--settings", "tests.settings_doctor", "--no-color"]
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok       cache 'default': seen by other processes" in done.stdout
    assert "error" not in done.stdout
