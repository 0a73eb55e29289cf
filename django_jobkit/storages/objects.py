"""What Google Cloud Storage and S3 have in common: one request for each call, repeated only where that is safe.

A request whose answer is lost may have been applied, and others may have built on it since. So:

* A read or a listing is repeated. It changes nothing.
* A conditional write is repeated: if the first attempt was applied, the condition fails for the second. Then the
  stored bytes are compared: ours mean that the write is done; others' are a conflict.
* An unconditional write, or a delete, is not repeated as it is: the second attempt could undo what another writer
  stored after the first. A look at the object tells what to do. Our bytes (or, for a delete, no object): done. The
  very version that we knew before the first request: nothing has happened, so it is repeated, conditional on that
  version. No object (for a write): repeated as create-only. Anything else: unavailable, for the caller to decide.
* Removing a tree is repeated: the listing told each object's version, and the removal is conditional on it.

What was surely not applied (429, 503, no connection) is always repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol, TypeVar, cast

from django.core.exceptions import SuspiciousFileOperation
from django.core.files.storage import Storage
from storages.utils import clean_name  # type: ignore[import-untyped]

from django_jobkit.exceptions import StorageMisconfigured, StorageUnavailable, VersionConflict
from django_jobkit.jobs.files import ABSENT, ANY, IfVersion, StoredFile
from django_jobkit.storages.attempts import Absent, Answer, Call, Mismatch, Unclear, Wrong
from django_jobkit.storages.faults import unavailable
from django_jobkit.storages.names import tree_prefix
from django_jobkit.storages.removal import Removal

T = TypeVar("T")

_ROUNDS: Final = 5
"""How often a tree is listed again since others wrote into it while it was removed."""
_KNOWN: Final = 10_000
"""How many last seen versions are kept."""


class BucketStorage(Protocol):
    """What we use of django-storages' classes for both services."""

    bucket_name: str | None

    def _normalize_name(self, name: str) -> str: ...


class ObjectJobStorage(ABC):
    """The contract, in terms of single requests that a subclass makes.

    ``timeout`` bounds each call in seconds, retries and all; `list_dirs` and `delete_tree` have that time for each
    page of 1,000 entries. At most ``concurrency`` requests are under way at once.
    """

    atomic_swap: Final = True
    page: int = 1000
    """How many entries one listing request asks for: the most that both services give."""
    _service: str

    def __init__(self, storage: Storage, *, timeout: float = 10.0, concurrency: int = 10, alias: str = "") -> None:
        self.storage = storage
        self.timeout = timeout
        self.concurrency = concurrency
        self.alias = alias
        self._django = cast(BucketStorage, storage)
        self._bucket_answers = False
        self._known: dict[str, str] = {}

    # The requests. Each makes one, within so many seconds, and raises an `Answer` where it doesn't succeed.

    @abstractmethod
    def _new_call(self, timeout: float) -> Call: ...

    @abstractmethod
    def _get(self, key: str, seconds: float) -> StoredFile: ...

    @abstractmethod
    def _put(self, key: str, name: str, data: bytes, if_version: IfVersion, seconds: float) -> str: ...

    @abstractmethod
    def _remove(self, key: str, version: str | None, seconds: float) -> None: ...

    @abstractmethod
    def _list_prefixes(self, prefix: str, token: str | None, seconds: float) -> tuple[list[str], str | None]:
        """A page of pseudo-directories, each with the whole prefix and a slash, and the next page's token."""

    @abstractmethod
    def _list_objects(self, prefix: str, token: str | None, seconds: float) -> tuple[list[tuple[str, str]], str | None]:
        """A page of keys with versions, and the next page's token."""

    @abstractmethod
    def _remove_page(self, removal: Removal) -> None:
        """Remove what is pending, in as few requests as there can be."""

    @abstractmethod
    def _probe(self, seconds: float) -> None:
        """Raise `Wrong` if there is no such bucket."""

    _shortest: float = 0.0
    """The least time that a request takes when it hangs."""

    # The contract

    def read(self, name: str) -> StoredFile:
        key = self._key(name)
        with self._told("read", name):
            file = self._look(self._new_call(self.timeout), key)
        if file is None:
            raise FileNotFoundError(f"{name} is not in {self._place}")
        return file

    def write(self, name: str, data: bytes, *, if_version: IfVersion = ANY) -> str:
        key = self._key(name)
        known = self._known.get(key)
        call = self._new_call(self.timeout)
        with self._told("write", name):
            if if_version is ANY:
                version = self._overwrite(call, key, name, data, known)
            else:
                version = self._swap(call, key, name, data, if_version)
        self._note(key, version)
        return version

    def delete(self, name: str) -> None:
        key = self._key(name)
        known = self._known.pop(key, None)
        call = self._new_call(self.timeout)
        with self._told("delete", name):
            try:
                self._ask(call, lambda seconds: self._remove(key, None, seconds), repeat_unclear=False)
            except Absent:
                return
            except Unclear as answer:
                stored = self._look_again(call, key, answer)
                if stored is None:
                    return
                if stored.version != known:
                    raise
                try:
                    self._ask(call, lambda seconds: self._remove(key, known, seconds), repeat_unclear=True)
                except Absent:
                    return
                except Mismatch:
                    raise answer from None

    def delete_tree(self, prefix: str) -> int:
        prefix = tree_prefix(prefix)
        start = self._prefix(prefix)
        count = 0
        for _ in range(_ROUNDS):
            changed = False
            token: str | None = None
            while True:
                with self._told("delete", prefix):
                    entries, token = self._ask(
                        self._new_call(self.timeout),
                        lambda seconds, token=token: self._list_objects(start, token, seconds),  # type: ignore[misc]
                        repeat_unclear=True,
                    )
                    removal = Removal(entries)
                    if entries:
                        self._remove_page(removal)
                count += removal.removed
                changed |= removal.changed
                if token is None:
                    break
            if not changed:
                return count
        raise StorageUnavailable(f"{prefix!r} in {self._place} is filled again as fast as it is emptied")

    def list_dirs(self, prefix: str) -> Iterator[str]:
        start = self._prefix(prefix)
        token: str | None = None
        while True:
            with self._told("list", prefix):
                found, token = self._ask(
                    self._new_call(self.timeout),
                    lambda seconds, token=token: self._list_prefixes(start, token, seconds),  # type: ignore[misc]
                    repeat_unclear=True,
                )
            for key in found:
                name = key[len(start) :].rstrip("/")
                if name:  # an object whose name has two slashes in a row
                    yield name
            if token is None:
                return

    # How they do it

    def _swap(self, call: Call, key: str, name: str, data: bytes, if_version: IfVersion) -> str:
        try:
            return self._ask(
                call,
                lambda seconds: self._put(key, name, data, if_version, seconds),
                repeat_unclear=True,
                reserve=self.timeout / 4,
            )
        except Mismatch as answer:
            if call.unclear:
                with suppress(Answer):
                    stored = self._look(call, key)
                    if stored is not None and stored.data == data:
                        return stored.version
            # Not certain after an unclear request: ours may have been applied, and others may have built on it.
            raise VersionConflict(
                f"{name} in {self._place} is not in the expected version", certain=not call.unclear
            ) from answer.__cause__
        except Answer as answer:
            if not call.unclear:
                raise
            stored = self._look_again(call, key, answer)
            if stored is None or stored.data != data:
                raise Unclear(str(answer)) from answer.__cause__
            return stored.version

    def _overwrite(self, call: Call, key: str, name: str, data: bytes, known: str | None) -> str:
        try:
            return self._ask(
                call,
                lambda seconds: self._put(key, name, data, ANY, seconds),
                repeat_unclear=False,
                reserve=self.timeout / 4,
            )
        except Unclear as answer:
            stored = self._look_again(call, key, answer)
            if stored is not None and stored.data == data:
                return stored.version
            if stored is not None and stored.version != known:
                raise
            with suppress(VersionConflict):  # others have written, before our write or after it: still unclear
                return self._swap(call, key, name, data, ABSENT if stored is None else stored.version)
            raise

    def _look(self, call: Call, key: str) -> StoredFile | None:
        try:
            file = self._ask(call, lambda seconds: self._get(key, seconds), repeat_unclear=True)
        except Absent:
            return None
        self._note(key, file.version)
        return file

    def _look_again(self, call: Call, key: str, answer: Answer) -> StoredFile | None:
        """What is stored after a request that may have been applied. The doubt stays if that can't be seen."""
        try:
            return self._look(call, key)
        except Answer:
            raise Unclear(str(answer)) from answer.__cause__

    def _ask(self, call: Call, request: Callable[[float], T], *, repeat_unclear: bool, reserve: float = 0.0) -> T:
        try:
            result = call.ask(request, repeat_unclear=repeat_unclear, reserve=reserve, shortest=self._shortest)
        except Absent as answer:
            # A wrong bucket must not look like a job that was never recorded, and not every service tells them
            # apart. Asked once: a bucket that has answered is there.
            if not answer.sure and not self._bucket_answers:
                call.ask(self._probe, repeat_unclear=True, shortest=self._shortest)
                self._bucket_answers = True
            raise
        self._bucket_answers = True
        return result

    def _note(self, key: str, version: str) -> None:
        if len(self._known) >= _KNOWN:
            self._known.clear()  # they only help; forgetting them all is right, and needs no lock
        self._known[key] = version

    def _key(self, name: str) -> str:
        """The object's key, as django-storages computes it; raises SuspiciousFileOperation for ``..``."""
        cleaned = clean_name(name)
        if ".." in cleaned.split("/"):
            raise SuspiciousFileOperation(f"{name!r} leads out of the storage.")
        return self._django._normalize_name(cleaned)

    def _prefix(self, prefix: str) -> str:
        key = self._key(prefix.strip("/")).strip("/")
        return f"{key}/" if key else ""

    @property
    def _place(self) -> str:
        place = f"{self._service} bucket {self._django.bucket_name!r}"
        return f"{place} (storage {self.alias!r})" if self.alias else place

    @contextmanager
    def _told(self, action: str, name: str) -> Iterator[None]:
        """Turn answers into the errors of the contract, naming the bucket."""
        with unavailable(action, name):
            try:
                yield
            except Answer as answer:
                kind = StorageMisconfigured if isinstance(answer, Wrong) else StorageUnavailable
                doubt = "; whether it was applied is not known" if isinstance(answer, Unclear) else ""
                raise kind(f"Could not {action} {name!r} in {self._place}: {answer}{doubt}") from (
                    answer.__cause__ or answer
                )
