"""A file in pieces, whose memory doesn't grow with it."""

from __future__ import annotations

import asyncio
import io

import pytest
from django.core.files import File

from django_jobkit.web.streaming import PIECE, Pieces, StreamedFile


class Endless(io.RawIOBase):
    """A gigabyte that is nowhere, and notes what is read of it."""

    size = 1 << 30

    def __init__(self, size: int = size) -> None:
        self.size = size
        self.place = 0
        self.reads: list[int] = []

    def read(self, count: int = -1) -> bytes:
        assert 0 <= count <= PIECE, "it is read as a whole"
        self.reads.append(count)
        data = b"x" * min(count, self.size - self.place)
        self.place += len(data)
        return data

    def seek(self, place: int, whence: int = 0) -> int:
        self.place = place
        return place


def pieces(data: bytes, part: range | None) -> Pieces:
    return Pieces(File(io.BytesIO(data), "a.txt"), part)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (None, b"0123456789"),
        (range(10), b"0123456789"),
        (range(3, 6), b"345"),
        (range(9, 10), b"9"),
        (range(0), b""),
    ],
)
def test_they_are_those_of_the_part(part, expected):
    assert b"".join(pieces(b"0123456789", part)) == expected


def test_one_is_read_when_it_is_wanted():
    file = Endless()
    stream = Pieces(File(file), range(file.size))
    assert len(next(stream)) == PIECE
    assert file.reads == [PIECE]


def test_the_last_one_is_no_longer_than_what_is_left():
    file = Endless()
    assert [len(piece) for piece in Pieces(File(file), range(100, 100 + PIECE + 5))] == [PIECE, 5]


def test_what_is_added_meanwhile_is_left_out():
    """More than its Content-Length would be taken for the beginning of the next answer."""
    assert b"".join(pieces(b"0123456789", range(4))) == b"0123"


def test_a_file_that_has_become_shorter_ends_in_an_error():
    """So that the server hangs up: a client would wait for the rest, or take a part for the whole."""
    stream = pieces(b"0123", range(10))
    assert next(stream) == b"0123"
    with pytest.raises(EOFError, match=r"a\.txt has become shorter"):
        next(stream)


@pytest.mark.django_db  # the end of a response looks after the database's connection
@pytest.mark.parametrize("begun", [True, False])
def test_the_file_is_closed_with_the_response(begun):
    file = File(io.BytesIO(b"0123"))
    response = StreamedFile(Pieces(file, range(4)), 200, {})
    if begun:
        next(iter(response))
    response.close()
    assert file.closed


async def read_some(response: StreamedFile, count: int) -> list[bytes]:
    found: list[bytes] = []
    async for piece in response:
        found.append(piece)
        if len(found) == count:
            break
    return found


def test_asgi_servers_get_them_one_by_one_too():
    file = Endless()
    found = asyncio.run(read_some(StreamedFile(Pieces(File(file), range(file.size)), 200, {}), 2))
    assert [len(piece) for piece in found] == [PIECE, PIECE]
    assert len(file.reads) == 2


def test_asgi_servers_get_all_of_them():
    response = StreamedFile(pieces(b"0123456789", range(2, 10)), 200, {})
    assert b"".join(asyncio.run(read_some(response, 99))) == b"23456789"


def test_a_middleware_may_put_something_else_in_their_place():
    async def shouted(pieces):
        for piece in pieces:
            yield piece.upper()

    response = StreamedFile(pieces(b"abc", None), 200, {})
    response.streaming_content = shouted(list(response.streaming_content))
    assert asyncio.run(read_some(response, 99)) == [b"ABC"]
    response = StreamedFile(pieces(b"abc", None), 200, {})
    response.streaming_content = (piece.upper() for piece in response.streaming_content)
    assert asyncio.run(read_some(response, 99)) == [b"ABC"]
