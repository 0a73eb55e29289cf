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


def run(site: Site, workers: list[Worker], rounds: int, meanwhile: Callable[[], None] = lambda: None) -> dict[str, int]:
    """Five processes load lists while three add and delete jobs; the sums of what they counted."""
    site.store(*(f"old-{number}" for number in range(60)))
    churning, watching = workers[:3], workers[3:]
    for number, worker in enumerate(churning):
        site.start(worker, "churn", name=f"w{number}")
    for worker in watching:
        site.start(worker, "watch", rounds=rounds)
    meanwhile()
    site.shared.redis.set(site.shared.enough, 1)
    counted = [worker.result() for worker in watching]
    site.shared.redis.set(site.shared.done, 1)
    total = {what: sum(result[what] for result in counted) for what in counted[0]}
    return {**total, "deleted": sum(worker.result() for worker in churning), "scans": site.count(site.shared.scans)}


def test_nothing_deleted_comes_back_while_scans_are_under_way(site: Site, workers: list[Worker]) -> None:
    total = run(site, workers, rounds=1000)
    assert total["loads"] >= 5000
    assert total["deleted"] > 100
    assert total["scans"] < 2500, "or else hardly anything was cached"
    assert (total["stale"], total["incomplete"]) == (0, 0)


def test_nor_when_redis_is_lost_and_comes_back_in_the_middle(
    make_site: Callable[[str], Site], own_redis: RedisServer, workers: list[Worker]
) -> None:
    site = make_site(own_redis.url)

    def lose_it_three_times() -> None:
        for scans in (100, 300, 500):
            site.wait_for(site.shared.scans, scans)
            own_redis.kill()
            site.wait_for(site.shared.scans, scans + 100)
            own_redis.start()

    total = run(site, workers, rounds=300, meanwhile=lose_it_three_times)
    assert total["loads"] >= 1500, "every page was answered"
    assert (total["stale"], total["incomplete"]) == (0, 0)
