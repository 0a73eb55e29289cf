"""Adapters for django-storages' own classes, as STORAGES would make them, onto emulators.

Nothing is imported until one is made, so that a process which only needs these starts quickly.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from django_jobkit.storages import JobStorage, adapt


def google(endpoint: str, bucket: str, *, timeout: float = 10.0, concurrency: int = 10, **options: Any) -> JobStorage:
    """The client finds the emulator by itself, from the environment."""
    from storages.backends.gcloud import GoogleCloudStorage

    os.environ["STORAGE_EMULATOR_HOST"] = endpoint
    storage = GoogleCloudStorage(bucket_name=bucket, **options)
    adapted: Any = adapt(storage, timeout=timeout, concurrency=concurrency, alias="media")
    adapted._client.get()  # the client reads the variable when it is made, and others may be made after this one
    return adapted


def amazon(endpoint: str, bucket: str, *, timeout: float = 10.0, concurrency: int = 10, **options: Any) -> JobStorage:
    from storages.backends.s3 import S3Storage

    storage = S3Storage(
        bucket_name=bucket,
        endpoint_url=endpoint,
        access_key="test",
        secret_key="test",
        region_name="us-east-1",
        **options,
    )
    return adapt(storage, timeout=timeout, concurrency=concurrency, alias="media")


@functools.cache
def shared_session() -> Any:
    import boto3

    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test")


def quick_amazon(endpoint: str, bucket: str, **options: Any) -> JobStorage:
    """The same, without what takes a tenth of a second for each: a session of its own."""
    adapted: Any = amazon(endpoint, bucket, **options)
    adapted.storage._create_session = shared_session
    return adapted
