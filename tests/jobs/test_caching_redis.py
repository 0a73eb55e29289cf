"""The caches on a real Redis, through django-redis and through Django's own backend: commands, outages, recovery."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from django_jobkit.exceptions import KeysNotListable
from django_jobkit.jobs.caching import IDListCache, TTLCache
from django_jobkit.jobs.guard import GuardedCache
from tests.redis_server import RedisServer, redis_cache

pytestmark = pytest.mark.component

TIMEOUT = 0.5  # SOCKET_TIMEOUT of the caches that hang here, in seconds
SOON = 20.0  # seconds that no test needs


def never() -> list[str]:
    raise AssertionError("this caller must not scan")


class Scan:
    def __init__(self, *job_ids: str) -> None:
        self.storage = list(job_ids)
        self.calls = 0

    def __call__(self) -> list[str]:
        self.calls += 1
        return list(self.storage)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


@pytest.fixture
def namespace() -> str:
    return f"test-{secrets.token_hex(4)}"


def djangos_own(url: str) -> Any:
    from django.core.cache.backends.redis import RedisCache

    return RedisCache(url, {})


@pytest.fixture(params=[redis_cache, djangos_own], ids=["django-redis", "django"])
def cache(request: pytest.FixtureRequest, redis_url: str) -> Any:
    return request.param(redis_url)


def test_a_warm_page_takes_three_commands(cache: Any, redis_server: RedisServer, namespace: str) -> None:
    lists = IDListCache(cache, namespace=f"{namespace}:ids")
    statuses = TTLCache[bytes](cache, namespace=f"{namespace}:status")
    page = {f"job-{number}": b"{}" for number in range(200)}
    lists.load("jobs", lambda: page)
    statuses.set_many(page)
    with redis_server.counting() as calls:
        job_ids = lists.load("jobs", never)
        assert statuses.get_many(job_ids) == page
    assert calls == {"get": 1, "mget": 2}


def test_a_new_job_is_listed_by_one_command_more(cache: Any, redis_server: RedisServer, namespace: str) -> None:
    lists = IDListCache(cache, namespace=f"{namespace}:ids")
    lists.load("jobs", lambda: ["a"])
    lists.announce("jobs", "b")
    lists.announce("jobs", "c")
    with redis_server.counting() as calls:
        assert lists.load("jobs", never) == ["a", "b", "c"]
    assert calls == {"get": 1, "mget": 2}


def test_a_cold_list_takes_at_most_seven_commands_and_an_invalidation_four(
    cache: Any, redis_server: RedisServer, namespace: str
) -> None:
    lists = IDListCache(cache, namespace=namespace)
    lists.load("jobs", Scan("a"))
    with redis_server.counting() as calls:
        lists.invalidate("jobs")
    assert sum(calls.values()) <= 4  # three with django-redis; Django's own doesn't tell whether a value arrived
    with redis_server.counting() as calls:
        lists.load("jobs", Scan("a"))
    assert sum(calls.values()) <= 7


def test_values_and_lists_keep_their_times(cache: Any, redis_server: RedisServer, namespace: str) -> None:
    lists = IDListCache(cache, 30, namespace=f"{namespace}:ids")
    TTLCache[bytes](cache, 90, namespace=f"{namespace}:status").set("a", b"1")
    lists.load("jobs", Scan("a"))
    lists.load("jobs", never)
    times = {}
    for key in _keys(redis_server, namespace):
        times[key.partition(namespace)[2][:7]] = int(redis_server.command("TTL", key)[1:])
    assert times == {":status": 90, ":ids:e:": -1, ":ids:d:": 30}, "no lease is left, the epoch has no end"


def test_entries_are_counted_under_a_key_prefix(redis_url: str, namespace: str) -> None:
    from django_redis.cache import RedisCache

    cache = RedisCache(redis_url, {"KEY_PREFIX": "site:one", "VERSION": 3})
    lists = IDListCache(cache, namespace=f"{namespace}:ids")
    statuses = TTLCache[bytes](cache, namespace=f"{namespace}:status")
    assert (lists.count(), statuses.count()) == (0, 0)
    lists.load("jobs", Scan("a"))
    statuses.set_many({"a": b"", "dir/a": b"", "日本語": b""})
    assert (lists.count(), statuses.count()) == (1, 2)
    lists.invalidate("jobs")
    assert lists.count() == 0


def test_djangos_own_backend_can_not_count(redis_url: str) -> None:
    with pytest.raises(KeysNotListable, match="django-redis"):
        TTLCache(djangos_own(redis_url)).count()


class Kit:
    """The two caches of a kit, and a fresh look at them as another process has it."""

    def __init__(self, server: RedisServer, retry_after: float, **options: Any) -> None:
        self.options = {"SOCKET_TIMEOUT": TIMEOUT, "SOCKET_CONNECT_TIMEOUT": TIMEOUT, **options}
        self.server, self.retry_after = server, retry_after
        guard = GuardedCache(redis_cache(server.url, **self.options), retry_after)
        self.lists, self.statuses = IDListCache(guard), TTLCache[bytes](guard)

    def elsewhere(self) -> Kit:
        return Kit(self.server, self.retry_after, **self.options)

    def page(self, collect: Callable[[], list[str]]) -> list[str]:
        """What a history page does."""
        job_ids = self.lists.load("jobs", collect)
        missing = set(job_ids) - set(self.statuses.get_many(job_ids))
        self.statuses.set_many(dict.fromkeys(missing, b"{}"))
        return job_ids


@pytest.fixture(params=[False, True], ids=["raising", "ignoring exceptions"])
def ignoring(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_refused_pages_go_on_and_recover_by_themselves(
    own_redis: RedisServer, ignoring: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="django_jobkit.cache")
    kit, scan = Kit(own_redis, 0.2, IGNORE_EXCEPTIONS=ignoring), Scan("a")
    kit.page(scan)
    own_redis.kill()
    began = time.monotonic()
    for calls in range(2, 52):
        assert kit.page(scan) == ["a"]
        assert scan.calls == calls
    assert time.monotonic() - began < 50 * TIMEOUT / 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]

    own_redis.start()

    def warm() -> bool:
        before = scan.calls
        kit.page(scan)
        return scan.calls == before

    until(warm)
    assert kit.elsewhere().page(never) == ["a"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.parametrize("threads", [1, 8])
def test_stalled_each_thread_waits_for_one_timeout_and_then_nobody_does(
    own_redis: RedisServer, ignoring: bool, threads: int
) -> None:
    kit, scan = Kit(own_redis, 60, IGNORE_EXCEPTIONS=ignoring), Scan("a")
    kit.page(scan)
    own_redis.stall()
    try:
        took: list[float] = []

        def view() -> None:
            began = time.monotonic()
            assert kit.page(scan) == ["a"]
            took.append(time.monotonic() - began)

        viewers = [threading.Thread(target=view) for _ in range(threads)]
        for viewer in viewers:
            viewer.start()
        for viewer in viewers:
            viewer.join(SOON)
        assert len(took) == threads
        # With IGNORE_EXCEPTIONS the first failing read looks like a miss; `add`, asked next, can't hide it.
        assert max(took) < TIMEOUT * (2 if ignoring else 1) + 0.4
        began = time.monotonic()
        for _ in range(20):
            assert kit.page(scan) == ["a"]
        kit.lists.invalidate("jobs")
        kit.statuses.delete("a")
        assert time.monotonic() - began < TIMEOUT
    finally:
        own_redis.resume()


def test_what_is_deleted_during_a_stall_does_not_come_back_after_it(own_redis: RedisServer, ignoring: bool) -> None:
    kit, scan = Kit(own_redis, 0.2, IGNORE_EXCEPTIONS=ignoring), Scan("a", "deleted")
    kit.page(scan)
    own_redis.stall()
    try:
        scan.storage.remove("deleted")
        kit.lists.invalidate("jobs")
        kit.statuses.delete("deleted")
        assert kit.page(scan) == ["a"]
    finally:
        own_redis.resume()

    def warm() -> bool:
        before = scan.calls
        assert kit.page(scan) == ["a"]
        return scan.calls == before

    until(warm)
    elsewhere = kit.elsewhere()
    assert elsewhere.page(never) == ["a"]
    assert elsewhere.statuses.get("deleted") is None


def test_lost_during_the_scan_the_scan_still_answers(own_redis: RedisServer, ignoring: bool) -> None:
    kit = Kit(own_redis, 60, IGNORE_EXCEPTIONS=ignoring)

    def collect() -> list[str]:
        own_redis.kill()
        return ["a"]

    assert kit.page(collect) == ["a"]


def test_lost_and_restarted_between_two_pages_a_page_is_cold_and_that_is_all(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    kit, scan = Kit(own_redis, 60), Scan("a")
    kit.page(scan)
    own_redis.kill()
    own_redis.start()
    assert kit.page(scan) == ["a"]
    assert kit.page(never) == ["a"]
    assert scan.calls == 2
    assert caplog.records == []


def _keys(server: RedisServer, namespace: str) -> list[str]:
    answer = server.command("KEYS", f"*{namespace}*").decode().split("\r\n")
    return [line for line in answer if namespace in line]
