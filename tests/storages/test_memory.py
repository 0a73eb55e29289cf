from __future__ import annotations

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage

from django_jobkit.exceptions import StorageUnavailable, VersionConflict
from django_jobkit.storages.memory import MemoryJobStorage
from tests.storages.contract import NAME, StorageContract, increment
from tests.storages.processes import run_threads


class TestMemory(StorageContract):
    @pytest.fixture
    def storage(self):
        return MemoryJobStorage()


def test_adapters_around_one_django_storage_share_its_files_and_its_lock():
    django_storage = InMemoryStorage()
    MemoryJobStorage(django_storage).write(NAME, b"0")
    run_threads(lambda number: increment(MemoryJobStorage(django_storage), 20), 8)
    assert MemoryJobStorage(django_storage).read(NAME).data == b"160"


def test_two_storages_are_two_places():
    first, second = MemoryJobStorage(), MemoryJobStorage()
    first.write(NAME, b"1")
    with pytest.raises(FileNotFoundError):
        second.read(NAME)


def test_files_are_the_ones_of_the_django_storage():
    django_storage = InMemoryStorage()
    django_storage.save(NAME, ContentFile(b"from outside"))
    storage = MemoryJobStorage(django_storage)
    assert storage.read(NAME).data == b"from outside"
    storage.write(NAME, b"from inside")
    assert django_storage.open(NAME).read() == b"from inside"


def test_whoever_has_the_old_file_open_keeps_the_old_bytes():
    storage = MemoryJobStorage()
    storage.write(NAME, b"old")
    opened = storage.storage.open(NAME)
    storage.write(NAME, b"new")
    assert opened.read() == b"old"


def test_a_conflict_is_certain():
    storage = MemoryJobStorage()
    with pytest.raises(VersionConflict) as caught:
        storage.write(NAME, b"1", if_version="an old one")
    assert caught.value.certain


@pytest.mark.parametrize("name", ["jobs", "jobs/job-1"])
def test_a_directory_where_the_file_should_be_is_unavailable(name):
    storage = MemoryJobStorage()
    storage.write(NAME, b"")
    for call in (lambda: storage.read(name), lambda: storage.write(name, b""), lambda: storage.delete(name)):
        with pytest.raises(StorageUnavailable) as caught:
            call()
        assert isinstance(caught.value.__cause__, IsADirectoryError)
    assert storage.read(NAME).data == b""


def test_a_file_where_the_prefix_should_be_is_unavailable():
    storage = MemoryJobStorage()
    storage.write("jobs", b"")
    for call in (
        lambda: list(storage.list_dirs("jobs")),
        lambda: storage.read(NAME),
        lambda: storage.write(NAME, b""),
        lambda: storage.delete_tree("jobs/job-1"),
    ):
        with pytest.raises(StorageUnavailable):
            call()
