"""What a description of parameters can't say, told to schemathesis in the process that it runs in."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import schemathesis


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """An end comes after its beginning, so of two good times only the end is sent."""
    query = case.query or {}
    if is_moment(query.get("since")) and is_moment(query.get("until")):
        case.query = {name: value for name, value in query.items() if name != "since"}


def is_moment(text: Any) -> bool:
    try:
        datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return False
    return True
