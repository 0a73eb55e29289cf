"""Jobs that tests hold in their hands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PATIENCE = 20.0  # seconds until a test gives up on something that takes microseconds


class Held:
    """A job that says when it has started, and runs until it is released."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.released = threading.Event()

    def __call__(self) -> None:
        self.started.set()
        assert self.released.wait(PATIENCE)

    def has_started(self) -> bool:
        return self.started.wait(PATIENCE)

    def release(self) -> None:
        self.released.set()


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def eventually(predicate: Callable[[], object]) -> bool:
    """Whether it becomes true within the test's patience."""
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not predicate():
        if time.monotonic() > deadline:
            return False
        pause.wait(0.001)
    return True
