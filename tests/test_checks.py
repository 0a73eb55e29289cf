from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.core.checks import run_checks
from django.core.files.storage import FileSystemStorage, InMemoryStorage, Storage
from django.test import override_settings

from django_jobkit.checks import check_settings
from django_jobkit.jobs import Status

MEMORY = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
REDIS = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://127.0.0.1:1"}
BOUNDED = {"SOCKET_TIMEOUT": 0.5, "SOCKET_CONNECT_TIMEOUT": 0.5}
LOCMEM = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}


@dataclass(kw_only=True)
class Bare(Status):
    pass


not_callable = 7


class Renaming(InMemoryStorage):
    file_overwrite = False


class Elsewhere(Storage):
    """Some other storage, of which only Django's methods are known."""


class Failing(FileSystemStorage):
    def __init__(self, **kwargs):
        raise ImportError("No module named 'some_sdk'")


def site(kit=None, storage=MEMORY, cache=None, **others):
    return override_settings(
        JOBKIT={"default": {"CACHE": None if cache is None else "default"} | (kit or {}), **others},
        STORAGES={"default": storage},
        CACHES={"default": cache or LOCMEM},
    )


def test_a_sound_site_has_nothing_to_say():
    with site(cache=REDIS | {"OPTIONS": BOUNDED}):
        assert check_settings() == []


@pytest.mark.parametrize(
    ("settings", "id_", "message", "hint"),
    [
        (site({"PER_PAGE": 0}), "jobkit.E001", "JOBKIT['default']['PER_PAGE'] is 0", "1 or more"),
        (site({"STATUS_CLASS": "tests.nope.X"}), "jobkit.E002", "['STATUS_CLASS'] = 'tests.nope.X' can't be", "class"),
        (site({"STATUS_CLASS": "tests.test_checks.site"}), "jobkit.E002", "no subclass of Status", "class"),
        (site({"ACCESS": "tests.nope.X"}), "jobkit.E002", "['ACCESS'] = 'tests.nope.X' can't be imported", "class"),
        (site({"SORT_KEY": "tests.nope.x"}), "jobkit.E002", "['SORT_KEY'] = 'tests.nope.x' can't be", "function"),
        (site({"RETRY": "tests.nope.x"}), "jobkit.E002", "['RETRY'] = 'tests.nope.x' can't be", "function"),
        (site({"LOAD": "tests.test_checks.not_callable"}), "jobkit.E002", "can't be called", "function"),
        (
            site({"LEASE": 60, "STATUS_CLASS": "tests.test_checks.Bare"}),
            "jobkit.E003",
            "no fields for a lease",
            "JobStatus",
        ),
        (site({"STORAGE": "bucket"}), "jobkit.E004", "['STORAGE'] is 'bucket', which is no alias", "'default'"),
        (site(storage={"BACKEND": "tests.test_checks.Failing"}), "jobkit.E005", "some_sdk", "install"),
        (site(storage={"BACKEND": "tests.nope.X"}), "jobkit.E005", "tests.nope", "STORAGES"),
        (site(storage={"BACKEND": "tests.test_checks.Renaming"}), "jobkit.E006", "renames a file", "file_overwrite"),
        (site({"CACHE": "redis"}), "jobkit.E007", "['CACHE'] is 'redis', which is no alias", "'default'"),
        (
            site(storage={"BACKEND": "tests.test_checks.Elsewhere"}),
            "jobkit.W001",
            "can't write on a condition",
            "one worker",
        ),
        (site(cache=LOCMEM), "jobkit.W002", "one per process", "django-redis"),
        (site(cache={"BACKEND": "django.core.cache.backends.dummy.DummyCache"}), "jobkit.W002", "one per", "None"),
        (
            site(cache={"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": "/nowhere"}),
            "jobkit.W003",
            "atomically",
            "django-redis",
        ),
        (site(cache=REDIS), "jobkit.W004", "no SOCKET_TIMEOUT", "0.5"),
        (
            site(cache=REDIS | {"OPTIONS": {"SOCKET_TIMEOUT": 1}}),
            "jobkit.W004",
            "SOCKET_CONNECT_TIMEOUT",
            "seconds",
        ),
        (
            site(cache=REDIS | {"OPTIONS": BOUNDED | {"IGNORE_EXCEPTIONS": True}}),
            "jobkit.W006",
            "hides its failures",
            "False",
        ),
        (site(comics={"PREFIX": "jobs/comics", "CACHE": None}), "jobkit.W005", "in one place", "PREFIX"),
        (site(comics={"PREFIX": " jobs/", "CACHE": None}), "jobkit.W005", "in one place", "PREFIX"),
    ],
)
def test_what_is_wrong_is_found_and_named_with_what_to_do(settings, id_, message, hint):
    with settings:
        (found,) = check_settings()
    assert found.id == id_
    assert message in found.msg
    assert hint in found.hint
    assert found.is_serious() is id_.startswith("jobkit.E")


def test_two_prefixes_that_merely_begin_alike_are_no_clash():
    with site(comics={"PREFIX": "jobs2", "CACHE": None}):
        assert check_settings() == []


def test_manage_py_check_runs_them():
    with site({"PER_PAGE": 0}):
        assert "jobkit.E001" in {message.id for message in run_checks()}
