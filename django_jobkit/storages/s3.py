"""Jobs in S3 and what speaks its language, through django-storages' settings and boto3."""

# ruff: noqa: ARG001 - botocore's timeouts belong to the client, so no request takes its own.

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, cast

from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    ResponseStreamingError,
)
from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]
from django.core.files.storage import Storage
from urllib3.exceptions import HTTPError

from django_jobkit.jobs.files import ABSENT, ANY, CACHE_CONTROL, IfVersion, StoredFile, content_type
from django_jobkit.storages.attempts import Absent, Answer, Call, Failed, Mismatch, Refused, Unclear, Wrong
from django_jobkit.storages.faults import describe
from django_jobkit.storages.objects import ObjectJobStorage
from django_jobkit.storages.processes import PerProcess
from django_jobkit.storages.removal import Removal

_REFUSED: Final = {429, 503}
_UNCLEAR: Final = {408, 500, 502, 504}
_PERMISSIONS: Final = {
    "get": "s3:GetObject and, to tell a missing object from a forbidden one, s3:ListBucket",
    "put": "s3:PutObject",
    "remove": "s3:DeleteObject",
    "list": "s3:ListBucket",
}
# Those of the storage's object parameters that go with a read, too.
_READ_PARAMETERS: Final = (
    "SSECustomerAlgorithm",
    "SSECustomerKey",
    "SSECustomerKeyMD5",
    "RequestPayer",
    "ExpectedBucketOwner",
)


class AmazonStorage(Protocol):
    """What we use of `storages.backends.s3.S3Storage`."""

    bucket_name: str | None
    default_acl: str | None
    client_config: Config
    connection: Any

    def get_object_parameters(self, name: str) -> dict[str, Any]: ...


class S3JobStorage(ObjectJobStorage):
    """Jobs in the bucket of an `S3Storage`; a version is the object's ETag."""

    _service = "S3"

    def __init__(self, storage: Storage, *, timeout: float = 10.0, concurrency: int = 10, alias: str = "") -> None:
        super().__init__(storage, timeout=timeout, concurrency=concurrency, alias=alias)
        self._amazon = cast(AmazonStorage, storage)
        self._client = PerProcess(self._connect)
        self._slots = PerProcess(lambda: threading.BoundedSemaphore(concurrency))
        # What a request that hangs takes, whatever time is left: see `_connect`.
        self._shortest = timeout / 4

    def _connect(self) -> Any:
        # Through a copy: the storage keeps one connection for each thread, with timeouts and retries of its own.
        own = copy.copy(self._amazon)
        own.client_config = own.client_config.merge(
            Config(
                connect_timeout=self.timeout / 4,
                read_timeout=self.timeout / 4,
                max_pool_connections=self.concurrency,
                retries={"total_max_attempts": 1, "mode": "standard"},
            )
        )
        return own.connection.meta.client

    def _new_call(self, timeout: float) -> Call:
        return Call(timeout, self._slots.get())

    @property
    def _bucket(self) -> dict[str, str | None]:
        return {"Bucket": self._amazon.bucket_name}

    def _get(self, key: str, seconds: float) -> StoredFile:
        with _answers("get"):
            parameters = self._amazon.get_object_parameters(key)
            extra = {name: parameters[name] for name in _READ_PARAMETERS if name in parameters}
            answer = self._client.get().get_object(**self._bucket, Key=key, **extra)
            with answer["Body"] as body:
                return StoredFile(body.read(), answer["ETag"])

    def _put(self, key: str, name: str, data: bytes, if_version: IfVersion, seconds: float) -> str:
        parameters = {"ACL": self._amazon.default_acl} if self._amazon.default_acl else {}
        parameters |= self._amazon.get_object_parameters(key)
        parameters.pop("ContentEncoding", None)
        parameters |= {"ContentType": content_type(name), "CacheControl": CACHE_CONTROL}
        if if_version is ABSENT:
            parameters["IfNoneMatch"] = "*"
        elif if_version is not ANY:
            parameters["IfMatch"] = if_version
        with _answers("put", conditional=if_version is not ANY):
            answer = self._client.get().put_object(**self._bucket, Key=key, Body=data, **parameters)
            return str(answer["ETag"])

    def _remove(self, key: str, version: str | None, seconds: float) -> None:
        condition = {} if version is None else {"IfMatch": version}
        with _answers("remove"):
            self._client.get().delete_object(**self._bucket, Key=key, **condition)

    def _list_prefixes(self, prefix: str, token: str | None, seconds: float) -> tuple[list[str], str | None]:
        answer = self._list(prefix, token, Delimiter="/")
        return [entry["Prefix"] for entry in answer.get("CommonPrefixes", ())], answer.get("NextContinuationToken")

    def _list_objects(self, prefix: str, token: str | None, seconds: float) -> tuple[list[tuple[str, str]], str | None]:
        answer = self._list(prefix, token)
        found = [(entry["Key"], entry["ETag"]) for entry in answer.get("Contents", ())]
        return found, answer.get("NextContinuationToken")

    def _probe(self, seconds: float) -> None:
        self._list("", None, MaxKeys=1)

    def _list(self, prefix: str, token: str | None, **options: Any) -> dict[str, Any]:
        if token is not None:
            options["ContinuationToken"] = token
        with _answers("list"):
            listed = self._client.get().list_objects_v2(
                **self._bucket, Prefix=prefix, **({"MaxKeys": self.page} | options)
            )
            return cast(dict[str, Any], listed)

    def _remove_page(self, removal: Removal) -> None:
        call = self._new_call(self.timeout)

        def request(seconds: float) -> None:
            # The condition goes with a repetition only: not every service that speaks S3 knows it.
            objects = [
                {"Key": key, "ETag": version} if call.unclear else {"Key": key}
                for key, version in removal.pending.items()
            ]
            with _answers("remove"):
                answer = self._client.get().delete_objects(**self._bucket, Delete={"Objects": objects, "Quiet": True})
            errors = {error["Key"]: error for error in answer.get("Errors", ())}
            for key in list(removal.pending):
                if key not in errors:
                    removal.removed += not key.endswith("/")
                    del removal.pending[key]
                elif errors[key].get("Code") == "PreconditionFailed":
                    removal.changed = True
                    del removal.pending[key]
            for key in removal.pending:
                code, text = errors[key].get("Code", ""), errors[key].get("Message", "")
                raise _answer_to(_STATUS_OF.get(code, 0), code, "remove", f"{code}: {text}")

        self._ask(call, request, repeat_unclear=True)


# The errors of single objects in a batch come without a status.
_STATUS_OF: Final = {"AccessDenied": 403, "InternalError": 500, "SlowDown": 503, "ServiceUnavailable": 503}


@contextmanager
def _answers(action: str, *, conditional: bool = False) -> Iterator[None]:
    """Raise the `Answer` for whatever boto3 raises."""
    try:
        yield
    except Answer:
        raise
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = str(error.response.get("Error", {}).get("Code", ""))
        text = f"{status} {code}: {error.response.get('Error', {}).get('Message', '')}"
        answer = _answer_to(status, code, action, text)
        if conditional and isinstance(answer, Absent):
            answer = Mismatch(text)
        raise answer from error
    except (EndpointConnectionError, ConnectTimeoutError) as error:
        raise Refused(describe(error)) from error
    except (
        NoCredentialsError,
        PartialCredentialsError,
        CredentialRetrievalError,
        ProfileNotFound,
        NoRegionError,
        ParamValidationError,
    ) as error:
        raise Wrong(describe(error)) from error
    except (
        HTTPClientError,
        IncompleteReadError,
        ResponseStreamingError,
        ResponseParserError,
        HTTPError,
        OSError,
    ) as error:
        raise Unclear(describe(error)) from error
    except BotoCoreError as error:
        raise Failed(describe(error)) from error


def _answer_to(status: int, code: str, action: str, text: str) -> Answer:
    if status in _REFUSED or code in ("ConditionalRequestConflict", "OperationAborted", "SlowDown"):
        return Refused(text)
    if status in _UNCLEAR or code in ("RequestTimeout", "BadDigest"):
        return Unclear(text)
    if status == 412:
        return Mismatch(text)
    if code == "NoSuchBucket":
        return Wrong(f"there is no such bucket ({text})")
    if code == "NoSuchKey":
        return Absent(text)
    if status == 404:
        return Wrong(text) if action == "list" else Absent(text, sure=False)
    if status in (401, 403):
        return Wrong(f"access is denied; it needs the permission {_PERMISSIONS[action]} on the bucket ({text})")
    if status in (301, 307, 400):
        return Wrong(text)
    return Failed(text)
