"""What tests that need another program say when it is missing: a skip that tells what to install; in CI, a failure."""

from __future__ import annotations

import importlib
import os
import shutil
from types import ModuleType
from typing import NoReturn

import pytest


def missing(what: str, install: str) -> NoReturn:
    """Skip the test, or fail it when the environment has ``CI=true``: there, everything should be installed."""
    sentence = f"This test needs {what}. To run it: {install}"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


def require(module: str, install: str) -> ModuleType:
    """The imported module, or `missing`. ``install`` is what a newcomer should type."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        missing(f"the Python module {module}", install)


def require_program(name: str, install: str) -> str:
    """The path of an executable, found by its name or given as a path, or `missing`."""
    path = shutil.which(name)
    if path is None:
        missing(f"the program {name}", install)
    return path
