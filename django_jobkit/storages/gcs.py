"""Jobs in Google Cloud Storage, through django-storages' settings and Google's own client."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any, Final, Protocol, cast

import requests.exceptions
from django.core.files.storage import Storage
from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud.storage import Blob, Client  # type: ignore[import-untyped]
from google.cloud.storage.exceptions import DataCorruption  # type: ignore[import-untyped]
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ConnectTimeoutError, HTTPError, MaxRetryError, NewConnectionError

from django_jobkit.jobs.files import ABSENT, ANY, CACHE_CONTROL, IfVersion, StoredFile, content_type
from django_jobkit.storages.attempts import Absent, Answer, Call, Failed, Mismatch, Refused, Unclear, Wrong
from django_jobkit.storages.faults import describe
from django_jobkit.storages.objects import ObjectJobStorage
from django_jobkit.storages.processes import PerProcess
from django_jobkit.storages.removal import Removal

_BATCH: Final = 100
"""The most calls that the service takes in one batch."""
_REFUSED: Final = {429, 503}
_UNCLEAR: Final = {408, 500, 502, 504}
_PERMISSIONS: Final = {
    "get": "storage.objects.get",
    "put": "storage.objects.create and, to overwrite, storage.objects.delete",
    "remove": "storage.objects.delete",
    "list": "storage.objects.list",
}


class GoogleStorage(Protocol):
    """What we use of `storages.backends.gcloud.GoogleCloudStorage`."""

    bucket_name: str | None
    default_acl: str | None
    client: Client

    def get_object_parameters(self, name: str) -> dict[str, Any]: ...


class GCSJobStorage(ObjectJobStorage):
    """Jobs in the bucket of a `GoogleCloudStorage`; a version is the object's generation.

    The service takes about one write per second to one object, and answers 429 to more: such a write is repeated
    until it is taken. Batch deletion is used where the service has it; elsewhere, objects are deleted one by one,
    ``concurrency`` at a time.
    """

    min_write_interval: Final = 1.0
    """Seconds: what would only repeat a record within them isn't sent."""
    _service = "Google Cloud Storage"

    def __init__(self, storage: Storage, *, timeout: float = 10.0, concurrency: int = 10, alias: str = "") -> None:
        super().__init__(storage, timeout=timeout, concurrency=concurrency, alias=alias)
        self._google = cast(GoogleStorage, storage)
        self._client = PerProcess(self._connect)
        self._slots = PerProcess(lambda: threading.BoundedSemaphore(concurrency))
        self._has_batch = True

    def _connect(self) -> Client:
        # Through a copy: the storage's own client may have been made before a fork, and has ten connections.
        own = copy.copy(self._google)
        own.__dict__.update(_client=None, _bucket=None)
        own.__dict__.pop("client", None)  # where a subclass has made it a cached property
        client = own.client
        # Newer clients ask for the bucket's metadata in a thread of their own, for traces that nobody may want.
        client._bucket_metadata_cache = None
        adapter = HTTPAdapter(pool_connections=4, pool_maxsize=self.concurrency, max_retries=0)
        for scheme in ("https://", "http://"):
            client._http.mount(scheme, adapter)
        return client

    def _new_call(self, timeout: float) -> Call:
        return Call(timeout, self._slots.get())

    def _blob(self, key: str) -> Blob:
        return Blob(key, self._client.get().bucket(self._google.bucket_name))

    def _get(self, key: str, seconds: float) -> StoredFile:
        with _answers("get"):
            blob = self._blob(key)
            data = blob.download_as_bytes(retry=None, timeout=_split(seconds))
            return StoredFile(data, str(blob.generation))

    def _put(self, key: str, name: str, data: bytes, if_version: IfVersion, seconds: float) -> str:
        with _answers("put"):
            blob = self._blob(key)
            parameters = self._google.get_object_parameters(key)
            acl = parameters.pop("acl", self._google.default_acl)
            for parameter, value in parameters.items():
                if parameter not in ("content_type", "content_encoding"):
                    setattr(blob, parameter, value)
            blob.cache_control = CACHE_CONTROL
            blob.upload_from_string(
                data,
                content_type=content_type(name),
                predefined_acl=acl,
                if_generation_match=_generation(if_version),
                retry=None,
                timeout=_split(seconds),
            )
            return str(blob.generation)

    def _remove(self, key: str, version: str | None, seconds: float) -> None:
        with _answers("remove"):
            blob = self._blob(key)
            generation = None if version is None else int(version)
            blob.delete(if_generation_match=generation, retry=None, timeout=_split(seconds))

    def _list_prefixes(self, prefix: str, token: str | None, seconds: float) -> tuple[list[str], str | None]:
        iterator = self._list(prefix, token, seconds, delimiter="/", fields="prefixes,nextPageToken")
        with _answers("list"):
            page = next(iterator.pages)
            return list(page.prefixes), iterator.next_page_token

    def _list_objects(self, prefix: str, token: str | None, seconds: float) -> tuple[list[tuple[str, str]], str | None]:
        iterator = self._list(prefix, token, seconds, fields="items(name,generation),nextPageToken")
        with _answers("list"):
            page = next(iterator.pages)
            return [(blob.name, str(blob.generation)) for blob in page], iterator.next_page_token

    def _probe(self, seconds: float) -> None:
        with _answers("list"):
            next(self._list("", None, seconds, page_size=1, fields="nextPageToken").pages)

    def _list(self, prefix: str, token: str | None, seconds: float, *, page_size: int = 0, **options: str) -> Any:
        with _answers("list"):
            return self._client.get().list_blobs(
                self._google.bucket_name,
                prefix=prefix or None,
                page_token=token,
                page_size=page_size or self.page,
                retry=None,
                timeout=_split(seconds),
                **options,
            )

    def _remove_page(self, removal: Removal) -> None:
        keys = list(removal.pending)
        for start in range(0, len(keys), _BATCH):
            part = Removal([(key, removal.pending[key]) for key in keys[start : start + _BATCH]])
            if self._has_batch:
                self._has_batch = self._remove_in_batch(part)
            if part.pending:
                self._remove_one_by_one(part)
            removal.removed += part.removed
            removal.changed |= part.changed

    def _remove_in_batch(self, removal: Removal) -> bool:
        """Remove what is pending in one request, if the service can: whether it can."""
        call = self._new_call(self.timeout)

        def request(seconds: float) -> bool:
            keys = list(removal.pending)
            with _answers("remove"):
                bucket = self._client.get().bucket(self._google.bucket_name)
                try:
                    with bucket.client.batch(raise_exception=False) as batch:
                        for key in keys:
                            bucket.delete_blob(
                                key,
                                if_generation_match=int(removal.pending[key]),
                                retry=None,
                                timeout=_split(seconds),
                            )
                except ValueError:
                    return False  # no multi-part answer: nothing that understands batches
                except GoogleAPICallError as error:
                    if error.code in (400, 404, 405, 501):
                        return False
                    raise
                statuses = [response.status_code for response in batch._responses]
            for key, status in zip(keys, statuses, strict=False):
                self._settle(removal, key, status, again=call.unclear)
            if removal.pending:
                raise Refused(f"{len(removal.pending)} of {len(keys)} objects were not removed")
            return True

        return self._ask(call, request, repeat_unclear=True)

    def _settle(self, removal: Removal, key: str, status: int, *, again: bool) -> None:
        if status < 300 or status == 404:
            # What an earlier attempt without an answer removed counts; what others removed doesn't.
            removal.removed += (status < 300 or again) and not key.endswith("/")
            del removal.pending[key]
        elif status == 412:
            removal.changed = True
            del removal.pending[key]
        elif status not in _REFUSED | _UNCLEAR:
            raise _answer_to(status, "remove", f"removing {key!r} was answered with {status}")

    def _remove_one_by_one(self, removal: Removal) -> None:
        def remove(key: str) -> None:
            call = self._new_call(self.timeout)
            version = removal.pending[key]
            try:
                self._ask(call, lambda seconds: self._remove(key, version, seconds), repeat_unclear=True)
            except Absent:
                statuses[key] = (404, call.unclear)
            except Mismatch:
                statuses[key] = (412, call.unclear)
            else:
                statuses[key] = (204, call.unclear)

        statuses: dict[str, tuple[int, bool]] = {}
        with ThreadPoolExecutor(min(self.concurrency, len(removal.pending)), "jobkit-delete") as pool:
            list(pool.map(remove, list(removal.pending)))
        for key, (status, again) in statuses.items():
            self._settle(removal, key, status, again=again)


def _generation(if_version: IfVersion) -> int | None:
    if if_version is ANY:
        return None
    return 0 if if_version is ABSENT else int(if_version)


def _split(seconds: float) -> tuple[float, float]:
    """How long to wait for a connection, and for an answer, so that both together take no longer."""
    return seconds / 3, seconds * 2 / 3


@contextmanager
def _answers(action: str) -> Iterator[None]:
    """Raise the `Answer` for whatever Google's client raises."""
    try:
        yield
    except Answer:
        raise
    except GoogleAPICallError as error:
        raise _answer_to(error.code or 0, action, _text(error)) from error
    except TransportError as error:
        raise Refused(f"no access token: {describe(error)}") from error  # asked for before the request is sent
    except GoogleAuthError as error:
        raise Wrong(f"no usable credentials: {describe(error)}") from error
    except requests.exceptions.ConnectionError as error:
        if _never_connected(error):
            raise Refused(describe(error)) from error
        raise Unclear(describe(error)) from error
    except (requests.exceptions.RequestException, HTTPError, HTTPException, OSError, DataCorruption) as error:
        raise Unclear(describe(error)) from error


def _answer_to(status: int, action: str, text: str) -> Answer:
    if status in _REFUSED:
        return Refused(text)
    if status in _UNCLEAR:
        return Unclear(text)
    if status == 412:
        return Mismatch(text)
    if status == 404:
        # The service says which, in words; some stand-ins for it only say "Not Found".
        if action in ("put", "list") or "bucket does not exist" in text:
            return Wrong(f"there is no such bucket ({text})")
        return Absent(text, sure="No such object" in text)
    if status in (401, 403):
        return Wrong(f"access is denied; it needs the permission {_PERMISSIONS[action]} on the bucket ({text})")
    if status == 400:
        return Wrong(text)
    return Failed(text)


def _text(error: GoogleAPICallError) -> str:
    return f"{error.code} {' '.join(str(error.message).split())}"


def _never_connected(error: requests.exceptions.ConnectionError) -> bool:
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return True
    cause = error.args[0] if error.args else None
    return isinstance(cause, MaxRetryError) and isinstance(cause.reason, (NewConnectionError, ConnectTimeoutError))
