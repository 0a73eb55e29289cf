"""A worker process: takes job IDs from its pipe, runs the tracked job, and says how each delivery ended.

What happens to jobs is told in one log that all workers append to, a JSON document per line. A line is written by one
system call, so that the lines of different processes, killed ones included, don't mix.
"""

from __future__ import annotations

import json
import os
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from django_jobkit.exceptions import JobBusy, JobCancelled
from django_jobkit.signals import status_saved
from django_jobkit.tracking import tracked

WORK = 0.25
"""Seconds of work in a job."""


class Worker:
    def __init__(self, pipe: Connection, log: str, lease: float) -> None:
        self.pipe = pipe
        self.lease = lease
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.saved: dict[str, tuple[str, int]] = {}
        """For each job, the lease of the last record that this process has saved, and how many it has saved."""
        status_saved.connect(self.note_saved, weak=False)
        self.job = tracked(command="work")(self.work)

    def tell(self, what: str, job_id: str, **more: Any) -> None:
        line = json.dumps({"what": what, "job": job_id, "pid": os.getpid(), "at": time.time(), **more})
        os.write(self.log, line.encode() + b"\n")

    def note_saved(self, job_id: str, status: Any, **_: Any) -> None:
        self.saved[job_id] = (status.lease_id, self.saved.get(job_id, ("", 0))[1] + 1)
        self.tell(
            "saved",
            job_id,
            state=str(status.state),
            attempts=status.attempts,
            lease=status.lease_id,
            expires=status.lease_expires_at.timestamp() if status.lease_expires_at else None,
            stamp=status.updated_at.timestamp(),
            result=status.result,
        )

    def work(self, job: Any) -> str:
        lease = self.saved[job.job_id][0]
        self.tell("enter", job.job_id, lease=lease, attempt=job.attempt)
        self.pipe.send(("entered", job.job_id))
        start = last = time.monotonic()
        end = start + WORK
        step = threading.Event()
        while (now := time.monotonic()) < end or now - last > self.lease:
            if now - last > self.lease:
                # This process was stopped for longer than its lease: now it must come out whose the job is.
                self.find_out(job)
            if job.cancelled:
                self.tell("told", job.job_id, lease=lease)
                job.check_cancelled()
            last = now
            job.progress(int((now - start) * 100))
            step.wait(0.01)
        self.tell("exit", job.job_id, lease=lease)
        return lease

    def find_out(self, job: Any) -> None:
        """Wait until the job is cancelled, or its lease renewed after all."""
        before = self.saved[job.job_id][1]
        patience = time.monotonic() + 20
        waiting = threading.Event()
        while not job.cancelled and self.saved[job.job_id][1] == before:
            if time.monotonic() > patience:
                self.tell("never told", job.job_id)
                return
            waiting.wait(0.01)

    def run(self) -> None:
        self.pipe.send(("ready", ""))
        while (job_id := self.pipe.recv()) is not None:
            try:
                self.job(job_id)
            except JobBusy:
                answer = "busy"
            except JobCancelled:
                answer = "cancelled"
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
            else:
                answer = "done"
            self.pipe.send((answer, job_id))
