"""What a request costs: reads of the storage, and queries of the database."""

from __future__ import annotations

import pytest
from django.urls import reverse

from django_jobkit.jobs import State
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user

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


@pytest.fixture
def site_with_redis(settings, redis_url):
    """20 rows, among them an unfinished one and one that searches go through, cached in Redis; the session isn't."""
    settings.CACHES = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": redis_url}}
    kit = in_a_dict()
    for n in range(30):
        put(kit, f"job-{n}", title=f"Chart {n}", state=State.RUNNING if n == 29 else State.SUCCEEDED)
    return kit


@pytest.mark.component
@pytest.mark.parametrize("name", ["history", "api-list"])
@pytest.mark.parametrize("query", ["", "?page=2", "?order=oldest", "?prefix=job-1", "?state=succeeded&q=chart"])
def test_a_warm_history_asks_redis_at_most_four_times_and_nobody_else(
    db, site_with_redis, redis_server, name, query, django_assert_num_queries
):
    root = client_of(user("root", is_staff=True, is_superuser=True))
    assert root.get(path(name) + query).status_code == 200
    site_with_redis.storage.calls.clear()
    with redis_server.counting() as commands, django_assert_num_queries(2):  # session and user
        response = root.get(path(name) + query)
    assert response.status_code == 200
    assert not site_with_redis.storage.calls
    assert 0 < sum(commands.values()) <= 4, commands
