from __future__ import annotations

import dataclasses

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_jobkit import conf


def test_without_a_setting_there_is_one_kit_with_the_defaults():
    assert conf.aliases() == ["default"]
    assert dataclasses.asdict(conf.get()) == {
        "alias": "default",
        "storage": "default",
        "prefix": "jobs",
        "status_class": "django_jobkit.jobs.JobStatus",
        "cache": "default",
        "metadata_ttl": 600,
        "list_ttl": 60,
        "cache_retry": 5,
        "per_page": 20,
        "max_per_page": 200,
        "search_limit": 500,
        "concurrency": 10,
        "timeout": 10,
        "sort_key": "django_jobkit.jobs.ids.sort_key",
        "load": None,
        "retry": None,
        "lease": None,
        "queued_warning": 3600,
        "progress_interval": 1,
        "access": "django_jobkit.access.StaffAccess",
    }


@override_settings(JOBKIT={"default": {}, "comics": {"PREFIX": "comics", "PER_PAGE": 50, "CACHE": None}})
def test_each_alias_has_its_own_and_defaults_for_the_rest():
    assert conf.aliases() == ["default", "comics"]
    assert conf.get().per_page == 20
    assert (conf.get("comics").prefix, conf.get("comics").per_page, conf.get("comics").cache) == ("comics", 50, None)


def test_settings_are_read_once_and_follow_a_change_in_tests():
    assert conf.get() is conf.get()
    with override_settings(JOBKIT={"default": {"PER_PAGE": 7}}):
        assert conf.get().per_page == 7
    assert conf.get().per_page == 20


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        conf.get().per_page = 7


@override_settings(JOBKIT={"default": {}, "comics": {}})
def test_an_unknown_alias_says_which_there_are():
    with pytest.raises(ImproperlyConfigured, match=r"no JOBKIT\['music'\].*'default', 'comics'"):
        conf.get("music")


@pytest.mark.parametrize(
    ("jobkit", "setting", "hint"),
    [
        ([], "JOBKIT", 'JOBKIT = {"default": {}}'),
        ({"PER_PAGE": 20}, "JOBKIT['PER_PAGE']", "default"),
        ({"default": {"PER_PAGES": 20}}, "JOBKIT['default']['PER_PAGES']", "Did you mean PER_PAGE?"),
        ({"default": {"per_page": 20}}, "JOBKIT['default']['per_page']", "Did you mean PER_PAGE?"),
        ({"default": {"XYZZY": 1}}, "JOBKIT['default']['XYZZY']", "The settings are ACCESS,"),
        ({"default": {7: 1}}, "JOBKIT['default'][7]", "The settings are"),
        ({"default": {"PER_PAGE": 0}}, "JOBKIT['default']['PER_PAGE']", "1 or more"),
        ({"default": {"PER_PAGE": "20"}}, "JOBKIT['default']['PER_PAGE']", "1 or more"),
        ({"default": {"CONCURRENCY": True}}, "JOBKIT['default']['CONCURRENCY']", "1 or more"),
        ({"default": {"MAX_PER_PAGE": 1.5}}, "JOBKIT['default']['MAX_PER_PAGE']", "1 or more"),
        ({"default": {"LIST_TTL": -1}}, "JOBKIT['default']['LIST_TTL']", "seconds above 0."),
        ({"default": {"LIST_TTL": None}}, "JOBKIT['default']['LIST_TTL']", "seconds above 0."),
        ({"default": {"TIMEOUT": float("inf")}}, "JOBKIT['default']['TIMEOUT']", "seconds above 0."),
        ({"default": {"LEASE": 0}}, "JOBKIT['default']['LEASE']", "seconds above 0 or None"),
        ({"default": {"PREFIX": "/"}}, "JOBKIT['default']['PREFIX']", "isn't empty"),
        ({"default": {"PREFIX": "a/../b"}}, "JOBKIT['default']['PREFIX']", "below the storage's root"),
        ({"default": {"STORAGE": None}}, "JOBKIT['default']['STORAGE']", "isn't empty"),
        ({"default": {"ACCESS": object}}, "JOBKIT['default']['ACCESS']", "isn't empty"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_do(jobkit, setting, hint):
    with override_settings(JOBKIT=jobkit):
        (problem,) = conf.problems()
        assert problem.setting == setting
        assert setting in problem.message
        assert hint in problem.hint
        with pytest.raises(ImproperlyConfigured) as caught:
            conf.get()
        assert problem.message in str(caught.value)


@pytest.mark.parametrize("name", ["CACHE", "SORT_KEY", "LOAD", "LEASE"])
def test_what_is_optional_can_be_none(name):
    with override_settings(JOBKIT={"default": {name: None}}):
        assert conf.problems() == []
        assert getattr(conf.get(), name.lower()) is None
