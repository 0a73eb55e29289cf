from __future__ import annotations

import pytest

from django_jobkit.exceptions import StorageUnavailable
from django_jobkit.jobs import ids
from django_jobkit.jobs.listing import collect
from tests.jobs.fakes import DictStorage

FILES = {
    "jobs/a/status.json": b"{}",
    "jobs/a/out/summary.json": b"{}",
    "jobs/b b/notes.txt": b"",
    "jobs/readme.txt": b"no job",
    "jobs2/c/status.json": b"{}",
    "elsewhere/d/status.json": b"{}",
}


def test_one_entry_per_directory_directly_under_the_prefix():
    assert sorted(collect(DictStorage(FILES), "jobs")) == ["a", "b b"]


@pytest.mark.parametrize("prefix", ["jobs", "jobs/", " jobs// ", "/jobs"])
def test_slashes_and_blanks_around_the_prefix_do_not_matter(prefix):
    assert sorted(collect(DictStorage(FILES), prefix)) == ["a", "b b"]


def test_directories_that_are_no_valid_ids_can_be_left_out():
    assert collect(DictStorage(FILES), "jobs", valid_ids_only=True) == ["a"]


def test_keep_decides_which_jobs_are_listed():
    assert collect(DictStorage(FILES), "jobs", keep=lambda job_id: job_id != "a") == ["b b"]
    assert collect(DictStorage(FILES), "jobs", keep=ids.is_valid, valid_ids_only=True) == ["a"]


def test_a_storage_that_names_a_directory_twice_is_listed_once():
    class Twice(DictStorage):
        def list_dirs(self, prefix):
            return iter(["a", "b", "a"])

    assert collect(Twice(), "jobs") == ["a", "b"]


def test_a_prefix_without_jobs_is_an_empty_list():
    assert collect(DictStorage(), "jobs") == []


def test_an_outage_is_an_error_and_never_an_empty_list():
    storage = DictStorage(FILES)
    storage.list_fails = True
    with pytest.raises(StorageUnavailable):
        collect(storage, "jobs")


@pytest.mark.parametrize("prefix", ["", " ", "/"])
def test_an_empty_prefix_is_refused(prefix):
    with pytest.raises(ValueError, match="prefix"):
        collect(DictStorage(FILES), prefix)
