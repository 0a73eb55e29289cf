"""Backends for Django's tasks whose state is the kit's own records, so that they need no database.

Importing this package needs neither settings nor Django's tasks; asking it for a backend does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .inprocess import InProcessBackend
    from .processwide import queue_stats, stop_queues
    from .retrying import retry

__all__ = ["InProcessBackend", "queue_stats", "retry", "stop_queues"]

_HOMES = {
    "InProcessBackend": "inprocess",
    "queue_stats": "processwide",
    "retry": "retrying",
    "stop_queues": "processwide",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
