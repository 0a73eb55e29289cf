"""A file sent a piece at a time, however large it is, by WSGI and by ASGI servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, cast

from asgiref.sync import sync_to_async
from django.core.files import File
from django.http import StreamingHttpResponse

PIECE: Final = 64 * 1024
"""How many bytes of a file are in memory at a time."""


class Pieces:
    """The bytes of an open file, or of a part of it. Closes the file when it is closed."""

    def __init__(self, file: File[Any], part: range | None = None) -> None:
        """``part`` are the positions of bytes one after another; None is all, of a file that can't be sought in."""
        self.file = file
        self.left = None if part is None else len(part)
        if part:
            file.seek(part.start)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece: bytes = self.file.read(PIECE if self.left is None else min(PIECE, self.left))
        if self.left is not None:
            self.left -= len(piece)
        if not piece:
            if self.left:
                # What was promised can't be sent. Only an error has the server hang up, and the client know.
                raise EOFError(f"{self.file.name} has become shorter while it was sent.")
            raise StopIteration
        return piece

    def close(self) -> None:
        self.file.close()


class StreamedFile(StreamingHttpResponse):
    """For ASGI, Django's own would read a file to its end before it sends any of it."""

    def __init__(self, pieces: Pieces, status: int, headers: dict[str, str]) -> None:
        super().__init__(pieces, status=status, headers=headers)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.is_async:  # a middleware has put something else in the pieces' place
            async for other in super().__aiter__():
                yield other
            return
        pieces = cast("Iterator[bytes]", self.streaming_content)
        while (piece := await sync_to_async(_next)(pieces)) is not None:
            yield piece


def _next(pieces: Iterator[bytes]) -> bytes | None:
    return next(pieces, None)
