"""What the kit asks of Google Cloud Storage and S3, beside the django-storages calls a site would write by hand.

    python benchmarks/storage.py            the figures of the README
    python benchmarks/storage.py --quick    the same on small inputs, to see that it runs

Both sides run in turn against one emulator, behind a proxy that counts requests and bytes and adds the same time to
each request, since on loopback there is none to speak of between here and a bucket. Requests and bytes are exact;
times are the medians of some rounds. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import emulators
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

from django_jobkit import jobkits
from django_jobkit.jobs import JobStatus, State, ids
from django_jobkit.kit import JobKit

NOTE = """
Both services give 1,000 entries of a listing at a time, so that 2,500 jobs take 3 requests, whoever asks.
fake-gcs-server gives all at once, and so does moto to those who ask in the older way, as django-storages does.
"""
PAGE = 20
START = datetime(2026, 1, 1, tzinfo=UTC)


class ByHand:
    """A job's record and history as one writes them on a Django storage, the usual way."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self.storage = storage
        self.prefix = prefix

    def read(self, job_id: str) -> dict[str, Any]:
        with self.storage.open(f"{self.prefix}/{job_id}/status.json") as file:
            document: dict[str, Any] = json.loads(file.read())
            return document

    def write(self, job_id: str, document: dict[str, Any]) -> None:
        document["updated_at"] = datetime.now(UTC).isoformat()
        self.storage.save(f"{self.prefix}/{job_id}/status.json", ContentFile(json.dumps(document).encode()))

    def begin(self, job_id: str) -> bool:
        document = self.read(job_id)
        if document["state"] == "succeeded":
            return True
        self.write(job_id, document | {"state": "running", "attempts": document.get("attempts", 0) + 1})
        return False

    def ids(self) -> list[str]:
        return self.storage.listdir(f"{self.prefix}/")[0]

    def page(self) -> list[dict[str, Any]]:
        return [self.read(job_id) for job_id in sorted(self.ids(), reverse=True)[:PAGE]]


@dataclass
class Cost:
    requests: float
    bytes: float
    milliseconds: float


def measure(emulator: emulators.Emulator, sides: list[Callable[[], object]], rounds: int) -> list[Cost]:
    """What one call of each costs, the sides taken in turn."""
    times: list[list[float]] = [[] for _ in sides]
    counts = [[0, 0] for _ in sides]
    for side in sides:
        side()  # connections and modules are there from now on
    for _ in range(rounds):
        for side, taken, count in zip(sides, times, counts, strict=True):
            emulator.take()
            started = time.perf_counter()
            side()
            taken.append(time.perf_counter() - started)
            passed = emulator.take()
            count[0] += passed["requests"]
            count[1] += passed["sent"] + passed["received"]
    return [
        Cost(count[0] / rounds, count[1] / rounds, statistics.median(taken) * 1000)
        for taken, count in zip(times, counts, strict=True)
    ]


def fill(kit: JobKit, jobs: int) -> None:
    """Record so many jobs."""
    job_ids = [ids.new("report", now=START + timedelta(seconds=number)) for number in range(jobs)]
    status = JobStatus(
        command="report",
        title="Sales of the summer",
        state=State.SUCCEEDED,
        attempts=1,
        queued_at=START,
        started_at=START,
        finished_at=START,
        outputs=["summary.json", "chart.svg"],
    )
    with ThreadPoolExecutor(kit.settings.concurrency) as pool:
        list(pool.map(lambda job_id: kit.store.save(job_id, status), job_ids))


def compare(
    name: str, emulator: emulators.Emulator, alias: str, *, few: int, many: int, rounds: int, delay: float
) -> None:
    kit, long = jobkits[alias], jobkits[f"{alias}-long"]
    hand, long_hand = (ByHand(storages[alias], each.prefix) for each in (kit, long))
    fill(kit, few - 1)
    fill(long, many)
    kit.store.save("one", JobStatus(state=State.QUEUED, command="report", title="Sales of the summer"))
    status = kit.store.get("one")
    document = hand.read("one")
    emulator.delay(delay)
    print(f"\n{name}, {delay:g} ms added to each request; medians of {rounds} rounds")
    print(f"{'':<26}{'kit':^28}{'by hand':^28}{'by hand / kit':^18}")
    print(f"{'':<26}" + f"{'requests':>9}{'bytes':>10}{'ms':>9}" * 2 + f"{'requests':>10}{'time':>8}")
    steps: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("read a status", lambda: kit.store.get("one"), lambda: hand.read("one")),
        ("write a status", lambda: kit.store.save("one", status), lambda: hand.write("one", document)),
        ("begin", lambda: kit.recorder.begin("one", JobStatus(state=State.RUNNING)), lambda: hand.begin("one")),
        (f"page of {PAGE} of {few} jobs", lambda: kit.history.page(1, PAGE), hand.page),
        (f"list of {many:,} jobs", long.history.ids, long_hand.ids),
    ]
    for step, ours, theirs in steps:
        a, b = measure(emulator, [ours, theirs], rounds)
        figures = "".join(f"{cost.requests:>9g}{cost.bytes:>10,.0f}{cost.milliseconds:>9.1f}" for cost in (a, b))
        print(f"{step:<26}{figures}{b.requests / a.requests:>10.1f}{b.milliseconds / a.milliseconds:>8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs: shows that it runs, not how fast")
    parser.add_argument("--delay", type=float, default=20, help="milliseconds added to each request (default: 20)")
    options = parser.parse_args()
    few, many, rounds, delay = (25, 50, 1, 1.0) if options.quick else (500, 2500, 5, options.delay)
    os.environ["DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"] = "1"  # a request of its own, at any moment
    print(f"Python {sys.version.split()[0]}")
    services = {
        "gcs": ("Google Cloud Storage (fake-gcs-server)", emulators.google),
        "s3": ("S3 (moto)", emulators.amazon),
    }
    with ExitStack() as stack:
        running: dict[str, emulators.Emulator] = {}
        for alias, (name, start) in services.items():
            try:
                running[alias] = stack.enter_context(start())
            except emulators.Missing as missing:
                print(f"\n{name}: not measured. {missing}")
        settings.configure(
            USE_TZ=True,
            STORAGES={alias: backend(alias, emulator.url) for alias, emulator in running.items()},
            JOBKIT={
                f"{alias}{suffix}": {"STORAGE": alias, "PREFIX": prefix, "CACHE": None}
                for alias in running
                for suffix, prefix in (("", "jobs"), ("-long", "long"))
            },
        )
        for alias, emulator in running.items():
            compare(services[alias][0], emulator, alias, few=few, many=many, rounds=rounds, delay=delay)
    print(NOTE, end="")


def backend(alias: str, url: str) -> dict[str, Any]:
    """An entry of STORAGES, as a site has it but for the address."""
    if alias == "gcs":
        os.environ["STORAGE_EMULATOR_HOST"] = url
        return {
            "BACKEND": "storages.backends.gcloud.GoogleCloudStorage",
            "OPTIONS": {"bucket_name": emulators.BUCKET},
        }
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": emulators.BUCKET,
            "endpoint_url": url,
            "access_key": "test",
            "secret_key": "test",
            "region_name": "us-east-1",
        },
    }


if __name__ == "__main__":
    main()
