from __future__ import annotations

import functools

import pytest

from django_jobkit.exceptions import StorageMisconfigured, StorageUnavailable
from django_jobkit.storages import adapt
from tests.storages.contract import NAME, StorageContract
from tests.storages.proxy import canned, hang, lost, reset, status, truncated
from tests.storages.remote import RemoteStorageTests

pytestmark = [pytest.mark.component, pytest.mark.slow]


def amazon(endpoint: str, bucket: str, *, timeout: float = 10.0, concurrency: int = 10, **options):
    """An adapter for django-storages' own class, as STORAGES would make it."""
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
def shared_session():
    import boto3

    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test")


def quick_amazon(endpoint: str, bucket: str, **options):
    """The same, without what takes a tenth of a second for each: a session of its own."""
    adapted = amazon(endpoint, bucket, **options)
    adapted.storage._create_session = shared_session
    return adapted


class TestS3(StorageContract):
    """Below a location, as many share a bucket."""

    swaps_per_worker = 5  # moto needs some milliseconds for each request

    @pytest.fixture
    def storage(self, s3_url, s3_bucket):
        return amazon(s3_url, s3_bucket, location="site/media")

    @pytest.fixture
    def reopen(self, s3_url, s3_bucket):
        return functools.partial(amazon, s3_url, s3_bucket, location="site/media")


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

    @pytest.fixture
    def proxy(self, s3_proxy):
        return s3_proxy

    @pytest.fixture
    def make(self, proxy, s3_bucket):
        def make(bucket=s3_bucket, **options):
            return quick_amazon(proxy.url, bucket, **options)

        return make

    @pytest.fixture
    def direct(self, s3_url, s3_bucket):
        return quick_amazon(s3_url, s3_bucket)

    @pytest.fixture
    def reopen(self, s3_url, s3_bucket):
        return functools.partial(amazon, s3_url, s3_bucket)

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


@pytest.fixture
def through(s3_proxy, s3_bucket):
    return functools.partial(quick_amazon, s3_proxy.url, s3_bucket)


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


def test_the_storages_acl_goes_with_a_write(through, s3_proxy):
    through(default_acl="private").write(NAME, b"{}")
    sent = {name.lower(): value for name, value in s3_proxy.requests[0].headers.items()}
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
def test_two_writers_in_each_others_way_try_again(through, s3_proxy, code):
    storage = through()
    version = storage.write(NAME, b"1")
    s3_proxy.break_next(status(409, error(code, "Conflict")), "write")
    storage.write(NAME, b"2", if_version=version)
    assert s3_proxy.kinds() == ["write"] * 3


@pytest.mark.parametrize("fault", [reset, lost(), truncated, hang], ids=["reset", "lost", "truncated", "hangs"])
def test_a_removal_without_an_answer_is_repeated_for_the_listed_versions_only(through, s3_proxy, fault):
    storage = through(timeout=2)
    versions = [storage.write(f"jobs/job-1/{number}.json", str(number).encode()) for number in range(3)]
    s3_proxy.break_next(fault, "batch")
    assert storage.delete_tree("jobs/job-1") == 3
    first, second = (request.body.decode() for request in s3_proxy.requests if request.kind == "batch")
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


def test_what_a_batch_did_not_remove_for_now_is_tried_again_alone(through, s3_proxy):
    storage = through()
    for number in range(3):
        storage.write(f"jobs/job-1/{number}.json", b"")
    s3_proxy.break_next(batch_answer("SlowDown", "jobs/job-1/1.json"), "batch")
    assert storage.delete_tree("jobs/job-1") == 3
    second = [request for request in s3_proxy.requests if request.kind == "batch"][1]
    assert second.body.count(b"<Key>") == 1


def test_what_a_batch_spared_since_others_wrote_it_is_listed_again(through, s3_proxy):
    storage = through()
    storage.write(NAME, b"")
    s3_proxy.break_next(batch_answer("PreconditionFailed", NAME), "batch")
    s3_proxy.requests.clear()
    assert storage.delete_tree("jobs/job-1") == 1
    assert s3_proxy.kinds() == ["list", "batch", "list", "batch"]


def test_a_tree_that_is_written_again_and_again_is_given_up(through, s3_proxy):
    storage = through()
    storage.write(NAME, b"")
    s3_proxy.break_next(batch_answer("PreconditionFailed", NAME), "batch", None)
    with pytest.raises(StorageUnavailable, match="as fast as it is emptied"):
        storage.delete_tree("jobs/job-1")


def test_a_batch_that_may_not_remove_an_object_names_the_permission(through, s3_proxy):
    storage = through()
    storage.write(NAME, b"")
    s3_proxy.break_next(batch_answer("AccessDenied", NAME), "batch")
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
