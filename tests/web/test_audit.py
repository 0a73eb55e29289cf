"""The log of who did what."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.utils import translation

from django_jobkit import audit
from django_jobkit.access import Action
from tests.web.conftest import user


def asked_by(person):
    request = RequestFactory().post("/")
    request.user = person
    return request


def test_one_line_says_who_did_what_to_which_job_and_what_came_of_it(db, caplog):
    with caplog.at_level(logging.INFO, "django_jobkit.audit"):
        audit.record(asked_by(user("ann")), "comics", Action.RETRY, "job-1", who="ann", title="Draw", result="job-2")
    [record] = caplog.records
    assert record.getMessage() == "'ann' retried job job-1 of comics as job job-2"
    assert (record.user, record.action, record.job_id, record.kit, record.result) == (
        "ann",
        "retry",
        "job-1",
        "comics",
        "job-2",
    )


def test_a_name_cannot_make_a_line_of_its_own(caplog):
    with caplog.at_level(logging.INFO, "django_jobkit.audit"):
        audit.record(asked_by(AnonymousUser()), "default", Action.DELETE, "job-1", who="a\nroot deleted all")
    assert "\n" not in caplog.records[0].getMessage()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "person",
    [None, AnonymousUser(), SimpleNamespace(pk=None, get_username=lambda: "ann")],
)
def test_who_is_in_no_table_is_not_in_the_admins_log(person):
    audit.record(asked_by(person), "default", Action.DELETE, "job-1", who="ann")
    assert not LogEntry.objects.exists()


def test_a_program_is_not_the_user_whose_cookie_came_along(db):
    audit.record(asked_by(user("ann")), "default", Action.DELETE, "job-1", who="cleaner@example.com")
    assert not LogEntry.objects.exists()


def test_a_long_title_fits_into_the_admins_log(db):
    audit.record(asked_by(user("ann")), "default", Action.DELETE, "job-1", who="ann", title="x" * 1000)
    assert len(LogEntry.objects.get().object_repr) == 200


def test_a_site_without_a_database_has_the_log_alone(monkeypatch, caplog):
    monkeypatch.setattr(audit, "settings", SimpleNamespace(DATABASES={}))
    person = SimpleNamespace(pk=1, get_username=lambda: "ann")
    with caplog.at_level(logging.INFO, "django_jobkit.audit"):
        audit.record(asked_by(person), "default", Action.DELETE, "a", who="ann")
    assert len(caplog.records) == 1


def test_the_admins_log_is_in_the_language_of_the_site(db, settings):
    settings.LANGUAGE_CODE = "ja"
    with translation.override("en"):  # that of the person
        audit.record(asked_by(user("ann")), "default", Action.RETRY, "a", who="ann", result="job-2")
    assert LogEntry.objects.get().get_change_message() == "ジョブ job-2 として再実行しました"
