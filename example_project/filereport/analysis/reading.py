"""From the bytes that a person picked to text."""

from __future__ import annotations

import codecs
from typing import Final

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class FileProblem(ValueError):
    """What is wrong with a file, in words for the person who picked it."""


def decode(data: bytes) -> str:
    """The text of a UTF-8 file (or UTF-16, where its first bytes say so), each line ending in ``\\n``.

    Raises `FileProblem`, with the line, for anything else: guessing an encoding would give wrong words, silently.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        decoded = error.object  # the data, without a mark at its start
        line = decoded.count(b"\n", 0, error.start) + 1
        raise FileProblem(
            f"Line {line} is not {encoding.upper().removesuffix('-SIG')} text (byte 0x{decoded[error.start]:02x}). "
            f"Save the file as UTF-8 and submit it again."
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FileProblem(f"Line {line} has a zero byte, so this is not a text file.")
    if not text.strip():
        raise FileProblem("The file is empty.")
    return text.replace("\r\n", "\n").replace("\r", "\n")
