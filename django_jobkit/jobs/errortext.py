"""What a failed job says on its page: the error, then the frames nearest to it."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Final

LIMIT: Final = 4000
"""Characters of an error text: enough for a few frames, small beside a status that is polled."""

_FRAMES: Final = 8
_MESSAGE_LIMIT: Final = 1500


def describe(error: BaseException, *, skip: str = "", limit: int = LIMIT) -> str:
    """The error's class and message, then its traceback's last frames, in at most ``limit`` characters.

    A message that is too long is cut, and the text says by how much. Of the traceback, the last frames are kept,
    and those of files below ``skip`` (the kit's own) are left out at its head. Lone surrogates, which a status file
    can't hold, become question marks.
    """
    head = _cut(_one_error(error), min(_MESSAGE_LIMIT, limit))
    frames = _frames(error.__traceback__, skip)
    left_out = max(len(frames) - _FRAMES, 0)
    kept = frames[left_out:]
    while kept and len(_assembled(head, left_out, kept)) > limit:
        left_out += 1
        kept = kept[1:]
    text = _assembled(head, left_out, kept) if kept else head
    return text.encode("utf-8", "replace").decode("utf-8")


def _one_error(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its message can't be shown)"
    name = type(error).__qualname__
    return f"{name}: {text}" if text else name


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    note = f" … ({len(text) - limit:,} characters cut)"
    return text[: max(limit - len(note), 0)] + note


def _frames(trace: TracebackType | None, skip: str) -> list[str]:
    summaries = traceback.extract_tb(trace)
    while skip and summaries and summaries[0].filename.startswith(skip):
        del summaries[0]
    return [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n    {frame.line}' for frame in summaries]


def _assembled(head: str, left_out: int, frames: list[str]) -> str:
    note = [f"  … {left_out} earlier frames left out"] if left_out else []
    return "\n".join([head, "", "Traceback (most recent call last):", *note, *frames])
