"""What the Go reference printed (see README.md here); the files are kept byte for byte."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest


def cases(file_name: str) -> list[Any]:
    """The cases of one vector file as pytest parameters, each named as it is in the file."""
    found = json.loads((Path(__file__).parent / file_name).read_text(encoding="utf-8"))
    return [pytest.param(case["input"], case["expected"], id=case["name"]) for case in found]


def text(record: dict[str, Any], key: str) -> str:
    """A text of a vector; bytes that aren't UTF-8 come in as Python reads them from a file system."""
    if key + "_b64" in record:
        return base64.b64decode(record[key + "_b64"]).decode("utf-8", "surrogateescape")
    return record[key]
