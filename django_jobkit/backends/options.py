"""What stands in ``TASKS[alias]["OPTIONS"]``, and what may be wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from django_jobkit.conf import DEFAULT_ALIAS

DEFAULT_LEASE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one backend: each field is the lower-cased name of an option, with its default."""

    kit: str = DEFAULT_ALIAS
    """Alias in JOBKIT: where the jobs are recorded."""
    workers: int = 4
    """Threads of each process that run jobs."""
    buffer: int = 100
    """The most jobs that may wait in one process, those with a ``run_after`` among them; 0 for none."""
    durable: bool = True
    """Whether what was accepted is stored, and run by another process if this one dies. If not, what a task's own
    ``enqueue()`` accepts is in this process's memory, and recorded as `write_behind` says; what `JobKit.submit` does is
    recorded first."""
    lease: float | None = None
    """Seconds for which a process that gives no sign of life keeps a job it runs. None: the kit's LEASE, or 60."""
    stop_timeout: float = 20.0
    """Seconds that a process which ends waits for its jobs. Below what the server is given to stop."""
    recover_every: float | None = 60.0
    """Seconds between two looks for jobs that other processes have left, while requests come in. None: only one look,
    when the process starts."""


class Problem(NamedTuple):
    """Something wrong with an option: which, what, and what to do."""

    setting: str
    message: str
    hint: str


_NAMES: Final = {field.name.upper() for field in fields(Options)}
_LEAST: Final = {"workers": 1, "buffer": 0}
_SECONDS: Final = {"lease", "recover_every", "stop_timeout"}
_OPTIONAL: Final = {"lease", "recover_every"}


def problems(alias: str, raw: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the options of the backend ``alias``, as far as it can be told by them alone."""
    where = f"TASKS[{alias!r}]['OPTIONS']"
    if not isinstance(raw, Mapping):
        return [Problem(where, f"{where} is a dict, not {type(raw).__name__}.", 'Write "OPTIONS": {"WORKERS": 4}.')]
    return [found for name, value in raw.items() if (found := _problem_of(f"{where}[{name!r}]", name, value))]


def _problem_of(setting: str, name: Any, value: Any) -> Problem | None:
    if name not in _NAMES:
        close = difflib.get_close_matches(str(name).upper(), _NAMES, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"The options are {', '.join(sorted(_NAMES))}."
        return Problem(setting, f"{setting} is no option of this backend.", hint)
    field = name.lower()
    if value is None and field in _OPTIONAL:
        return None
    if field in _LEAST:
        if not _is_number(value, int) or value < _LEAST[field]:
            return Problem(setting, f"{setting} is {value!r}.", f"Set a whole number of {_LEAST[field]} or more.")
    elif field in _SECONDS:
        if not _is_number(value, (int, float)) or not 0 < value < float("inf"):
            optional = " or None" if field in _OPTIONAL else ""
            return Problem(setting, f"{setting} is {value!r}.", f"Set a number of seconds above 0{optional}.")
    elif field == "durable":
        if not isinstance(value, bool):
            return Problem(setting, f"{setting} is {value!r}.", "Set True or False.")
    elif not isinstance(value, str) or not value:
        return Problem(setting, f"{setting} is {value!r}.", "Set an alias of JOBKIT.")
    return None


def _is_number(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def read(raw: Mapping[str, Any]) -> Options:
    """The options, in which `problems` has found nothing."""
    return Options(**{name.lower(): value for name, value in raw.items()})
