from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobkit.jobs.cacheformat import decode, encode, safe_name

text = st.text(st.characters(exclude_categories=()), max_size=30)  # lone surrogates too


@pytest.mark.parametrize(
    ("job_ids", "payload"),
    [
        ([], "L7"),
        (["abc"], "L7\nabc"),
        (["b", "a", "b"], "L7\nb\na\nb"),
        ([""], "L7\n"),
        (["", ""], "L7\n\n"),
        (["a\r", "b\x85"], "L7\na\r\nb\x85"),  # only the line feed ends a line
        (["a\nb", "c"], 'J7\n["a\\nb", "c"]'),
    ],
)
def test_a_list_is_one_text(job_ids: list[str], payload: str) -> None:
    assert encode(job_ids, 7) == payload
    assert decode(payload) == (job_ids, 7)


@given(st.lists(text))
def test_any_list_reads_back(job_ids: list[str]) -> None:
    assert decode(pickle.loads(pickle.dumps(encode(job_ids)))) == (job_ids, 0)


@pytest.mark.parametrize("payload", [None, "", "X0\nabc", "L\nabc", "Lx\nabc", "abc", b"L0\nabc", ["abc"], 7])
def test_what_this_version_did_not_write_is_no_list(payload: object) -> None:
    assert decode(payload) is None


@pytest.mark.parametrize(
    ("given_name", "written"),
    [
        ("jobs", "jobs"),
        ("comics/jobs", "comics/jobs"),
        ("a b:c*", "a%20b%3Ac%2A"),
        ("仕事", "%E4%BB%95%E4%BA%8B"),
        ("", ""),
        ("\0\n\x7f", "%00%0A%7F"),
    ],
)
def test_a_name_is_written_in_characters_every_cache_takes(given_name: str, written: str) -> None:
    assert safe_name(given_name) == written


def test_a_long_name_is_hashed() -> None:
    assert len(safe_name("x" * 100)) == 100
    assert len(safe_name("x" * 101)) == 33
    assert safe_name("x" * 101) != safe_name("x" * 102)


@given(text, text)
def test_different_names_are_written_differently(one: str, other: str) -> None:
    assert (safe_name(one, limit=12) == safe_name(other, limit=12)) == (one == other)
