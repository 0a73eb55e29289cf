"""What both object storages must do between an emulator and a proxy that breaks things.

A subclass has the provider's way to refuse (``refusals``) and to list (``listing``). Its module has the fixtures
``emulator`` (an `Emulator`) and ``proxy`` (empty, in front of that one).
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from django_jobkit.exceptions import StorageMisconfigured, StorageUnavailable, VersionConflict
from django_jobkit.storages import ABSENT, StoredFile, attempts
from tests.storages.contract import NAME
from tests.storages.processes import run_processes, run_threads
from tests.storages.proxy import canned, hang, hang_in_body, lost, reset, status, truncated

OTHER = "jobs/job-2/status.json"

# What is done with a storage in which NAME holds b"old"; every action that changes something is there with and
# without a condition.
ACTIONS: dict[str, Callable[[Any], Any]] = {
    "read": lambda storage: storage.read(NAME),
    "overwrite": lambda storage: storage.write(NAME, b"new"),
    "swap": lambda storage: storage.write(NAME, b"new", if_version=storage.old_version),
    "create": lambda storage: storage.write(OTHER, b"new", if_version=ABSENT),
    "write a new one": lambda storage: storage.write(OTHER, b"new"),
    "list": lambda storage: list(storage.list_dirs("jobs")),
    "delete": lambda storage: storage.delete(NAME),
    "delete tree": lambda storage: storage.delete_tree("jobs/job-1"),
}
KINDS = {
    "read": "read",
    "overwrite": "write",
    "swap": "write",
    "create": "write",
    "write a new one": "write",
    "list": "list",
    "delete": "delete",
    "delete tree": "delete batch",
}
EVERYTHING = "read write list delete batch"


def check_done(action: str, direct: Any, result: Any) -> None:
    """That the action came to what it comes to without faults."""
    match action:
        case "read":
            assert result.data == b"old"
        case "overwrite" | "swap":
            assert direct.read(NAME) == StoredFile(b"new", result)
        case "create" | "write a new one":
            assert direct.read(OTHER) == StoredFile(b"new", result)
        case "list":
            assert result == ["job-1"]
        case "delete" | "delete tree":
            assert result in (None, 1)
            assert list(direct.list_dirs("jobs")) == []


@dataclass(frozen=True)
class Emulator:
    """A provider's service on loopback, and an empty bucket in it."""

    provider: Callable[..., Any]
    """Makes an adapter, given an address and a bucket: one of `tests.storages.providers`, for another process, too."""
    url: str
    bucket: str
    quick_provider: Callable[..., Any] | None = None
    """The same for this process, where there is a quicker way."""

    def adapter(self, url: str = "", **options: Any) -> Any:
        """One onto the emulator, or onto what else is at this address."""
        make = self.quick_provider or self.provider
        return make(url or self.url, options.pop("bucket", self.bucket), **options)

    def reopen(self) -> Callable[[], Any]:
        """Makes an adapter onto the emulator from scratch, in whatever process it is sent to."""
        return functools.partial(self.provider, self.url, self.bucket)


class RemoteStorageTests(ABC):
    refusals: ClassVar[dict[str, tuple[str, str]]]

    @pytest.fixture(autouse=True)
    def _short_pauses(self, monkeypatch):
        """How they grow is shown by the tests of `attempts`."""
        monkeypatch.setattr(attempts, "_FIRST_PAUSE", 0.01)

    @pytest.fixture
    def direct(self, emulator):
        """An adapter straight to the emulator."""
        return emulator.adapter()

    @pytest.fixture
    def storage(self, through):
        return filled(through(timeout=10))

    @pytest.fixture
    def hasty(self, through):
        """With just enough time for one request that hangs and one that doesn't."""
        return filled(through(timeout=1.6))

    @pytest.fixture
    def quick(self, through):
        """With so little time that nothing helps against a server that is broken for ever."""
        return filled(through(timeout=0.4))

    # Requests

    @pytest.mark.parametrize("action", ACTIONS)
    def test_each_call_is_one_request(self, storage, proxy, action):
        proxy.requests.clear()
        ACTIONS[action](storage)
        kinds = proxy.kinds()
        if action == "delete tree":
            assert kinds[0] == "list"
            assert kinds[1:] in (["batch"], ["batch", "delete"])  # where there is no batch, that is found out once
        else:
            assert kinds == [KINDS[action]]

    def test_a_missing_file_is_one_request_once_the_bucket_is_known(self, storage, proxy):
        proxy.requests.clear()
        with pytest.raises(FileNotFoundError):
            storage.read(OTHER)
        storage.delete(OTHER)
        assert proxy.kinds() == ["read", "delete"]

    def test_a_conflict_is_one_request_and_certain(self, storage, proxy):
        proxy.requests.clear()
        with pytest.raises(VersionConflict) as caught:
            storage.write(NAME, b"new", if_version=ABSENT)
        assert caught.value.certain
        assert proxy.kinds() == ["write"]

    def test_begin_is_a_read_and_a_write(self, storage, proxy):
        from django_jobkit.jobs import JobStatus, Recorder, StatusStore

        recorder = Recorder(StatusStore(storage))
        for job_id in ("job-1", "job-9"):
            storage.delete(f"jobs/{job_id}/status.json")
            proxy.requests.clear()
            assert recorder.begin(job_id, JobStatus(command="draw")) is False
            assert proxy.kinds() == ["read", "write"]
            proxy.requests.clear()
            recorder.record(job_id, JobStatus(command="draw", state="succeeded"))
            assert proxy.kinds() == ["read", "write"]

    def test_a_listing_is_read_page_by_page_and_never_looks_into_jobs(self, storage, proxy):
        proxy.break_next(canned(self.listing(2500)), "list", None)
        proxy.requests.clear()
        names = storage.list_dirs("jobs")
        first = next(names)
        assert len(proxy.requests) == 1, "the first page is there before the second is asked for"
        assert [first, *names] == [f"job-{number:04}" for number in range(2500)]
        assert proxy.kinds() == ["list"] * 3

    @abstractmethod
    def listing(self, count: int) -> Callable[[Any], tuple[str, str]]:
        """The service's answers to listings of a prefix with so many pseudo-directories, 1,000 at a time."""

    # Faults: once

    @pytest.mark.parametrize("code", ["429", "503"])
    @pytest.mark.parametrize("action", ACTIONS)
    def test_what_was_refused_for_now_is_repeated(self, storage, proxy, direct, action, code):
        proxy.break_next(status(int(code), self.refusals[code]), EVERYTHING)
        check_done(action, direct, ACTIONS[action](storage))

    @pytest.mark.parametrize("action", ACTIONS)
    def test_what_could_not_connect_is_repeated(self, storage, proxy, direct, action):
        proxy.refuse_connections()
        with_delay = threading.Timer(0.1, proxy.listen)
        with_delay.start()
        try:
            check_done(action, direct, ACTIONS[action](storage))
        finally:
            with_delay.join()

    @pytest.mark.parametrize("fault", [reset, status(500), status(504)], ids=["reset", "500", "504"])
    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_request_that_may_have_been_applied_and_was_not(self, storage, proxy, direct, action, fault):
        proxy.break_next(fault, EVERYTHING)
        check_done(action, direct, ACTIONS[action](storage))

    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_request_that_hangs_once(self, hasty, proxy, direct, action):
        proxy.break_next(hang, EVERYTHING)
        check_done(action, direct, ACTIONS[action](hasty))

    @pytest.mark.parametrize("action", ["read", "list", "overwrite"])
    def test_an_answer_that_hangs_in_the_middle(self, hasty, proxy, direct, action):
        proxy.break_next(hang_in_body, EVERYTHING)
        check_done(action, direct, ACTIONS[action](hasty))

    @pytest.mark.parametrize("fault", [lost(), truncated], ids=["lost", "truncated"])
    @pytest.mark.parametrize("action", ACTIONS)
    def test_what_was_applied_without_an_answer_counts_as_done(self, storage, proxy, direct, action, fault):
        proxy.break_next(fault, EVERYTHING)
        check_done(action, direct, ACTIONS[action](storage))

    # Faults: for ever

    @pytest.mark.parametrize("fault", [lost(), truncated], ids=["lost", "truncated"])
    @pytest.mark.parametrize("action", [action for action, kind in KINDS.items() if kind == "write"])
    def test_a_write_whose_answers_are_always_lost_is_done(self, hasty, proxy, direct, action, fault):
        proxy.break_next(fault, "write", None)
        check_done(action, direct, ACTIONS[action](hasty))

    @pytest.mark.parametrize("code", ["429", "503"])
    @pytest.mark.parametrize("action", ACTIONS)
    def test_what_is_refused_for_ever_is_unavailable_after_some_attempts(self, quick, proxy, direct, action, code):
        proxy.break_next(status(int(code), self.refusals[code]), EVERYTHING, None)
        self.check_unavailable(quick, proxy, direct, action, attempts=2)

    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_server_that_is_not_there_is_unavailable(self, quick, proxy, direct, action):
        proxy.refuse_connections()
        self.check_unavailable(quick, proxy, direct, action, attempts=0)

    @pytest.mark.parametrize("fault", [reset, hang], ids=["reset", "hang"])
    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_server_that_never_answers_is_unavailable_in_bounded_time(self, quick, proxy, direct, action, fault):
        proxy.break_next(fault, EVERYTHING, None)
        self.check_unavailable(quick, proxy, direct, action, attempts=2)

    @pytest.mark.parametrize("action", ["read", "list"])
    def test_an_answer_that_is_always_cut_is_unavailable(self, quick, proxy, direct, action):
        proxy.break_next(truncated, EVERYTHING, None)
        self.check_unavailable(quick, proxy, direct, action, attempts=2)

    def check_unavailable(self, storage, proxy, direct, action: str, attempts: int) -> None:
        proxy.requests.clear()
        started = time.monotonic()
        with pytest.raises(StorageUnavailable) as caught:
            ACTIONS[action](storage)
        assert time.monotonic() - started < 3, "0.4 seconds are what it had, but the machine may be busy"
        assert not isinstance(caught.value, StorageMisconfigured)
        assert caught.value.__cause__ is not None
        assert "media" in str(caught.value)
        assert len(proxy.requests) >= attempts
        assert direct.read(NAME).data == b"old"

    # Faults that a person has to mend

    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_missing_permission_names_bucket_alias_and_permission_at_once(self, storage, proxy, direct, action):
        proxy.break_next(status(403, self.refusals["403"]), EVERYTHING, None)
        proxy.requests.clear()
        with pytest.raises(StorageMisconfigured, match="permission") as caught:
            ACTIONS[action](storage)
        assert storage.storage.bucket_name in str(caught.value)
        assert "'media'" in str(caught.value)
        assert len(proxy.requests) == 1
        assert direct.read(NAME).data == b"old"

    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_bucket_that_is_gone_names_bucket_and_alias(self, storage, proxy, action):
        proxy.break_next(status(404, self.refusals["404 bucket"]), EVERYTHING, None)
        with pytest.raises(StorageMisconfigured, match="no such bucket") as caught:
            ACTIONS[action](storage)
        assert storage.storage.bucket_name in str(caught.value)
        assert "'media'" in str(caught.value)

    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_wrong_bucket_is_never_no_jobs_and_never_not_found(self, through, action):
        """From the first call on, and also where the service doesn't say what it is that is missing."""
        storage = through(bucket="no-such-bucket")
        storage.old_version = "1"
        with pytest.raises(StorageMisconfigured, match="no-such-bucket"):
            ACTIONS[action](storage)

    def test_a_missing_object_is_not_found_and_its_delete_is_done(self, storage, proxy):
        proxy.break_next(status(404, self.refusals["404 object"]), "read delete", None)
        with pytest.raises(FileNotFoundError):
            storage.read(NAME)
        storage.delete(NAME)

    def test_anything_else_is_unavailable(self, storage, proxy):
        proxy.break_next(status(418), EVERYTHING, None)
        for action in ACTIONS.values():
            with pytest.raises(StorageUnavailable):
                action(storage)

    # What others have written stays

    def test_an_overwrite_without_an_answer_does_not_undo_a_later_write(self, storage, proxy, direct):
        proxy.break_next(lost(lambda: direct.write(NAME, b"theirs")), "write")
        with pytest.raises(StorageUnavailable, match="not known"):
            storage.write(NAME, b"ours")
        assert direct.read(NAME).data == b"theirs"

    def test_a_delete_without_an_answer_does_not_undo_a_later_write(self, storage, proxy, direct):
        proxy.break_next(lost(lambda: direct.write(NAME, b"theirs", if_version=ABSENT)), "delete")
        with pytest.raises(StorageUnavailable, match="not known"):
            storage.delete(NAME)
        assert direct.read(NAME).data == b"theirs"

    @pytest.mark.parametrize("action", ["overwrite", "delete"])
    def test_a_version_that_was_never_seen_is_not_touched_again(self, through, proxy, direct, action):
        """Whether it is the one from before the call or a later one, nobody can tell."""
        storage = through()
        direct.write(NAME, b"old or theirs")
        proxy.break_next(reset, "write delete")
        with pytest.raises(StorageUnavailable, match="not known"):
            ACTIONS[action](storage)
        assert direct.read(NAME).data == b"old or theirs"

    def test_a_swap_without_an_answer_that_others_have_built_on_is_a_conflict(self, storage, proxy, direct):
        proxy.break_next(lost(lambda: direct.write(NAME, b"theirs", if_version=direct.read(NAME).version)), "write")
        with pytest.raises(VersionConflict) as caught:
            storage.write(NAME, b"ours", if_version=storage.old_version)
        assert not caught.value.certain
        assert direct.read(NAME).data == b"theirs"

    def test_a_refused_overwrite_that_others_have_replaced_is_not_sent_again(self, storage, proxy, direct):
        """The look still finds the version that we knew; the repetition is conditional on it, and meets theirs."""

        def answer_and_then_write(handler, request, forward):
            answer = forward(request)
            direct.write(NAME, b"theirs")
            handler.answer(answer)

        proxy.break_next(reset, "write")
        proxy.break_next(answer_and_then_write, "read")
        with pytest.raises(StorageUnavailable, match="not known"):
            storage.write(NAME, b"ours")
        assert direct.read(NAME).data == b"theirs"

    @pytest.mark.parametrize("action", ["overwrite", "swap", "create", "write a new one", "delete"])
    def test_what_cannot_be_looked_at_afterwards_stays_in_doubt(self, quick, proxy, action):
        proxy.break_next(reset, "write delete", None)
        proxy.break_next(status(403, self.refusals["403"]), "read", None)
        with pytest.raises(StorageUnavailable, match="not known") as caught:
            ACTIONS[action](quick)
        assert not isinstance(caught.value, StorageMisconfigured)

    def test_a_conflict_that_cannot_be_looked_into_is_not_certain(self, storage, proxy):
        proxy.break_next(lost(), "write")
        proxy.break_next(status(403, self.refusals["403"]), "read", None)
        with pytest.raises(VersionConflict) as caught:
            storage.write(NAME, b"ours", if_version=storage.old_version)
        assert not caught.value.certain

    # Removing trees

    def test_a_tree_of_some_pages_is_removed_page_by_page(self, through, proxy):
        storage = through()
        storage.page = 10
        for number in range(25):
            storage.write(f"jobs/job-1/{number:02}.json", b"")
        proxy.requests.clear()
        assert storage.delete_tree("jobs/job-1") == 25
        assert proxy.kinds().count("list") == 3
        assert list(storage.list_dirs("jobs")) == []

    # Threads and processes

    @pytest.mark.parametrize("concurrency", [4, 32])
    def test_32_threads_share_the_connections_without_a_warning(self, through, proxy, caplog, concurrency):
        storage = through(concurrency=concurrency)
        for number in range(8):
            storage.write(f"jobs/job-{number}/status.json", str(number).encode())
        caplog.set_level(logging.WARNING)

        def work(number: int) -> None:
            for turn in range(6):
                job = (number + turn) % 8
                assert storage.read(f"jobs/job-{job}/status.json").data == str(job).encode()

        run_threads(work, 32)
        assert [record.getMessage() for record in caplog.records] == []

    def test_a_fork_after_use_reads_right_data_in_parent_and_child(self, storage, emulator):
        for number in range(20):
            storage.write(f"jobs/job-{number}/status.json", str(number).encode() * 100)
        assert run_processes(read_on_both_sides_of_a_fork, [(emulator.reopen(),)]) == [True]


def filled(storage):
    storage._client.get()  # not in the time of the first call
    storage.old_version = storage.write(NAME, b"old")
    return storage


def read_on_both_sides_of_a_fork(reopen) -> bool:
    """In a process of its own, without threads, so that a plain fork is safe."""
    storage = reopen()

    def read_all(numbers) -> bool:
        return all(
            storage.read(f"jobs/job-{number}/status.json").data == str(number).encode() * 100
            for _ in range(5)
            for number in numbers
        )

    assert read_all(range(20))
    before = storage._client.get()
    child = os.fork()
    if child == 0:
        right = False
        try:
            right = storage._client.get() is not before
            right &= read_all(range(19, -1, -1))  # not in step with the parent, whose answers would be right by chance
        finally:
            os._exit(0 if right else 1)
    right = storage._client.get() is before and read_all(range(20))
    return right and os.waitpid(child, 0)[1] == 0
