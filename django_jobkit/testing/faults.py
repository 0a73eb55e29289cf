"""A storage that breaks on demand, and counts what is asked of it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar

from django_jobkit.exceptions import StorageUnavailable, VersionConflict
from django_jobkit.jobs.files import ANY, IfVersion, JobStorage, StoredFile

T = TypeVar("T")

CALLS: Final = ("read", "write", "delete", "delete_tree", "list_dirs")
_CHANGES: Final = ("write", "delete", "delete_tree")


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of the contract, as a fault sees it."""

    kind: str
    name: str
    if_version: IfVersion = ANY


def _nothing(call: _Call) -> None:
    pass


@dataclass(slots=True)
class _Fault:
    kinds: tuple[str, ...]
    left: int | None
    where: str
    before: Callable[[_Call], object] = _nothing
    after: Callable[[_Call], object] = _nothing
    breaks: bool = True
    """Whether the call fails; one call has no more than one such fault."""
    conditional_only: bool = False

    def meets(self, call: _Call) -> bool:
        if self.conditional_only and call.if_version is ANY:
            return False
        return call.kind in self.kinds and fnmatchcase(call.name, self.where)


class FaultyStorage:
    """Passes every call on to ``inner``, another `JobStorage`, unless it was told to fail.

    The calls are ``read``, ``write``, ``delete``, ``delete_tree`` and ``list_dirs``; where none is named, all are
    meant. ``times`` is how many calls a fault meets, None for all of them until `mend`; ``where`` is a pattern for
    the names that it meets, as in ``"*/status.json"``. Faults are met in the order in which they were made.
    ``calls`` counts what was asked for, failed or not. Safe to share between threads, and so is ``inner`` then.
    """

    def __init__(self, inner: JobStorage, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()
        self._sleep = sleep
        self._faults: list[_Fault] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<FaultyStorage on {self.inner!r}>"

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    # --- what goes wrong ----------------------------------------------------------------------------------------

    def fail(
        self, *calls: str, times: int | None = 1, where: str = "*", error: Exception | type[Exception] | None = None
    ) -> None:
        """Have calls raise ``error`` (default: `StorageUnavailable`) and do nothing."""

        def refuse(call: _Call) -> None:
            raise error or StorageUnavailable(f"The test has {call.kind} of {call.name!r} fail.")

        self._add(_Fault(calls or CALLS, times, where, before=refuse))

    def conflict(self, *, times: int | None = 1, where: str = "*") -> None:
        """Have conditional writes find that another writer was first, and do nothing."""

        def refuse(call: _Call) -> None:
            raise VersionConflict(f"The test has another writer of {call.name!r} be first.", certain=True)

        self._add(_Fault(("write",), times, where, before=refuse, conditional_only=True))

    def lose_answer(self, *calls: str, times: int | None = 1, where: str = "*") -> None:
        """Have calls (default: all that change something) be done, and the caller not hear of it.

        A conditional write ends as where it is repeated and meets itself: with a `VersionConflict` that isn't
        certain. All others raise `StorageUnavailable`.
        """

        def lose(call: _Call) -> None:
            if call.if_version is ANY:
                raise StorageUnavailable(f"The test has {call.kind} of {call.name!r} done and its answer lost.")
            raise VersionConflict(f"The test has the write of {call.name!r} done and repeated.", certain=False)

        self._add(_Fault(calls or _CHANGES, times, where, after=lose))

    def slow(self, seconds: float, *calls: str, times: int | None = None, where: str = "*") -> None:
        """Have calls wait first. They may fail as well."""
        self._add(_Fault(calls or CALLS, times, where, before=lambda call: self._sleep(seconds), breaks=False))

    def meanwhile(self, action: Callable[[], object], *calls: str, times: int | None = 1, where: str = "*") -> None:
        """Call ``action()`` when a call (default: a read) is done and before its caller hears of it.

        So that another worker slips in between a read and the write that follows. Errors of ``action`` are raised.
        """
        self._add(_Fault(calls or ("read",), times, where, after=lambda call: action(), breaks=False))

    def mend(self) -> None:
        """Forget all faults, so that calls are done again."""
        with self._lock:
            self._faults.clear()

    def _add(self, fault: _Fault) -> None:
        if unknown := set(fault.kinds) - set(CALLS):
            raise ValueError(f"No call of a storage: {', '.join(sorted(unknown))}. They are {', '.join(CALLS)}.")
        if fault.left is not None and fault.left < 1:
            raise ValueError(f"times is 1 or more, or None for all calls until mend(), not {fault.left}.")
        with self._lock:
            self._faults.append(fault)

    def _take(self, call: _Call) -> list[_Fault]:
        with self._lock:
            self.calls[call.kind] += 1
            met: list[_Fault] = []
            for fault in list(self._faults):
                if not fault.meets(call) or (fault.breaks and any(other.breaks for other in met)):
                    continue
                met.append(fault)
                if fault.left is not None:
                    fault.left -= 1
                    if not fault.left:
                        self._faults.remove(fault)
            return met

    def _pass_on(self, call: _Call, inner: Callable[[], T]) -> T:
        faults = self._take(call)
        for fault in faults:
            fault.before(call)
        try:
            return inner()
        finally:  # "there is no such file" is an answer, too
            for fault in faults:
                fault.after(call)

    # --- the contract -------------------------------------------------------------------------------------------

    @property
    def atomic_swap(self) -> bool:
        return self.inner.atomic_swap

    def read(self, name: str) -> StoredFile:
        return self._pass_on(_Call("read", name), lambda: self.inner.read(name))

    def write(self, name: str, data: bytes, *, if_version: IfVersion = ANY) -> str:
        call = _Call("write", name, if_version)
        return self._pass_on(call, lambda: self.inner.write(name, data, if_version=if_version))

    def delete(self, name: str) -> None:
        self._pass_on(_Call("delete", name), lambda: self.inner.delete(name))

    def delete_tree(self, prefix: str) -> int:
        return self._pass_on(_Call("delete_tree", prefix), lambda: self.inner.delete_tree(prefix))

    def list_dirs(self, prefix: str) -> Iterator[str]:
        return self._pass_on(_Call("list_dirs", prefix), lambda: self.inner.list_dirs(prefix))
