"""Makes the fixtures of `servers` known to the tests of the storages."""

from __future__ import annotations

import functools

import pytest

from tests.storages.servers import gcs_bucket, gcs_proxy, gcs_url, s3_bucket, s3_proxy, s3_url

__all__ = ["gcs_bucket", "gcs_proxy", "gcs_url", "s3_bucket", "s3_proxy", "s3_url"]


@pytest.fixture
def through(emulator, proxy):
    """Makes an adapter with these options, through the proxy of the test's module."""
    return functools.partial(emulator.adapter, proxy.url)
