"""Saying what a job should have come to, and reading why it hasn't."""

from __future__ import annotations

import dataclasses
import difflib
import re
from typing import Any

from django_jobkit.conf import DEFAULT_ALIAS
from django_jobkit.exceptions import StatusNotFound
from django_jobkit.jobs import State, Status, codec, collect
from django_jobkit.kit import JobKit, jobkits

_SHOWN = 10


def assert_job(
    job_id: str, *, kit: str | JobKit = DEFAULT_ALIAS, state: State | str | None = None, **fields: Any
) -> Any:
    """The job's status as it is stored, if ``state`` and ``fields`` are what it says.

    A value that is a compiled pattern is searched for in the field's text; others are to be equal. Fields are those
    of the kit's status class, and members that it doesn't know. Raises AssertionError that tells what differs, the
    job's error, and its whole record, or, where there is no such job, those that there are.
    """
    __tracebackhide__ = True
    kit = jobkits[kit] if isinstance(kit, str) else kit
    try:
        status: Status = kit.store.get(job_id)
    except StatusNotFound:
        raise AssertionError(_no_such_job(kit, job_id)) from None
    expected = fields if state is None else {"state": state, **fields}
    known = {field.name: getattr(status, field.name) for field in dataclasses.fields(status)} | status.extra
    lines = [line for name, value in expected.items() if (line := _difference(name, value, known))]
    if not lines:
        return status
    if status.error:
        lines.append("its error: " + status.error.replace("\n", "\n    "))
    lines.append(f"its record: {codec.encode(status).decode()}")
    raise AssertionError("\n  ".join([f"Job {job_id!a} of kit {kit.alias!r} is not as expected:", *lines]))


def _difference(name: str, expected: Any, known: dict[str, Any]) -> str:
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        return f"{name}: there is no such field" + (f"; did you mean {close[0]}?" if close else "")
    found = known[name]
    if isinstance(expected, re.Pattern):
        if expected.search(str(found)):
            return ""
        return f"{name}: nothing like {expected.pattern!r} in {_plain(found)!r}"
    return "" if expected == found else f"{name}: {_plain(found)!r}, not {_plain(expected)!r}"


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, State) else value


def _no_such_job(kit: JobKit, job_id: str) -> str:
    found = sorted(collect(kit.storage, kit.prefix), reverse=True)
    if not found:
        return f"There is no job {job_id!a} in kit {kit.alias!r}, and no other."
    more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"There is no job {job_id!a} in kit {kit.alias!r}. There are {', '.join(found[:_SHOWN])}{more}."
