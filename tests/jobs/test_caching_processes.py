"""`IDListCache` among eight real processes over a real Redis: one scan for all, killed scanners, nothing stale."""

from __future__ import annotations

import multiprocessing
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest

from tests.components import require
from tests.redis_server import INSTALL, RedisServer

pytestmark = [pytest.mark.component, pytest.mark.slow]

SOON = 60.0  # seconds that no test needs
PROCESSES = 8


class Worker:
    """A process of its own that runs one task at a time."""

    def __init__(self, storage_url: str) -> None:
        from .cache_process import main

        context = multiprocessing.get_context("spawn")
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=main, args=(theirs, storage_url), daemon=True)
        self.process.start()
        theirs.close()

    def result(self) -> Any:
        assert self.pipe.poll(SOON), "no answer"
        return self.pipe.recv()

    def kill(self) -> None:
        self.process.kill()
        self.process.join(SOON)
        self.pipe.close()

    def close(self) -> None:
        self.pipe.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(SOON)
        self.process.close()


@pytest.fixture(scope="module")
def workers(redis_url: str) -> Iterator[list[Worker]]:
    require("django_redis", INSTALL)
    started = [Worker(redis_url) for _ in range(PROCESSES)]
    yield started
    for worker in started:
        worker.close()


class Site:
    """One test's storage, counters and cache."""

    def __init__(self, storage_url: str, cache_url: str) -> None:
        from .cache_process import Shared

        self.test = f"test-{secrets.token_hex(4)}"
        self.shared = Shared(storage_url, self.test)
        self.cache_url = cache_url

    def start(self, worker: Worker, task: str, /, options: dict[str, float] | None = None, **arguments: object) -> None:
        worker.pipe.send((task, self.test, self.cache_url, options or {}, 0.2, arguments))

    def store(self, *job_ids: str) -> None:
        self.shared.redis.sadd(self.shared.jobs, *job_ids)

    def open_gate(self, times: int = 1) -> None:
        self.shared.redis.rpush(self.shared.gate, *["open"] * times)

    def count(self, counter: str) -> int:
        return int(self.shared.redis.get(counter) or 0)

    def wait_for(self, counter: str, number: int) -> None:
        deadline = time.monotonic() + SOON
        while self.count(counter) < number:
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)


@pytest.fixture
def make_site(redis_url: str) -> Iterator[Callable[[str], Site]]:
    made: list[Site] = []

    def make(cache_url: str) -> Site:
        made.append(Site(redis_url, cache_url))
        return made[-1]

    yield make
    for site in made:
        site.shared.redis.close()


@pytest.fixture
def site(make_site: Callable[[str], Site], redis_url: str) -> Site:
    return make_site(redis_url)


def test_eight_callers_at_once_scan_once(site: Site, workers: list[Worker]) -> None:
    site.store("a", "b")
    for worker in workers:
        site.start(worker, "load")
    site.wait_for(site.shared.arrived, PROCESSES)
    site.wait_for(site.shared.scans, 1)
    site.open_gate(PROCESSES)
    assert [worker.result()[:2] for worker in workers] == [("found", ["a", "b"])] * PROCESSES
    assert site.count(site.shared.scans) == 1


def test_a_caller_that_gives_up_takes_nobody_along(site: Site, workers: list[Worker]) -> None:
    site.store("a")
    scanner, hasty, *patient = workers
    site.start(scanner, "load")
    site.wait_for(site.shared.scans, 1)
    for worker in patient:
        site.start(worker, "load")
    site.start(hasty, "load", timeout=0.2)
    outcome, _, seconds = hasty.result()
    assert outcome == "gave up"
    assert 0.2 <= seconds < 2
    site.open_gate(PROCESSES)
    assert [worker.result()[:2] for worker in (scanner, *patient)] == [("found", ["a"])] * (PROCESSES - 1)
    assert site.count(site.shared.scans) == 1


def test_a_killed_scan_costs_the_others_at_most_the_lease(site: Site, workers: list[Worker], redis_url: str) -> None:
    site.store("a")
    lease = {"lease": 2.0}
    victim = Worker(redis_url)
    site.start(victim, "load", lease)
    site.wait_for(site.shared.scans, 1)
    for worker in workers:
        site.start(worker, "load", lease)
    site.wait_for(site.shared.arrived, PROCESSES + 1)
    victim.kill()
    killed = time.monotonic()
    site.wait_for(site.shared.scans, 2)
    assert time.monotonic() - killed < 2.0 + 1.0, "the lease, a pause of the one that took over, and a busy machine"
    site.open_gate(PROCESSES)
    assert [worker.result()[:2] for worker in workers] == [("found", ["a"])] * PROCESSES
    assert site.count(site.shared.scans) == 2


def test_nothing_deleted_comes_back_while_scans_are_under_way(site: Site, workers: list[Worker]) -> None:
    site.store(*(f"old-{number}" for number in range(60)))
    for number, worker in enumerate(workers):
        site.start(worker, "churn", name=f"w{number}", rounds=500)
    counted = [worker.result() for worker in workers]
    total = {what: sum(result[what] for result in counted) for what in counted[0]}
    assert total["loads"] == 500 * PROCESSES
    assert total["deleted"] > 50 * PROCESSES
    assert total["stale"] == 0
    assert total["missing"] == 0, "nor is what was added and announced left out"
    assert site.count(site.shared.scans) < total["loads"], "or else nothing was cached"


def test_nor_when_redis_is_lost_and_comes_back_in_the_middle(
    make_site: Callable[[str], Site], own_redis: RedisServer, workers: list[Worker]
) -> None:
    site = make_site(own_redis.url)
    site.store(*(f"old-{number}" for number in range(60)))
    for number, worker in enumerate(workers):
        site.start(worker, "churn", name=f"w{number}", rounds=400)
    for scans in (150, 600, 1200):
        site.wait_for(site.shared.scans, scans)
        own_redis.kill()
        site.wait_for(site.shared.scans, scans + 200)
        own_redis.start()
    counted = [worker.result() for worker in workers]
    total = {what: sum(result[what] for result in counted) for what in counted[0]}
    assert total["loads"] == 400 * PROCESSES, "every page was answered"
    assert total["stale"] == 0
    assert total["missing"] == 0
