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
            threading.Event().wait(random.uniform(0, 0.004))
            yield from found


def load(shared: Shared, lists: IDListCache, timeout: float | None = None) -> tuple[str, list[str], float]:
    """Load through the gate; what came of it, and the seconds it took."""
    shared.redis.incr(shared.arrived)
    began = time.monotonic()
    try:
        found, outcome = lists.load("jobs", shared.gated_scan, timeout=timeout), "found"
    except ListTimeout:
        found, outcome = [], "gave up"
    return outcome, found, time.monotonic() - began


def churn(shared: Shared, lists: IDListCache, name: str, rounds: int) -> dict[str, int]:
    """Load again and again; in between, add jobs and delete them. Counts loads, deletions, and stale lists.

    Stale is a list that has a job whose deletion (with its `invalidate`) had ended before its `load` began.
    """
    counted = {"loads": 0, "deleted": 0, "stale": 0, "missing": 0}
    mine: list[str] = []
    for number in range(rounds):
        if random.random() < 0.3:
            mine.append(f"{name}-{number}")
            shared.redis.sadd(shared.jobs, mine[-1])
            lists.invalidate("jobs")
        if mine and random.random() < 0.3:
            job_id = mine.pop(random.randrange(len(mine)))
            shared.redis.srem(shared.jobs, job_id)
            lists.invalidate("jobs")
            shared.redis.rpush(shared.gone, job_id)
            counted["deleted"] += 1
        gone = set(shared.redis.lrange(shared.gone, -300, -1))
        found = set(lists.load("jobs", shared.scan))
        counted["loads"] += 1
        counted["stale"] += bool(found & gone)
        counted["missing"] += not found.issuperset(mine)
    return counted


TASKS: dict[str, Callable[..., object]] = {"load": load, "churn": churn}


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
