from __future__ import annotations

import pytest

from django_jobkit.jobs.errortext import LIMIT, describe


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def nested(depth: int) -> None:
    if depth:
        nested(depth - 1)
    raise ValueError("deep")


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "head"),
    [
        (ValueError("line 37"), "ValueError: line 37"),
        (ValueError(), "ValueError"),
        (KeyError("x"), "KeyError: 'x'"),
        (Unprintable(), "Unprintable: (its message can't be shown)"),
        (ValueError("a\ud800b"), "ValueError: a?b"),
    ],
    ids=repr,
)
def test_the_first_line_says_what_happened(error, head):
    assert describe(error) == head
    assert describe(raised(error)).startswith(head + "\n\nTraceback (most recent call last):\n  File ")


def test_the_frames_nearest_to_the_error_are_kept():
    with pytest.raises(ValueError, match="deep") as caught:
        nested(50)
    text = describe(caught.value)
    assert "earlier frames left out" in text
    assert text.endswith('raise ValueError("deep")')
    assert len(text) <= LIMIT


def test_a_long_message_is_cut_and_says_so():
    text = describe(raised(ValueError("x" * 1_000_000)))
    assert "characters cut)" in text
    assert len(text) <= LIMIT
    assert "raise error" in text  # the last frames are still there


@pytest.mark.parametrize("limit", [50, 300, 1000])
def test_the_text_keeps_to_the_limit(limit):
    with pytest.raises(ValueError, match="deep") as caught:
        nested(20)
    assert len(describe(caught.value, limit=limit)) <= limit


def test_the_kits_own_frames_are_left_out():
    error = raised(ValueError("x"))
    assert "Traceback" not in describe(error, skip=__file__)
