"""Status, history and pages for the long jobs of a Django site.

Importing this reads no setting and, until `jobkits` is asked for, no Django: workers of any kind can import
``django_jobkit.jobs`` by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .kit import jobkits

__all__ = ["__version__", "jobkits"]


def __getattr__(name: str) -> Any:
    if name == "jobkits":
        from .kit import jobkits

        return jobkits
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
