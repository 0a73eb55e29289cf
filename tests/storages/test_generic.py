from __future__ import annotations

import os
import threading

import pytest
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, InMemoryStorage, Storage

from django_jobkit.exceptions import StorageMisconfigured, StorageUnavailable, VersionConflict
from django_jobkit.storages import ABSENT
from django_jobkit.storages.generic import GenericJobStorage
from tests.storages.contract import NAME, StorageContract


class DictStorage(Storage):
    """A small working storage like those of object stores: flat names, overwriting, no directories."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.lock = threading.Lock()

    def _key(self, name: str) -> str:
        if ".." in name.split("/"):
            raise SuspiciousFileOperation(name)
        return name

    def _open(self, name, mode="rb"):
        try:
            return ContentFile(self.files[self._key(name)])
        except KeyError:
            raise FileNotFoundError(name) from None

    def _save(self, name, content):
        self.files[self._key(name)] = content.read()
        return name

    def delete(self, name):
        self.files.pop(self._key(name), None)

    def exists(self, name):
        return self._key(name) in self.files

    def get_available_name(self, name, max_length=None):
        return name

    def listdir(self, path):
        start = f"{self._key(path).rstrip('/')}/".lstrip("/")
        below = [name[len(start) :] for name in list(self.files) if name.startswith(start)]
        directories = [name.split("/")[0] + "/" for name in below if "/" in name]
        return directories, [name for name in below if "/" not in name]


class TestGenericOverAnObjectStore(StorageContract):
    @pytest.fixture
    def storage(self):
        return GenericJobStorage(DictStorage())


class TestGenericOverRealDirectories(StorageContract):
    """Django's own `save` empties a file before it fills it again, so nothing is promised while others write."""

    whole_reads = False

    @pytest.fixture
    def storage(self, tmp_path):
        return GenericJobStorage(FileSystemStorage(tmp_path, allow_overwrite=True))


def test_a_directory_that_is_made_anew_while_it_is_removed_is_emptied_again(tmp_path):
    class Storage(FileSystemStorage):
        made_anew = False

        def delete(self, name):
            if name == "jobs/job-1" and not self.made_anew:
                # Django looks whether it is a directory, finds nothing, and takes it for a file.
                self.made_anew = True
                self.save(NAME, ContentFile(b"2"))
                os.remove(self.path(name))
            super().delete(name)

    storage = GenericJobStorage(Storage(tmp_path, allow_overwrite=True))
    storage.write(NAME, b"1")
    assert storage.delete_tree("jobs/job-1") == 2
    assert list(storage.list_dirs("jobs")) == []


def test_it_says_that_it_cannot_swap_between_processes():
    assert GenericJobStorage(DictStorage()).atomic_swap is False


def test_a_conflict_is_certain():
    storage = GenericJobStorage(DictStorage())
    with pytest.raises(VersionConflict) as caught:
        storage.write(NAME, b"1", if_version="an old one")
    assert caught.value.certain


class RenamingStorage(DictStorage):
    """Renames as Django's base class does, and has no option that says so."""

    def get_available_name(self, name, max_length=None):
        return Storage.get_available_name(self, name, max_length)


class OptionStorage(DictStorage):
    file_overwrite = False


def test_a_storage_that_says_it_renames_is_refused_before_anything_is_written():
    django_storage = OptionStorage()
    with pytest.raises(StorageMisconfigured, match="file_overwrite=True"):
        GenericJobStorage(django_storage).write(NAME, b"1")
    assert django_storage.files == {}


def test_a_storage_that_renames_is_refused_at_the_first_write_and_keeps_nothing():
    django_storage = RenamingStorage()
    with pytest.raises(StorageMisconfigured, match="another name"):
        GenericJobStorage(django_storage).write(NAME, b"1")
    assert django_storage.files == {}


@pytest.mark.parametrize("if_version", [ABSENT, None])
def test_a_file_that_was_there_before_a_refusal_is_left_alone(if_version):
    django_storage = RenamingStorage()
    django_storage.files[NAME] = b"0"
    storage = GenericJobStorage(django_storage)
    expected = storage.read(NAME).version if if_version is None else if_version
    with pytest.raises(StorageMisconfigured if if_version is None else VersionConflict):
        storage.write(NAME, b"1", if_version=expected)
    assert django_storage.files == {NAME: b"0"}


@pytest.mark.parametrize("make", [lambda path: FileSystemStorage(path), lambda path: InMemoryStorage(path)])
def test_djangos_own_storages_are_refused_as_they_come(tmp_path, make):
    django_storage = make(tmp_path)
    with pytest.raises(StorageMisconfigured):
        GenericJobStorage(django_storage).write("status.json", b"1")
    assert django_storage.listdir("") == ([], [])


class BrokenStorage(DictStorage):
    def _open(self, name, mode="rb"):
        raise TimeoutError("no answer")

    _save = delete = listdir = exists = _open


def test_every_other_error_is_unavailable_with_its_cause():
    storage = GenericJobStorage(BrokenStorage())
    for call in (
        lambda: storage.read(NAME),
        lambda: storage.write(NAME, b""),
        lambda: storage.write(NAME, b"", if_version=ABSENT),
        lambda: storage.delete(NAME),
        lambda: storage.delete_tree("jobs/job-1"),
        lambda: list(storage.list_dirs("jobs")),
    ):
        with pytest.raises(StorageUnavailable, match="no answer") as caught:
            call()
        assert isinstance(caught.value.__cause__, TimeoutError)


def test_a_storage_that_cannot_list_is_misconfigured():
    class Unlistable(DictStorage):
        def listdir(self, path):
            raise NotImplementedError("subclasses of Storage must provide a listdir() method")

    with pytest.raises(StorageMisconfigured, match="can't list"):
        list(GenericJobStorage(Unlistable()).list_dirs("jobs"))


def test_azures_way_to_say_that_a_blob_is_missing_is_understood():
    class ResourceNotFoundError(Exception):
        def __init__(self, error_code):
            self.error_code = error_code

    class AzureLike(DictStorage):
        code = "BlobNotFound"

        def _open(self, name, mode="rb"):
            raise ResourceNotFoundError(self.code)

    storage = GenericJobStorage(AzureLike())
    with pytest.raises(FileNotFoundError):
        storage.read(NAME)
    storage.write(NAME, b"", if_version=ABSENT)
    storage.storage.code = "ContainerNotFound"
    with pytest.raises(StorageUnavailable):
        storage.read(NAME)
