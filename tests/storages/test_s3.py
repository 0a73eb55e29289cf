from __future__ import annotations

import functools

import pytest

from django_jobkit.exceptions import StorageMisconfigured, StorageUnavailable
from django_jobkit.storages import adapt
from tests.storages.contract import NAME, StorageContract
from tests.storages.providers import amazon, quick_amazon
from tests.storages.proxy import canned, hang, lost, reset, status, truncated
from tests.storages.remote import Emulator, RemoteStorageTests

pytestmark = [pytest.mark.component, pytest.mark.slow]


@pytest.fixture
def emulator(s3_url, s3_bucket):
    return Emulator(amazon, s3_url, s3_bucket, quick_amazon)


@pytest.fixture
def proxy(s3_proxy):
    return s3_proxy


class TestS3(StorageContract):
    """Below a location, as many share a bucket."""

    swaps_per_worker = 5  # moto needs some milliseconds for each request

    @pytest.fixture
    def storage(self, emulator):
        return emulator.adapter(location="site/media")

    @pytest.fixture
    def reopen(self, emulator):
        return functools.partial(emulator.reopen(), location="site/media")


def error(code: str, message: str) -> tuple[str, str]:
    """An error as S3 words it."""
    return "application/xml", (
        f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    )


class TestS3BehindAProxy(RemoteStorageTests):
    refusals = {
        "403": error("AccessDenied", "Access Denied"),
        "404 object": error("NoSuchKey", "The specified key does not exist."),
        "404 bucket": error("NoSuchBucket", "The specified bucket does not exist"),
        "429": error("TooManyRequests", "Please reduce your request rate."),
        "503": error("SlowDown", "Please reduce your request rate."),
    }

    def listing(self, count):
        def answer(request):
            assert request.query["delimiter"] == "/"
            assert request.query["max-keys"] == "1000"
            start = int(request.query.get("continuation-token", 0))
            prefixes = "".join(
                f"<CommonPrefixes><Prefix>{request.query['prefix']}job-{number:04}/</Prefix></CommonPrefixes>"
                for number in range(start, min(start + 1000, count))
            )
            more = f"<NextContinuationToken>{start + 1000}</NextContinuationToken>" if start + 1000 < count else ""
            return "application/xml", f"<ListBucketResult>{prefixes}{more}</ListBucketResult>"

        return answer


# What only S3 has


def test_files_are_stored_with_their_type_and_not_to_be_cached(through, s3_bucket):
    storage = through(location="site", object_parameters={"CacheControl": "max-age=60", "Metadata": {"team": "comics"}})
    version = storage.write(NAME, b"{}")
    storage.write("jobs/job-1/chart.svg", b"<svg/>")
    stored = storage._client.get().head_object(Bucket=s3_bucket, Key=f"site/{NAME}")
    assert stored["ContentType"] == "application/json; charset=utf-8"
    assert stored["CacheControl"] == "no-store"
    assert stored["ETag"] == version
    assert stored["Metadata"] == {"team": "comics"}
    chart = storage._client.get().head_object(Bucket=s3_bucket, Key="site/jobs/job-1/chart.svg")
    assert chart["ContentType"] == "image/svg+xml"


def test_the_storages_acl_goes_with_a_write(through, proxy):
    through(default_acl="private").write(NAME, b"{}")
    sent = {name.lower(): value for name, value in proxy.requests[0].headers.items()}
    assert sent["x-amz-acl"] == "private"


def test_keys_are_those_of_django_storages(through):
    from django.core.files.base import ContentFile

    storage = through(location="site/media")
    storage.storage.save("jobs/job-7/a b%c.json", ContentFile(b"saved by Django"))
    assert storage.read("jobs/job-7/a b%c.json").data == b"saved by Django"
    storage.write("jobs/job-7/a b%c.json", b"saved here")
    with storage.storage.open("jobs/job-7/a b%c.json") as file:
        assert file.read() == b"saved here"


def test_the_storages_client_options_are_kept(through):
    from botocore.config import Config

    storage = through(client_config=Config(s3={"addressing_style": "path"}, user_agent_extra="comics/1"))
    storage.write(NAME, b"{}")
    config = storage._client.get().meta.config
    assert config.s3["addressing_style"] == "path"
    assert config.user_agent_extra == "comics/1"
    assert config.max_pool_connections == 10


@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "OperationAborted"])
def test_two_writers_in_each_others_way_try_again(through, proxy, code):
    storage = through()
    version = storage.write(NAME, b"1")
    proxy.break_next(status(409, error(code, "Conflict")), "write")
    storage.write(NAME, b"2", if_version=version)
    assert proxy.kinds() == ["write"] * 3


@pytest.mark.parametrize("fault", [reset, lost(), truncated, hang], ids=["reset", "lost", "truncated", "hangs"])
def test_a_removal_without_an_answer_is_repeated_for_the_listed_versions_only(through, proxy, fault):
    storage = through(timeout=2)
    versions = [storage.write(f"jobs/job-1/{number}.json", str(number).encode()) for number in range(3)]
    proxy.break_next(fault, "batch")
    assert storage.delete_tree("jobs/job-1") == 3
    first, second = (request.body.decode() for request in proxy.requests if request.kind == "batch")
    assert "<ETag>" not in first
    assert all(version.strip('"') in second for version in versions)
    assert list(storage.list_dirs("jobs")) == []


def batch_answer(code: str, key: str):
    """S3's answer to a batch in which one object was not removed."""
    return canned(
        lambda request: (
            "application/xml",
            f"<DeleteResult><Error><Key>{key}</Key><Code>{code}</Code><Message>No</Message></Error></DeleteResult>",
        )
    )


def test_what_a_batch_did_not_remove_for_now_is_tried_again_alone(through, proxy):
    storage = through()
    for number in range(3):
        storage.write(f"jobs/job-1/{number}.json", b"")
    proxy.break_next(batch_answer("SlowDown", "jobs/job-1/1.json"), "batch")
    assert storage.delete_tree("jobs/job-1") == 3
    second = [request for request in proxy.requests if request.kind == "batch"][1]
    assert second.body.count(b"<Key>") == 1


def test_what_a_batch_spared_since_others_wrote_it_is_listed_again(through, proxy):
    storage = through()
    storage.write(NAME, b"")
    proxy.break_next(batch_answer("PreconditionFailed", NAME), "batch")
    proxy.requests.clear()
    assert storage.delete_tree("jobs/job-1") == 1
    assert proxy.kinds() == ["list", "batch", "list", "batch"]


def test_a_tree_that_is_written_again_and_again_is_given_up(through, proxy):
    storage = through()
    storage.write(NAME, b"")
    proxy.break_next(batch_answer("PreconditionFailed", NAME), "batch", None)
    with pytest.raises(StorageUnavailable, match="as fast as it is emptied"):
        storage.delete_tree("jobs/job-1")


def test_a_batch_that_may_not_remove_an_object_names_the_permission(through, proxy):
    storage = through()
    storage.write(NAME, b"")
    proxy.break_next(batch_answer("AccessDenied", NAME), "batch")
    with pytest.raises(StorageMisconfigured, match="s3:DeleteObject"):
        storage.delete_tree("jobs/job-1")


def test_missing_credentials_are_told_at_once(s3_url, monkeypatch, tmp_path):
    from storages.backends.s3 import S3Storage

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    storage = adapt(S3Storage(bucket_name="some-bucket", endpoint_url=s3_url, region_name="us-east-1"))
    with pytest.raises(StorageMisconfigured, match="credentials"):
        storage.read(NAME)
