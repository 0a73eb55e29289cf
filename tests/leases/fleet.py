"""Delivers every job many times over to worker processes, some of which it kills and pauses meanwhile.

    python -m tests.leases.fleet <options as JSON>

A program of its own, with one thread, so that it can fork its workers at any moment. As any at-least-once queue, it
delivers again what wasn't acknowledged: because the job is busy, because the run failed, or because its worker died.
It ends when every delivery is acknowledged, and prints what it did as JSON.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

import django
from django.conf import settings

from django_jobkit import jobkits
from tests.leases.worker import WORK, Worker

WORKERS = 8
KILLS = 24
PAUSES = 16
LEASE = 1.0
BUSY_DELAY = 0.1
LONGEST_PAUSE = LEASE + 3
TIME_LIMIT = 60


@dataclass
class Hand:
    """One worker, as the queue sees it."""

    process: Any
    pipe: Connection
    job_id: str = ""
    """What was delivered to it and isn't answered yet."""
    in_body: bool = False
    ready: bool = False
    resume_at: float = 0.0
    """When it is to go on; 0: it isn't paused."""
    killed: bool = False


@dataclass
class Report:
    kills: int = 0
    kills_in_body: int = 0
    pauses: int = 0
    silent_deaths: Counter[str] = field(default_factory=Counter)
    """For each job, how often a worker died with it in hand and had not said that the job's body was entered."""
    answers: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


class Fleet:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.random = random.Random(options["seed"])
        self.context = multiprocessing.get_context("fork")
        self.report = Report()
        self.numbers = itertools.count()
        jobs = [f"job-{number:02}" for number in range(options["jobs"])]
        deliveries = jobs * (options["deliveries"] // len(jobs))
        self.random.shuffle(deliveries)
        self.waiting = [(0.0, next(self.numbers), job_id) for job_id in deliveries]
        self.open = len(deliveries)
        self.harm: list[tuple[float, int, str, Hand]] = []
        self.hands: list[Hand] = []
        for _ in range(WORKERS):
            self.hire()

    def hire(self) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=self.live, args=(ours, theirs), daemon=True)
        process.start()
        theirs.close()
        self.hands.append(Hand(process, ours))

    def live(self, ours: Connection, theirs: Connection) -> None:
        ours.close()
        for hand in self.hands:
            hand.pipe.close()  # else a sibling's death would not be the end of its pipe
        Worker(theirs, self.options["log"], LEASE).run()

    def run(self) -> Report:
        started = time.monotonic()
        try:
            while self.open:
                if time.monotonic() - started > TIME_LIMIT:
                    raise SystemExit(f"{self.open} deliveries are still open: {self.hands}")
                self.do_harm()
                self.deliver()
                for ready in wait([hand.pipe for hand in self.hands], timeout=0.01):
                    self.listen(next(hand for hand in self.hands if hand.pipe is ready))
        finally:
            for hand in self.hands:
                hand.process.kill()
                hand.process.join(5)
        self.report.seconds = time.monotonic() - started
        return self.report

    # --- the queue ----------------------------------------------------------------------------------------------

    def deliver(self) -> None:
        now = time.monotonic()
        for hand in self.hands:
            if hand.job_id or not hand.ready or hand.resume_at:
                continue
            if not self.waiting or self.waiting[0][0] > now:
                return
            hand.job_id = heapq.heappop(self.waiting)[2]
            with contextlib.suppress(BrokenPipeError):  # just killed: its end is about to be heard
                hand.pipe.send(hand.job_id)
            if self.random.random() < 0.03:
                self.plan("kill", hand, self.random.uniform(0, 0.02))  # as it begins, or has just begun

    def again(self, job_id: str, delay: float) -> None:
        heapq.heappush(self.waiting, (time.monotonic() + delay, next(self.numbers), job_id))

    def listen(self, hand: Hand) -> None:
        try:
            answer, job_id = hand.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.bury(hand)
            return
        if answer == "ready":
            hand.ready = True
        elif answer == "entered":
            hand.in_body = True
            self.resume_those_who_lost(job_id, hand)
            if not self.report.answers["cancelled"]:
                self.plan("pause", hand, WORK / 4)  # until one has surely lost its lease in the body
            elif (chance := self.random.random()) < 0.6:
                # Anywhere in the body, or as it ends, or just after.
                self.plan("kill" if chance < 0.4 else "pause", hand, self.random.uniform(0, 1.2 * WORK))
        else:
            self.report.answers[answer.partition(":")[0]] += 1
            hand.job_id, hand.in_body = "", False
            if answer == "done":
                self.open -= 1
            else:
                self.again(job_id, BUSY_DELAY)

    def bury(self, hand: Hand) -> None:
        hand.process.join(5)
        self.hands.remove(hand)
        if hand.job_id:
            if not hand.in_body:
                self.report.silent_deaths[hand.job_id] += 1
            self.again(hand.job_id, BUSY_DELAY)
        self.hire()

    # --- what happens to workers --------------------------------------------------------------------------------

    def plan(self, what: str, hand: Hand, delay: float) -> None:
        heapq.heappush(self.harm, (time.monotonic() + delay, next(self.numbers), what, hand))

    def do_harm(self) -> None:
        now = time.monotonic()
        while self.harm and self.harm[0][0] <= now:
            _, _, what, hand = heapq.heappop(self.harm)
            if hand in self.hands and not hand.resume_at and not hand.killed:
                self.kill(hand) if what == "kill" else self.pause(hand)
        for hand in self.hands:
            if hand.resume_at and hand.resume_at <= now:
                self.resume(hand)

    def kill(self, hand: Hand) -> None:
        if self.report.kills < KILLS:
            self.report.kills += 1
            self.report.kills_in_body += hand.in_body
            hand.killed = True
            os.kill(hand.process.pid, signal.SIGKILL)

    def pause(self, hand: Hand) -> None:
        paused = sum(1 for other in self.hands if other.resume_at)
        if self.report.pauses < PAUSES and paused < WORKERS // 2:
            self.report.pauses += 1
            os.kill(hand.process.pid, signal.SIGSTOP)
            hand.resume_at = time.monotonic() + LONGEST_PAUSE
            self.again_soon(hand.job_id)

    def again_soon(self, job_id: str) -> None:
        """Have one of the job's other deliveries come just when the lease of the paused worker has run out."""
        for index, (_, _, waiting) in enumerate(self.waiting):
            if waiting == job_id:
                del self.waiting[index]
                heapq.heapify(self.waiting)
                self.again(job_id, LEASE + 0.05)
                return

    def resume_those_who_lost(self, job_id: str, winner: Hand) -> None:
        """The job was taken over. Let its former workers wake up, one in three only much later."""
        for hand in self.hands:
            if hand.resume_at and hand.job_id == job_id and hand is not winner and self.random.random() < 0.67:
                hand.resume_at = time.monotonic() + self.random.uniform(0, WORK)

    def resume(self, hand: Hand) -> None:
        if hand.resume_at:
            hand.resume_at = 0.0
            os.kill(hand.process.pid, signal.SIGCONT)


def main() -> None:
    options = json.loads(sys.argv[1])
    settings.configure(
        STORAGES={"default": options["storage"]},
        JOBKIT={"default": {"CACHE": None, "LEASE": LEASE, "TIMEOUT": 4, "PROGRESS_INTERVAL": 0.2}},
        USE_TZ=True,
    )
    django.setup()
    _ = jobkits["default"].store  # imported here once, since importing Google's client takes a second; not connected
    report = Fleet(options).run()
    print(json.dumps(vars(report)))


if __name__ == "__main__":
    main()
