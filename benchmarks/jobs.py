"""What the rules of a job cost: counts of storage calls, and times as ratios to the standard library's.

    python benchmarks/jobs.py            the figures of the README
    python benchmarks/jobs.py --quick    the same on small inputs, to see that it runs

Times differ from run to run and machine to machine; the ratios hardly do. Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
import timeit
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django_jobkit.jobs import (
    IDListCache,
    JobHistory,
    JobStatus,
    Recorder,
    State,
    StatusStore,
    TTLCache,
    codec,
    ids,
    select_ids,
)
from django_jobkit.jobs.files import ANY, IfVersion, StoredFile


class CountingStorage:
    """Files in a dict; counts what is asked of it, and how much of it at a time."""

    atomic_swap = True

    def __init__(self) -> None:
        self.files: dict[str, StoredFile] = {}
        self.calls: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def read(self, name: str) -> StoredFile:
        with self._lock:
            self.calls["read"] += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            time.sleep(0.001)  # long enough for reads to overlap
            if name not in self.files:
                raise FileNotFoundError(name)
            return self.files[name]
        finally:
            with self._lock:
                self.at_once -= 1

    def write(self, name: str, data: bytes, *, if_version: IfVersion = ANY) -> str:
        with self._lock:
            self.calls["write"] += 1
            self.files[name] = StoredFile(data, str(self.calls["write"]))
            return self.files[name].version

    def delete(self, name: str) -> None:
        self.calls["delete"] += 1
        self.files.pop(name, None)

    def delete_tree(self, prefix: str) -> int:
        raise SystemExit("not measured")

    def list_dirs(self, prefix: str) -> Iterator[str]:
        self.calls["list"] += 1
        yield from {name.split("/")[1]: None for name in self.files if name.startswith(prefix + "/")}


class DictCache:
    """As much of a Django cache as is asked for, in a dict; counts commands."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.commands = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.commands += 1
        return self.values.get(key, default)

    def get_many(self, keys: list[str]) -> dict[str, Any]:
        self.commands += 1
        return {key: self.values[key] for key in keys if key in self.values}

    def set(self, key: str, value: Any, timeout: float | None = None) -> None:
        self.commands += 1
        self.values[key] = value

    def set_many(self, data: dict[str, Any], timeout: float | None = None) -> list[str]:
        self.commands += 1
        self.values.update(data)
        return []

    def add(self, key: str, value: Any, timeout: float | None = None) -> bool:
        self.commands += 1
        if key in self.values:
            return False
        self.values[key] = value
        return True

    def touch(self, key: str, timeout: float | None = None) -> bool:
        self.commands += 1
        return key in self.values

    def delete(self, key: str) -> bool:
        self.commands += 1
        return self.values.pop(key, None) is not None

    def delete_many(self, keys: list[str]) -> None:
        self.commands += 1
        for key in keys:
            self.values.pop(key, None)


def per_call(function: Callable[[], object], number: int) -> float:
    """Microseconds per call, the best of five."""
    return min(timeit.repeat(function, number=number, repeat=5)) / number * 1e6


def counts(jobs: int) -> None:
    print(f"\nStorage calls (read, write, list) and cache commands; history of {jobs} jobs")
    storage, cache = CountingStorage(), DictCache()
    store = StatusStore(storage)
    recorder = Recorder(store)
    for n in range(jobs):
        store.save(f"job-20260101-{n // 3600:02}{n // 60 % 60:02}{n % 60:02}-x", JobStatus(state=State.SUCCEEDED))
    history = JobHistory(store, "jobs", ids_cache=IDListCache(cache), metadata_cache=TTLCache(cache))
    steps: list[tuple[str, Callable[[], object]]] = [
        ("record queued", lambda: recorder.record("j", JobStatus(state=State.QUEUED))),
        ("read one status", lambda: store.get("j")),
        ("begin", lambda: recorder.begin("j", JobStatus(state=State.RUNNING))),
        ("record the end", lambda: recorder.record("j", JobStatus(state=State.SUCCEEDED))),
        ("page of 20, cold", lambda: history.page(1, 20)),
        ("page of 20, warm", lambda: history.page(1, 20)),
    ]
    for name, step in steps:
        storage.calls.clear()
        storage.most_at_once = cache.commands = 0
        step()
        calls = ", ".join(f"{count} {call}" for call, count in sorted(storage.calls.items())) or "none"
        print(f"  {name:<20} {calls:<20} {storage.most_at_once:>3} reads at a time {cache.commands:>3} cache commands")


def mixed_ids(count: int) -> list[str]:
    source = random.Random(1)
    start = datetime(2020, 1, 1, tzinfo=UTC)
    prefixes = ["job", "photo-album", "pod", "zine", "daily_zip"]
    return [
        ids.new(source.choice(prefixes), now=start + timedelta(seconds=source.randrange(6 * 365 * 86400)))
        for _ in range(count)
    ]


def sorting(count: int) -> None:
    print(f"\nselect_ids over {count:,} mixed IDs with ids.sort_key, page 1 of 20 (and one in the middle)")
    job_ids = mixed_ids(count)
    plain = min(timeit.repeat(lambda: sorted(job_ids), number=1, repeat=3))
    for name, page in (("first page", 1), ("middle page", count // 40)):
        taken = min(timeit.repeat(lambda page=page: select_ids(job_ids, page, 20, ids.sort_key), number=1, repeat=3))
        tracemalloc.start()
        select_ids(job_ids, page, 20, ids.sort_key)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"  {name:<12} {taken / plain:5.2f} times sorted() of the same list; {peak / 1e6:6.1f} MB beyond it")


def calls(number: int) -> None:
    print("\nPer call, microseconds")
    job_id = "photo-album-20260614-071952-0c9d8e7f6a5b"
    status = JobStatus(
        job_id=job_id,
        command="generate",
        state=State.RUNNING,
        title="海の歌",
        attempts=2,
        queued_at=datetime.now(UTC),
        updated_at=datetime.now(UTC),
        started_at=datetime.now(UTC),
        progress_current=3,
        progress_total=10,
        outputs=["summary.json", "chart.svg"],
    )
    data = codec.encode(status)
    document = json.loads(data)
    print(f"  ids.sanitize        {per_call(lambda: ids.sanitize(job_id), number):7.2f}")
    print(f"  ids.sanitize (path) {per_call(lambda: ids.sanitize('jobs/' + job_id), number):7.2f}")
    print(f"  ids.sort_key        {per_call(lambda: ids.sort_key(job_id), number):7.2f}")
    for name, ours, theirs in (
        ("codec.encode", lambda: codec.encode(status), lambda: json.dumps(document, ensure_ascii=False).encode()),
        ("codec.decode", lambda: codec.decode(data, JobStatus), lambda: json.loads(data)),
    ):
        kit, plain = per_call(ours, number), per_call(theirs, number)
        print(f"  {name:<19} {kit:7.2f}   json on the same {len(data)} bytes {plain:5.2f}   ratio {kit / plain:4.1f}")


def progress(number: int) -> None:
    from django_jobkit.jobs.run import Run
    from django_jobkit.tracking import Job

    recorder = Recorder(StatusStore(CountingStorage()))
    begun = JobStatus(state=State.RUNNING)
    job = Job(None, "a", 1)  # type: ignore[arg-type]  # no kit is needed to say how far one is
    claim = recorder.claim("a", begun)
    assert claim is not None
    job._run = Run(recorder, "a", claim, begun, live=job.write_into, interval=3600)
    job.progress(0, number, "Counting")
    medians = sorted(timeit.repeat(lambda: job.progress(1, number, "Counting"), number=number, repeat=9))
    print(f"  Job.progress        {medians[4] / number * 1e6:7.2f}   per call that writes nothing, median of nine")
    job._run.finish(lambda status: None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs: shows that it runs, not how fast")
    quick = parser.parse_args().quick
    print(f"Python {sys.version.split()[0]}")
    counts(1000)
    sorting(2000 if quick else 1_000_000)
    calls(10 if quick else 20_000)
    progress(10 if quick else 200_000)


if __name__ == "__main__":
    main()
