"""What the processes of `test_caching_processes` do: each is told by name, over a pipe, what to run and with what.

The storage is a Redis set of job IDs (its own database, not the cache's), so that all processes share it and a scan
of it can be made slow. ``scans`` counts the scans, ``arrived`` the callers of `load`.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import redis

from django_jobkit.exceptions import ListTimeout
from django_jobkit.jobs.caching import IDListCache
from django_jobkit.jobs.guard import GuardedCache
from tests.redis_server import redis_cache


class Shared:
    """The storage and the counters of one test."""

    def __init__(self, url: str, test: str) -> None:
        self.redis: Any = redis.Redis.from_url(url, decode_responses=True)
        self.jobs, self.gone, self.gate = f"{test}:jobs", f"{test}:gone", f"{test}:gate"
        self.scans, self.arrived = f"{test}:scans", f"{test}:arrived"
        self.sure, self.enough, self.done = f"{test}:sure", f"{test}:enough", f"{test}:done"

    def gated_scan(self) -> list[str]:
        """A scan that has looked at everything, and answers once the gate is open."""
        self.redis.incr(self.scans)
        found = sorted(self.redis.smembers(self.jobs))
        if self.redis.blpop([self.gate], timeout=30) is None:
            raise TimeoutError("nobody opened the gate")
        return list(found)

    def scan(self) -> Iterator[str]:
        """A scan in pages, with pauses before, between and after, in which others can write."""
        self.redis.incr(self.scans)
        cursor = -1
        while cursor != 0:
            cursor, found = self.redis.sscan(self.jobs, max(cursor, 0), count=20)
            pause(0.002)
            yield from found


def pause(at_most: float) -> None:
    """Some of ``at_most`` seconds."""
    threading.Event().wait(random.uniform(0, at_most))


def load(shared: Shared, lists: IDListCache, timeout: float | None = None) -> tuple[str, list[str], float]:
    """Load through the gate; what came of it, and the seconds it took."""
    shared.redis.incr(shared.arrived)
    began = time.monotonic()
    try:
        found, outcome = lists.load("jobs", shared.gated_scan, timeout=timeout), "found"
    except ListTimeout:
        found, outcome = [], "gave up"
    return outcome, found, time.monotonic() - began


def churn(shared: Shared, lists: IDListCache, name: str) -> int:
    """Add jobs and delete them, at random moments, until ``done`` is set; how many were deleted.

    ``gone`` holds the jobs whose deletion, `invalidate` included, has ended; ``sure`` those whose addition has, and
    whose deletion has not begun.
    """
    mine: list[str] = []
    deleted = 0
    while not shared.redis.exists(shared.done):
        mine.append(f"{name}-{deleted}-{len(mine)}")
        shared.redis.sadd(shared.jobs, mine[-1])
        lists.invalidate("jobs")
        shared.redis.sadd(shared.sure, mine[-1])
        pause(0.04)
        if len(mine) > 5:
            job_id = mine.pop(random.randrange(len(mine)))
            shared.redis.srem(shared.sure, job_id)
            shared.redis.srem(shared.jobs, job_id)
            lists.invalidate("jobs")
            shared.redis.rpush(shared.gone, job_id)
            deleted += 1
            pause(0.04)
    return deleted


def watch(shared: Shared, lists: IDListCache, rounds: int) -> dict[str, int]:
    """Load ``rounds`` times, and until ``enough`` is set; count the lists that are wrong.

    ``stale`` has a job that was gone before its `load` began; ``incomplete`` lacks one that was sure before and after.
    """
    counted = {"loads": 0, "stale": 0, "incomplete": 0}
    while counted["loads"] < rounds or not shared.redis.exists(shared.enough):
        gone = set(shared.redis.lrange(shared.gone, -100, -1))
        sure = shared.redis.smembers(shared.sure)
        found = set(lists.load("jobs", shared.scan))
        sure &= shared.redis.smembers(shared.sure)
        counted["loads"] += 1
        counted["stale"] += bool(found & gone)
        counted["incomplete"] += bool(sure - found)
    return counted


TASKS: dict[str, Callable[..., object]] = {"load": load, "churn": churn, "watch": watch}


def main(pipe: Connection, storage_url: str) -> None:
    """Run what comes over the pipe until it is closed."""
    while True:
        try:
            message = pipe.recv()
        except EOFError:
            return
        task, test, cache_url, options, retry_after, arguments = message
        shared = Shared(storage_url, test)
        cache = redis_cache(cache_url, SOCKET_TIMEOUT=1, SOCKET_CONNECT_TIMEOUT=1)
        lists = IDListCache(GuardedCache(cache, retry_after), namespace=test, **options)
        try:
            pipe.send(TASKS[task](shared, lists, **arguments))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")
        finally:
            shared.redis.close()
