"""What a request costs: reads of the storage, and queries of the database."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.web.conftest import JOB_ID, client_of, put, user

ONE_JOB = ["detail", "status", "delete", "api-job"]
EVERY_URL = ["history", "api-list", *ONE_JOB]


def path(name: str) -> str:
    return reverse(f"jobkit:{name}", args=[JOB_ID] if name in ONE_JOB else [])


@pytest.mark.parametrize("name", ONE_JOB)
def test_one_job_is_one_read(staff, kit, job, name):
    kit.storage.calls.clear()
    assert staff.get(path(name)).status_code == 200
    assert kit.storage.calls == {"read": 1}


def test_a_poll_of_an_unchanged_job_is_one_read_and_304(staff, kit, job):
    tag = staff.get(path("status"))["ETag"]
    kit.storage.calls.clear()
    assert staff.get(path("status"), headers={"If-None-Match": tag}).status_code == 304
    assert kit.storage.calls == {"read": 1}


@pytest.mark.parametrize("name", ["history", "api-list"])
def test_a_cold_page_is_one_listing_and_a_read_per_row_and_a_warm_one_nothing(staff, kit, name):
    for n in range(30):
        put(kit, f"job-{n}")
    kit.storage.calls.clear()
    assert staff.get(path(name)).status_code == 200
    assert kit.storage.calls == {"list_dirs": 1, "read": 20}
    kit.storage.calls.clear()
    assert staff.get(path(name)).status_code == 200
    assert not kit.storage.calls


def test_deleting_is_one_read_and_one_deletion(staff, kit, job):
    kit.storage.calls.clear()
    assert staff.post(path("delete")).status_code == 302
    assert kit.storage.calls == {"read": 1, "delete_tree": 1}


@pytest.mark.parametrize("name", EVERY_URL)
def test_the_kit_makes_no_query_of_its_own(db, kit, job, name, django_assert_num_queries):
    """What is left is Django's: the session and the user; and their permissions, where they aren't a superuser."""
    root = client_of(user("root", is_staff=True, is_superuser=True))
    with django_assert_num_queries(2):
        assert root.get(path(name)).status_code == 200
    staff = client_of(user("staff", "view_job", "delete_job", is_staff=True))
    with django_assert_num_queries(4):
        assert staff.get(path(name)).status_code == 200


@pytest.mark.parametrize("name", EVERY_URL)
def test_whom_nobody_knows_costs_nothing(db, client, kit, job, name, django_assert_num_queries):
    kit.storage.calls.clear()
    with django_assert_num_queries(0):
        client.get(path(name))
    assert not kit.storage.calls
