from __future__ import annotations

import errno
import functools
import os
import random
import select
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from types import SimpleNamespace

import pytest
from django.core.files import locks
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage

from django_jobkit.exceptions import StorageMisconfigured, StorageUnavailable, VersionConflict
from django_jobkit.storages import ABSENT, ANY, directories
from django_jobkit.storages.filesystem import FileSystemJobStorage
from tests.storages.contract import NAME, StorageContract, check_document, document
from tests.storages.processes import run_processes, run_threads


def local(location: os.PathLike[str] | str, **options) -> FileSystemJobStorage:
    return FileSystemJobStorage(FileSystemStorage(location, **options))


@pytest.fixture
def storage(tmp_path):
    return local(tmp_path)


def everything_below(path: Path) -> list[str]:
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


class TestFileSystem(StorageContract):
    swaps_per_worker = 100

    @pytest.fixture
    def storage(self, tmp_path):
        return local(tmp_path)

    @pytest.fixture
    def reopen(self, tmp_path):
        return functools.partial(local, str(tmp_path))


def test_a_conflict_is_certain(storage):
    with pytest.raises(VersionConflict) as caught:
        storage.write(NAME, b"1", if_version="an old one")
    assert caught.value.certain


# What is left on the disk


def test_nothing_but_the_file_is_left(storage, tmp_path):
    version = storage.write(NAME, b"1")
    storage.write(NAME, b"2", if_version=version)
    with pytest.raises(VersionConflict):
        storage.write(NAME, b"3", if_version=version)
    assert everything_below(tmp_path) == ["jobs", "jobs/job-1", NAME]


def test_what_a_killed_writer_left_is_overwritten_and_never_shows(storage, tmp_path):
    left = tmp_path / "jobs/job-1/.status.json.tmp"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half a rec")
    left.chmod(0)
    assert list(storage.list_dirs("jobs/job-1")) == []
    storage.write(NAME, b"1")
    assert everything_below(tmp_path) == ["jobs", "jobs/job-1", NAME]


def test_what_a_killed_writer_left_is_not_counted_and_does_not_keep_a_directory(storage, tmp_path):
    storage.write(NAME, b"1")
    (tmp_path / "jobs/job-1/.status.json.tmp").write_bytes(b"")
    storage.delete(NAME)
    assert everything_below(tmp_path) == ["jobs"]
    storage.write(NAME, b"1")
    (tmp_path / "jobs/job-1/.status.json.tmp").write_bytes(b"")
    assert storage.delete_tree("jobs/job-1") == 1
    assert everything_below(tmp_path) == ["jobs"]


def test_deleting_the_last_file_leaves_the_storages_own_directory(storage, tmp_path):
    storage.write("status.json", b"")
    storage.delete("status.json")
    assert tmp_path.is_dir()


def test_hidden_directories_and_names_that_are_no_text_are_not_listed(storage, tmp_path):
    storage.write(NAME, b"")
    (tmp_path / "jobs/.trash").mkdir()
    os.mkdir(os.fsencode(tmp_path) + b"/jobs/caf\xe9")
    assert list(storage.list_dirs("jobs")) == ["job-1"]


def test_links_to_directories_are_listed_and_links_to_nowhere_are_not(storage, tmp_path):
    storage.write(NAME, b"")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "jobs/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "jobs/broken").symlink_to(tmp_path / "nowhere")
    (tmp_path / "jobs/round").symlink_to(tmp_path / "jobs/round")
    assert sorted(storage.list_dirs("jobs")) == ["job-1", "linked"]


def test_removing_a_tree_does_not_follow_links(storage, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_bytes(b"1")
    storage.write(NAME, b"")
    (tmp_path / "jobs/job-1/out").symlink_to(tmp_path / "precious")
    (tmp_path / "jobs/job-2").symlink_to(tmp_path / "precious")
    assert storage.delete_tree("jobs/job-1") == 2
    assert storage.delete_tree("jobs/job-2") == 0
    assert everything_below(tmp_path) == ["jobs", "precious", "precious/file"]


# Modes


@pytest.mark.parametrize(
    ("options", "umask", "file_mode", "directory_mode"),
    [
        ({}, 0o022, 0o644, 0o755),  # Django's default for files; directories as the umask has it
        ({}, 0o077, 0o644, 0o700),
        ({"file_permissions_mode": 0o640, "directory_permissions_mode": 0o750}, 0o077, 0o640, 0o750),
        ({"file_permissions_mode": 0o666, "directory_permissions_mode": 0o2775}, 0o022, 0o666, 0o2775),
    ],
)
def test_modes_follow_the_storages_options(tmp_path, options, umask, file_mode, directory_mode):
    before = os.umask(umask)
    try:
        storage = local(tmp_path, **options)
        storage.write(NAME, b"1")
        storage.write(NAME, b"2")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == file_mode
    assert stat.S_IMODE((tmp_path / "jobs").stat().st_mode) == directory_mode
    assert stat.S_IMODE((tmp_path / "jobs/job-1").stat().st_mode) == directory_mode


def test_without_a_file_mode_the_umask_decides(tmp_path, settings):
    settings.FILE_UPLOAD_PERMISSIONS = None
    before = os.umask(0o027)
    try:
        local(tmp_path).write(NAME, b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o640


# Readers and writers at once


def write_again_and_again(location: str, writer: int, stop_after: float) -> int:
    storage, turn, deadline = local(location), 0, time.monotonic() + stop_after
    while time.monotonic() < deadline:
        storage.write(NAME, document(writer, turn))
        storage.write(f"jobs/other-{writer}/status.json", b"1")
        storage.delete_tree(f"jobs/other-{writer}")
        turn += 1
    return turn


def read_again_and_again(location: str, stop_after: float) -> int:
    storage, reads, deadline = local(location), 0, time.monotonic() + stop_after
    while time.monotonic() < deadline:
        check_document(storage.read(NAME).data)
        listed = set(storage.list_dirs("jobs"))
        assert "job-1" in listed
        assert listed <= {"job-1", "other-0", "other-1"}
        assert list(storage.list_dirs("jobs/job-1")) == []
        reads += 1
    return reads


def mixed_work(location: str, number: int, seconds: float) -> int:
    if number < 2:
        return write_again_and_again(location, number, seconds)
    return read_again_and_again(location, seconds)


@pytest.mark.slow
def test_readers_in_other_processes_never_see_an_empty_partial_or_missing_record(storage, tmp_path):
    storage.write(NAME, document(0, 0))
    done = run_processes(mixed_work, [(str(tmp_path), number, 1.5) for number in range(4)])
    assert min(done) > 10
    assert everything_below(tmp_path) == ["jobs", "jobs/job-1", NAME]


def kill_writers(location: str, rounds: int) -> int:
    """Fork a writer and kill it at a random moment, again and again; how many left a temporary file behind.

    Runs in a process of its own, without threads, so that a plain fork is quick and safe.
    """
    storage, rng, left_behind = local(location), random.Random(), 0
    for _ in range(rounds):
        turn = int(storage.read(NAME).data.split()[1])
        read_end, write_end = os.pipe()
        writer = os.fork()
        if writer == 0:
            try:
                os.write(write_end, b"ready")
                while True:
                    turn += 1
                    storage.write(NAME, document(0, turn))
            finally:
                os._exit(1)
        assert os.read(read_end, 5) == b"ready"
        assert select.select([read_end], [], [], rng.uniform(0, 0.01))[0] == [], "nothing more is sent: this only waits"
        os.kill(writer, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(writer, 0)[1]), "the writer failed by itself"
        os.close(read_end)
        os.close(write_end)
        data = storage.read(NAME).data
        check_document(data)
        assert int(data.split()[1]) >= turn
        assert list(storage.list_dirs("jobs")) == ["job-1"]
        left_behind += len(everything_below(Path(location))) > 3
    return left_behind


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_a_whole_record_old_or_new(storage, tmp_path):
    storage.write(NAME, document(0, 0))
    [left_behind] = run_processes(kill_writers, [(str(tmp_path), 200)])
    # The lock died with its holder, and what was left behind is one file at most, gone with the next write.
    storage.write(NAME, b"after", if_version=storage.read(NAME).version)
    assert everything_below(tmp_path) == ["jobs", "jobs/job-1", NAME]
    assert left_behind > 0, "no kill hit a write: the moments were not random enough"


def count_and_remove(location: str, number: int) -> int:
    storage = local(location)
    for _ in range(100):
        if number % 2:
            storage.write(NAME, b"0")
        else:
            storage.delete_tree("jobs/job-1")
    return 0


def test_processes_that_write_and_remove_one_job_all_come_through(storage, tmp_path):
    run_processes(count_and_remove, [(str(tmp_path), number) for number in range(4)])
    storage.delete_tree("jobs/job-1")
    assert everything_below(tmp_path) == ["jobs"]


def test_a_job_filled_by_others_while_it_is_removed_goes_in_the_end(storage, tmp_path):
    """Outputs are saved straight through Django, which asks for no lock."""
    storage.write(NAME, b"")
    stop = threading.Event()

    def save_outputs() -> None:
        number = 0
        while not stop.is_set() and number < 2000:
            number += 1
            try:
                storage.storage.save(f"jobs/job-1/pages/{number}.txt", ContentFile(b""))
            except (FileNotFoundError, FileExistsError):
                continue  # its directory went away in mid-save: Django tells it in these two ways

    def work(number: int) -> None:
        if number:
            save_outputs()
            return
        try:
            for _ in range(20):
                storage.delete_tree("jobs/job-1")
        finally:
            stop.set()

    run_threads(work, 2)
    storage.delete_tree("jobs/job-1")
    assert everything_below(tmp_path) == ["jobs"]


def test_a_writer_that_keeps_the_lock_makes_others_unavailable_in_bounded_time(tmp_path):
    storage = FileSystemJobStorage(FileSystemStorage(tmp_path), timeout=0.2)
    storage.write(NAME, b"1")
    descriptor = os.open(tmp_path / "jobs/job-1", os.O_RDONLY)
    assert locks.lock(descriptor, locks.LOCK_EX)
    started = time.monotonic()
    for call in (
        lambda: storage.write(NAME, b"2"),
        lambda: storage.delete(NAME),
        lambda: storage.delete_tree("jobs/job-1"),
    ):
        with pytest.raises(StorageUnavailable, match="too long"):
            call()
    assert time.monotonic() - started < 5
    assert storage.read(NAME).data == b"1"
    os.close(descriptor)
    storage.write(NAME, b"2")


def test_who_waited_for_the_lock_of_a_removed_directory_waits_for_that_of_the_new_one(storage, tmp_path, monkeypatch):
    storage.write(NAME, b"1")
    directory = tmp_path / "jobs/job-1"
    turns, go_on = Queue(), Queue()

    def pause(seconds: float) -> None:
        turns.put("waiting")
        assert go_on.get(timeout=10)

    def locked() -> int:
        descriptor = os.open(directory, os.O_RDONLY)
        assert locks.lock(descriptor, locks.LOCK_EX)
        return descriptor

    monkeypatch.setattr(directories, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    old = locked()
    with ThreadPoolExecutor(1) as pool:
        write = pool.submit(storage.write, NAME, b"2")
        assert turns.get(timeout=10) == "waiting"
        (directory / "status.json").unlink()
        directory.rmdir()
        directory.mkdir()
        new = locked()
        os.close(old)
        go_on.put(True)
        assert turns.get(timeout=10) == "waiting"
        assert everything_below(directory) == []
        os.close(new)
        go_on.put(True)
        write.result(10)
    assert everything_below(directory) == ["status.json"]


def test_a_fork_in_mid_write_does_not_keep_the_lock(storage, monkeypatch):
    """The child has the parent's descriptor, and with it the lock, unless the parent unlocks in so many words."""
    real_replace, children = os.replace, []

    def fork_and_replace(source, target):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads about: this child does nothing
            child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        children.append(child)
        real_replace(source, target)

    monkeypatch.setattr(os, "replace", fork_and_replace)
    storage.write(NAME, b"1")
    monkeypatch.undo()
    try:
        FileSystemJobStorage(storage.storage, timeout=0.5).write(NAME, b"2")
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


# Faults


def test_a_directory_where_the_file_should_be_is_unavailable(storage, tmp_path):
    (tmp_path / NAME).mkdir(parents=True)
    for call in (
        lambda: storage.read(NAME),
        lambda: storage.write(NAME, b""),
        lambda: storage.write(NAME, b"", if_version=ABSENT),
        lambda: storage.delete(NAME),
    ):
        with pytest.raises(StorageUnavailable) as caught:
            call()
        assert isinstance(caught.value.__cause__, OSError)
    assert everything_below(tmp_path) == ["jobs", "jobs/job-1", NAME]


@pytest.mark.parametrize("blocked", ["jobs", "jobs/job-1"])
def test_a_file_where_a_directory_should_be_is_unavailable(storage, tmp_path, blocked):
    (tmp_path / blocked).parent.mkdir(exist_ok=True)
    (tmp_path / blocked).write_bytes(b"a file")
    for call in (
        lambda: list(storage.list_dirs(blocked)),
        lambda: storage.read(NAME),
        lambda: storage.write(NAME, b""),
        lambda: storage.delete_tree("jobs/job-1"),
    ):
        with pytest.raises(StorageUnavailable) as caught:
            call()
        assert isinstance(caught.value.__cause__, NotADirectoryError)
    assert (tmp_path / blocked).read_bytes() == b"a file"


def test_a_link_that_leads_to_itself_is_unavailable(storage, tmp_path):
    (tmp_path / "jobs").symlink_to(tmp_path / "jobs")
    for call in (lambda: list(storage.list_dirs("jobs")), lambda: storage.read(NAME), lambda: storage.write(NAME, b"")):
        with pytest.raises(StorageUnavailable):
            call()


AS_NOBODY = """
import os, sys
from django.conf import settings
settings.configure()
from tests.storages.test_filesystem import NAME, local
from django_jobkit.exceptions import StorageUnavailable
storage = local(sys.argv[1])
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
calls = {
    "read": lambda: storage.read(NAME),
    "write": lambda: storage.write(NAME, b"2"),
    "delete": lambda: storage.delete(NAME),
    "delete_tree": lambda: storage.delete_tree("jobs/job-1"),
    "list_dirs": lambda: list(storage.list_dirs("jobs")),
}
for name, call in calls.items():
    try:
        print(name, call())
    except StorageUnavailable as error:
        print(name, type(error.__cause__).__name__)
"""


def test_a_directory_that_may_not_be_read_is_unavailable(storage, tmp_path):
    """Not "no jobs" and not "not found". Root may read everything, so another user has to try."""
    storage.write(NAME, b"1")
    for parent in [tmp_path, *tmp_path.parents[:2]]:
        parent.chmod(0o755)  # pytest's own directories are for their owner alone
    (tmp_path / "jobs").chmod(0o000)
    root = Path(__file__).parents[2]
    try:
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(tmp_path)], capture_output=True, text=True, cwd=root, timeout=60
        )
    finally:
        (tmp_path / "jobs").chmod(0o755)
    assert done.stdout.split("\n")[:-1] == [
        f"{call} PermissionError" for call in ("read", "write", "delete", "delete_tree", "list_dirs")
    ], done.stderr
    assert storage.read(NAME).data == b"1"


WITH_A_LIMIT = """
import resource, signal, sys
from django.conf import settings
settings.configure()
from tests.storages.test_filesystem import NAME, local
from django_jobkit.exceptions import StorageUnavailable
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    local(sys.argv[1]).write(NAME, b"x" * 100_000)
except StorageUnavailable as error:
    print(error.__cause__.errno)
"""


def test_a_file_past_what_may_be_written_leaves_the_old_record_whole(storage, tmp_path):
    storage.write(NAME, b"old")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", WITH_A_LIMIT, str(tmp_path)], capture_output=True, text=True, cwd=root, timeout=60
    )
    assert done.stdout.strip() == str(errno.EFBIG), done.stderr
    assert storage.read(NAME).data == b"old"
    assert everything_below(tmp_path) == ["jobs", "jobs/job-1", NAME]


def test_a_full_disk_leaves_the_old_record_whole(tmp_path):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk; RLIMIT_FSIZE stands in for it above")
    try:
        storage = local(tmp_path)
        storage.write(NAME, b"old")
        for if_version in (storage.read(NAME).version, ANY):
            with pytest.raises(StorageUnavailable, match="space") as caught:
                storage.write(NAME, b"x" * 100_000, if_version=if_version)
            assert caught.value.__cause__.errno == errno.ENOSPC
            assert storage.read(NAME).data == b"old"
            assert everything_below(tmp_path) == ["jobs", "jobs/job-1", NAME]
        storage.write(NAME, b"new")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_file_system_that_cannot_lock_directories_is_misconfigured(storage, monkeypatch):
    def refuse(descriptor, flags):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(directories.locks, "lock", refuse)
    with pytest.raises(StorageMisconfigured, match="NFS"):
        storage.write(NAME, b"1")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_open_files_stay_few_however_much_goes_wrong(storage):
    """Descriptors are given back on every path: a listing cut short, a conflict, a lock not had."""
    storage.write(NAME, b"1")
    for number in range(30):
        storage.write(f"jobs/more-{number}/status.json", b"")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        next(iter(storage.list_dirs("jobs")))
        with pytest.raises(VersionConflict):
            storage.write(NAME, b"2", if_version="old")
        storage.write("jobs/gone/status.json", b"")
        storage.delete_tree("jobs/gone")
    assert len(os.listdir("/proc/self/fd")) <= before
