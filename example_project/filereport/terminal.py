"""What a command shows on a terminal, and plainly where its output goes elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Sequence, Set
from typing import Any, Final

from .analysis.layout import columns

_WIDTH: Final = 24


def table(rows: Sequence[Sequence[str]], *, right: Set[int] = frozenset()) -> str:
    """Rows in columns, without anything that could steer the terminal: titles are other people's words."""
    return columns([[printable(cell) for cell in row] for row in rows], right=right)


def printable(text: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


class ProgressBar:
    """A bar that is drawn over itself on a terminal; elsewhere a line for each thing done."""

    def __init__(self, stream: Any, total: int) -> None:
        self.stream = stream
        self.total = total
        self.done = 0
        self.drawn = bool(stream.isatty())

    def advance(self, line: str) -> None:
        """One more is done, about which ``line`` says something."""
        self.done += 1
        if self.drawn:
            self.show("")
        else:
            self.stream.write(f"{self.done:>3}/{self.total}  {printable(line)}\n")

    def show(self, message: str) -> None:
        """Say what is going on; only on a terminal, since it changes all the time."""
        if self.drawn:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(f"\r{self.bar(message)[:width]:<{width}}", ending="")
            self.stream.flush()

    def bar(self, message: str) -> str:
        filled = _WIDTH * self.done // self.total
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {self.done}/{self.total}  {printable(message)}"

    def close(self) -> None:
        if self.drawn:
            self.show("")
            self.stream.write("")
