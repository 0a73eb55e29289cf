"""Fixtures for pytest. In the ``conftest.py`` at the root: ``pytest_plugins = ["django_jobkit.testing.plugin"]``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .clock import FrozenClock
from .faults import FaultyStorage
from .memory import MemoryKit, memory_kit

_MARKER = (
    "jobkit(alias='default', *, eager=False, raise_errors=False, **settings): arguments of memory_kit for `jobkit`"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def jobkit_clock() -> FrozenClock:
    """A time that stands still. The records of a test that asks for it, and for `jobkit`, are stamped with it."""
    return FrozenClock()


@pytest.fixture
def jobkit(request: pytest.FixtureRequest) -> Iterator[MemoryKit]:
    """A kit in memory, as `memory_kit` makes it with the arguments of the marker ``jobkit``."""
    marker = request.node.get_closest_marker("jobkit")
    args, kwargs = (marker.args, marker.kwargs) if marker else ((), {})
    if "jobkit_clock" in request.fixturenames:
        kwargs = {"clock": request.getfixturevalue("jobkit_clock"), **kwargs}
    with memory_kit(*args, **kwargs) as kit:
        yield kit


@pytest.fixture
def jobkit_storage(jobkit: MemoryKit) -> FaultyStorage:
    """The storage of `jobkit`: fails when told to, and counts calls."""
    return jobkit.storage
