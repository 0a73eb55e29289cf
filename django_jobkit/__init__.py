"""Status, history and pages for the long jobs of a Django site."""

from __future__ import annotations

from ._version import __version__

__all__ = ["__version__"]
