"""Which part of a file is asked for: RFC 9110, 14."""

from __future__ import annotations

import pytest

from django_jobkit.web.byte_ranges import Unsatisfiable, part_asked_for

ALL = None
NONE = Unsatisfiable


@pytest.mark.parametrize(
    ("header", "size", "expected"),
    [
        # what players and downloads ask for
        ("bytes=0-", 10, range(0, 10)),
        ("bytes=0-1", 10, range(0, 2)),  # Safari, to find out whether it may seek
        ("bytes=0-0", 10, range(0, 1)),
        ("bytes=4-", 10, range(4, 10)),
        ("bytes=9-9", 10, range(9, 10)),
        ("bytes=2-5", 10, range(2, 6)),
        ("bytes=-3", 10, range(7, 10)),
        ("bytes=5-99999999999999999", 10, range(5, 10)),  # more than there is
        ("bytes=-11", 10, range(0, 10)),
        ("bytes=0-", 10**12, range(0, 10**12)),
        ("BYTES=0-1", 10, range(0, 2)),  # names of units are of any case
        (" bytes= 0-1 ", 10, range(0, 2)),
        # nothing is there
        ("bytes=10-", 10, NONE),
        ("bytes=10-20", 10, NONE),
        ("bytes=999999999999999999-", 10, NONE),
        ("bytes=-0", 10, NONE),
        # all of it: several parts, other units, and what means nothing
        ("", 10, ALL),
        ("bytes=0-1,4-5", 10, ALL),
        ("bytes=0-1, 4-5", 10, ALL),
        ("lines=0-1", 10, ALL),
        ("bytes", 10, ALL),
        ("bytes=", 10, ALL),
        ("bytes=-", 10, ALL),
        ("bytes=5-4", 10, ALL),
        ("bytes=99-98", 10, ALL),
        ("bytes=a-b", 10, ALL),
        ("bytes=1-2-3", 10, ALL),
        ("bytes=--1", 10, ALL),
        ("bytes=+1-2", 10, ALL),
        ("bytes=1_0-", 100, ALL),
        ("bytes=0x1-", 10, ALL),
        ("bytes=1.0-2", 10, ALL),
        ("bytes=١-٢", 10, ALL),  # digits of another script
        ("bytes=0-1\n", 10, range(0, 2)),  # no server lets a line break in
        (f"bytes={'9' * 5000}-", 10, ALL),
        # an empty file has no part that could be named
        ("bytes=0-", 0, ALL),
        ("bytes=-1", 0, ALL),
    ],
    ids=ascii,
)
def test_a_part_is_given_in_full_or_not_at_all(header, size, expected):
    if expected is NONE:
        with pytest.raises(Unsatisfiable):
            part_asked_for(header, size)
    else:
        assert part_asked_for(header, size) == expected
