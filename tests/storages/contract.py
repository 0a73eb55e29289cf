"""What every storage of the kit must do. A new adapter is finished when a subclass of `StorageContract` passes.

A subclass has a fixture ``storage`` (an adapter onto an empty place), and tells by the fixture ``reopen`` how to make
another adapter onto the same place: a function without arguments that can be sent to another process, or None where
no other process can see the place.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from django_jobkit.exceptions import VersionConflict
from django_jobkit.storages import ABSENT, JobStorage, StoredFile, adapt
from tests.storages.processes import run_processes, run_threads

NAME = "jobs/job-1/status.json"

CONTENTS = {
    "empty": b"",
    "one byte": b"x",
    "zero bytes": b"\x00\x00",
    "line ends": b"\r\n\r\n\n",
    "no text": bytes(range(256)),
    "a quarter": random.Random(1).randbytes(4096),
    "a megabyte": random.Random(2).randbytes(1 << 20),
}
SEGMENTS = [
    "plain",
    "with space",
    " spaces around ",
    "per%cent",
    "per%20cent",
    "hash#tag",
    "what?now",
    "a+b&c=d;e",
    "quote'\"",
    "dots..in.name",
    "héllo",
    "漫画-第1話",
    "👍",
]


class StorageContract:
    swaps_per_worker = 25
    """How often each of several threads or processes increments the counter."""
    whole_reads = True
    """Whether readers are promised old bytes or new ones, and nothing else; without it nobody can count, too."""

    @pytest.fixture
    def reopen(self) -> Callable[[], JobStorage] | None:
        return None

    # One file

    @pytest.mark.parametrize("data", CONTENTS.values(), ids=CONTENTS.keys())
    def test_what_was_written_is_read_back_with_its_version(self, storage, data):
        version = storage.write(NAME, data)
        assert storage.read(NAME) == StoredFile(data, version)

    @pytest.mark.parametrize("segment", SEGMENTS)
    def test_any_text_can_be_part_of_a_name(self, storage, segment):
        version = storage.write(f"jobs/{segment}/{segment}.json", b"1")
        assert storage.read(f"jobs/{segment}/{segment}.json") == StoredFile(b"1", version)
        assert list(storage.list_dirs("jobs")) == [segment]
        storage.write(f"jobs/{segment}/{segment}.json", b"2", if_version=version)
        assert storage.delete_tree(f"jobs/{segment}") == 1
        assert list(storage.list_dirs("jobs")) == []

    def test_names_that_differ_in_one_odd_character_are_different_files(self, storage):
        names = [f"jobs/{segment}/status.json" for segment in SEGMENTS]
        for name in names:
            storage.write(name, name.encode())
        assert [storage.read(name).data.decode() for name in names] == names
        assert sorted(storage.list_dirs("jobs")) == sorted(SEGMENTS)

    def test_a_write_replaces_the_whole_file(self, storage):
        storage.write(NAME, b"long" * 1000)
        storage.write(NAME, b"short")
        assert storage.read(NAME).data == b"short"

    def test_a_missing_file_is_file_not_found(self, storage):
        with pytest.raises(FileNotFoundError):
            storage.read(NAME)
        storage.write("jobs/job-1/other.json", b"")
        with pytest.raises(FileNotFoundError):
            storage.read(NAME)

    def test_other_bytes_have_another_version(self, storage):
        first = storage.write(NAME, b"1")
        assert isinstance(first, str)
        assert storage.write(NAME, b"2") != first

    def test_delete_removes_one_file_and_may_be_repeated(self, storage):
        storage.write(NAME, b"1")
        storage.write("jobs/job-1/summary.json", b"2")
        storage.delete(NAME)
        storage.delete(NAME)
        with pytest.raises(FileNotFoundError):
            storage.read(NAME)
        assert storage.read("jobs/job-1/summary.json").data == b"2"

    def test_delete_of_what_never_was_is_no_error(self, storage):
        storage.delete("nothing/at/all.json")

    # Conditional writes

    def test_create_only_creates(self, storage):
        version = storage.write(NAME, b"1", if_version=ABSENT)
        assert storage.read(NAME) == StoredFile(b"1", version)

    def test_create_only_leaves_what_is_there(self, storage):
        version = storage.write(NAME, b"1")
        with pytest.raises(VersionConflict):
            storage.write(NAME, b"2", if_version=ABSENT)
        assert storage.read(NAME) == StoredFile(b"1", version)

    def test_create_only_works_again_after_a_delete(self, storage):
        storage.write(NAME, b"1")
        storage.delete(NAME)
        storage.write(NAME, b"2", if_version=ABSENT)
        assert storage.read(NAME).data == b"2"

    def test_a_write_on_the_current_version_replaces(self, storage):
        version = storage.write(NAME, b"1")
        version = storage.write(NAME, b"2", if_version=version)
        version = storage.write(NAME, b"3", if_version=storage.read(NAME).version)
        assert storage.read(NAME) == StoredFile(b"3", version)

    def test_a_write_on_an_old_version_leaves_the_new_bytes(self, storage):
        old = storage.write(NAME, b"1")
        new = storage.write(NAME, b"2")
        with pytest.raises(VersionConflict):
            storage.write(NAME, b"3", if_version=old)
        assert storage.read(NAME) == StoredFile(b"2", new)

    def test_a_write_on_the_version_of_a_deleted_file_does_not_bring_it_back(self, storage):
        version = storage.write(NAME, b"1")
        storage.delete(NAME)
        with pytest.raises(VersionConflict):
            storage.write(NAME, b"2", if_version=version)
        with pytest.raises(FileNotFoundError):
            storage.read(NAME)
        assert list(storage.list_dirs("jobs")) == []

    # Directories

    def test_a_directory_is_listed_once_however_many_files_it_has(self, storage):
        for job in range(3):
            for number in range(4):
                storage.write(f"jobs/job-{job}/{number}.json", b"")
        listed = list(storage.list_dirs("jobs"))
        assert sorted(listed) == ["job-0", "job-1", "job-2"]

    def test_files_and_deeper_directories_are_not_listed(self, storage):
        storage.write("jobs/index.json", b"")
        storage.write("jobs/job-1/pages/1/page.json", b"")
        assert list(storage.list_dirs("jobs")) == ["job-1"]
        assert list(storage.list_dirs("jobs/job-1")) == ["pages"]

    def test_a_prefix_is_a_whole_segment(self, storage):
        storage.write("music/a/status.json", b"")
        storage.write("music2/b/status.json", b"")
        assert list(storage.list_dirs("music")) == ["a"]
        assert storage.delete_tree("music") == 1
        assert list(storage.list_dirs("music2")) == ["b"]

    def test_a_slash_after_the_prefix_changes_nothing(self, storage):
        storage.write(NAME, b"")
        assert list(storage.list_dirs("jobs/")) == ["job-1"]
        assert storage.delete_tree("jobs/job-1/") == 1

    def test_nothing_is_listed_where_nothing_is(self, storage):
        assert list(storage.list_dirs("jobs")) == []

    def test_the_empty_prefix_is_the_top(self, storage):
        storage.write(NAME, b"")
        storage.write("other/a.json", b"")
        assert sorted(storage.list_dirs("")) == ["jobs", "other"]

    def test_a_directory_goes_with_its_last_file(self, storage):
        storage.write(NAME, b"")
        storage.write("jobs/job-2/status.json", b"")
        storage.delete(NAME)
        assert list(storage.list_dirs("jobs")) == ["job-2"]

    def test_a_removed_tree_is_gone_and_counted(self, storage):
        for name in ("status.json", "chart.svg", "pages/1.json", "pages/deep/2.json"):
            storage.write(f"jobs/job-1/{name}", b"")
        storage.write("jobs/job-10/status.json", b"")
        assert storage.delete_tree("jobs/job-1") == 4
        assert list(storage.list_dirs("jobs")) == ["job-10"]
        with pytest.raises(FileNotFoundError):
            storage.read("jobs/job-1/pages/1.json")
        assert storage.delete_tree("jobs/job-1") == 0

    def test_a_removed_tree_can_be_written_again(self, storage):
        storage.write(NAME, b"1")
        storage.delete_tree("jobs/job-1")
        storage.write(NAME, b"2", if_version=ABSENT)
        assert storage.read(NAME).data == b"2"

    @pytest.mark.parametrize("prefix", ["", "/", ".", "..", "jobs/..", "jobs/../jobs"])
    def test_everything_at_once_is_never_removed(self, storage, prefix):
        storage.write(NAME, b"1")
        with pytest.raises(Exception, match="Refusing"):
            storage.delete_tree(prefix)
        assert storage.read(NAME).data == b"1"

    @pytest.mark.parametrize("name", ["../outside.json", "jobs/../../outside.json"])
    def test_no_name_leads_out_of_the_storage(self, storage, name):
        from django.core.exceptions import SuspiciousOperation

        for call in (
            lambda: storage.read(name),
            lambda: storage.write(name, b""),
            lambda: storage.delete(name),
            lambda: list(storage.list_dirs(name)),
        ):
            with pytest.raises(SuspiciousOperation):
                call()

    # Several at once

    def test_an_adapter_says_what_it_is(self, storage):
        assert isinstance(storage.atomic_swap, bool)
        assert adapt(storage) is storage

    def test_another_adapter_sees_the_same_files(self, storage, reopen):
        if reopen is None:
            pytest.skip("nobody else can see this storage")
        other = reopen()
        version = storage.write(NAME, b"1")
        assert other.read(NAME) == StoredFile(b"1", version)
        other.write(NAME, b"2", if_version=version)
        with pytest.raises(VersionConflict):
            storage.write(NAME, b"3", if_version=version)

    def test_one_of_many_threads_creates(self, storage):
        wins = run_threads(lambda number: create(storage, str(number)), 8)
        assert wins.count(True) == 1
        assert storage.read(NAME).data == str(wins.index(True)).encode()

    def test_no_increment_of_many_threads_is_lost(self, storage):
        self.require_whole_reads()
        storage.write(NAME, b"0")
        run_threads(lambda number: increment(storage, self.swaps_per_worker), 8)
        assert storage.read(NAME).data == str(8 * self.swaps_per_worker).encode()

    def test_readers_see_whole_files_while_others_write(self, storage):
        self.require_whole_reads()
        storage.write(NAME, document(0, 1))
        done = threading.Event()

        def work(number: int) -> int:
            if number < 2:
                try:
                    for turn in range(self.swaps_per_worker * 2):
                        storage.write(NAME, document(number, turn))
                finally:
                    done.set()
                return 0
            reads = 0
            while not done.is_set() or not reads:
                check_document(storage.read(NAME).data)
                reads += 1
            return reads

        assert sum(run_threads(work, 4)) > 0

    def test_two_documents_written_at_once_leave_one_of_them(self, storage):
        for turn in range(5):
            run_threads(lambda number, turn=turn: storage.write(NAME, document(number, turn * 50)), 2)
            check_document(storage.read(NAME).data)

    def test_writers_and_removers_do_not_trip_over_each_other(self, storage):
        def work(number: int) -> None:
            for _ in range(self.swaps_per_worker):
                if number % 2:
                    storage.write(NAME, b"1")
                else:
                    storage.delete_tree("jobs/job-1")

        run_threads(work, 4)
        storage.delete_tree("jobs/job-1")
        assert list(storage.list_dirs("jobs")) == []

    def test_one_of_eight_processes_creates(self, storage, reopen):
        self.require_processes(storage, reopen)
        wins = run_processes(create_elsewhere, [(reopen, str(number)) for number in range(8)])
        assert wins.count(True) == 1
        assert storage.read(NAME).data == str(wins.index(True)).encode()

    def test_no_increment_of_eight_processes_is_lost(self, storage, reopen):
        self.require_processes(storage, reopen)
        storage.write(NAME, b"0")
        run_processes(increment_elsewhere, [(reopen, self.swaps_per_worker)] * 8)
        assert storage.read(NAME).data == str(8 * self.swaps_per_worker).encode()

    def require_whole_reads(self) -> None:
        if not self.whole_reads:
            pytest.skip("a reader of this storage may see half a file")

    def require_processes(self, storage: JobStorage, reopen: Callable[[], JobStorage] | None) -> None:
        if reopen is None or not storage.atomic_swap:
            pytest.skip("this storage promises nothing between processes")


def create(storage: JobStorage, text: str) -> bool:
    try:
        storage.write(NAME, text.encode(), if_version=ABSENT)
    except VersionConflict:
        # The one that won may be this one's own write, sent twice since its answer was lost.
        return storage.read(NAME).data == text.encode()
    return True


def increment(storage: JobStorage, times: int) -> None:
    for _ in range(times):
        while True:
            file = storage.read(NAME)
            try:
                storage.write(NAME, str(int(file.data) + 1).encode(), if_version=file.version)
                break
            except VersionConflict:
                continue


def create_elsewhere(reopen: Callable[[], JobStorage], text: str) -> bool:
    return create(reopen(), text)


def increment_elsewhere(reopen: Callable[[], JobStorage], times: int) -> None:
    increment(reopen(), times)


def document(writer: int, turn: int) -> bytes:
    """Bytes that tell, by themselves, whether they are whole: the first two numbers say what must follow."""
    return f"{writer} {turn} ".encode() + bytes([65 + writer]) * (turn * 97 % 20_000)


def check_document(data: bytes) -> None:
    writer, turn, _ = data.split(b" ")
    assert data == document(int(writer), int(turn))
