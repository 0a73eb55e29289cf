from __future__ import annotations

import functools
import json
import urllib.parse
import urllib.request

import pytest

from django_jobkit.exceptions import StorageMisconfigured
from django_jobkit.storages import adapt
from tests.storages.contract import NAME, StorageContract
from tests.storages.processes import run_threads
from tests.storages.providers import google
from tests.storages.proxy import hang, lost, reset, status, truncated
from tests.storages.remote import Emulator, RemoteStorageTests
from tests.storages.servers import send

pytestmark = [pytest.mark.component, pytest.mark.slow]


def error(code: int, message: str, reason: str) -> tuple[str, str]:
    """An error as Google's JSON API words it."""
    details = {"code": code, "message": message, "errors": [{"message": message, "reason": reason}]}
    return "application/json", json.dumps({"error": details})


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "set by each test")
    monkeypatch.delenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", raising=False)


@pytest.fixture
def emulator(gcs_url, gcs_bucket):
    return Emulator(google, gcs_url, gcs_bucket)


@pytest.fixture
def proxy(gcs_proxy):
    return gcs_proxy


class TestGoogleCloudStorage(StorageContract):
    @pytest.fixture
    def storage(self, emulator):
        return emulator.adapter()

    @pytest.fixture
    def reopen(self, emulator):
        return emulator.reopen()


class TestGoogleCloudStorageBehindAProxy(RemoteStorageTests):
    refusals = {
        "403": error(403, "test@example.com does not have storage.objects access to the bucket.", "forbidden"),
        "404 object": ("text/plain", "No such object: bucket/jobs/job-1/status.json"),
        "404 bucket": error(404, "The specified bucket does not exist.", "notFound"),
        "429": error(429, "The object exceeded the rate limit for object mutation operations.", "rateLimitExceeded"),
        "503": error(503, "We encountered an internal error. Please try again.", "backendError"),
    }

    def listing(self, count):
        def answer(request):
            assert request.query["delimiter"] == "/"
            assert request.query["maxResults"] == "1000"
            assert request.query["fields"] == "prefixes,nextPageToken"
            start = int(request.query.get("pageToken", 0))
            prefixes = [f"{request.query['prefix']}job-{n:04}/" for n in range(start, min(start + 1000, count))]
            more = {"nextPageToken": str(start + 1000)} if start + 1000 < count else {}
            return "application/json", json.dumps({"kind": "storage#objects", "prefixes": prefixes, **more})

        return answer


# What only Google's has


@pytest.fixture
def metadata(gcs_url, gcs_bucket):
    """What the service knows of an object."""

    def get(key: str) -> dict[str, str]:
        address = f"{gcs_url}/storage/v1/b/{gcs_bucket}/o/{urllib.parse.quote(key, safe='')}"
        return json.loads(send(urllib.request.Request(address)))

    return get


def test_files_are_stored_with_their_type_and_not_to_be_cached(through, metadata):
    storage = through(location="site")
    version = storage.write(NAME, b"{}")
    storage.write("jobs/job-1/chart.svg", b"<svg/>")
    stored = metadata(f"site/{NAME}")
    assert stored["contentType"] == "application/json; charset=utf-8"
    assert stored["cacheControl"] == "no-store"
    assert stored["generation"] == version
    assert metadata("site/jobs/job-1/chart.svg")["contentType"] == "image/svg+xml"


def test_object_parameters_are_honoured_except_for_the_type_and_caching(through, metadata):
    storage = through(object_parameters={"cache_control": "max-age=3600", "metadata": {"team": "comics"}})
    storage.write(NAME, b"{}")
    assert metadata(NAME)["metadata"] == {"team": "comics"}
    assert metadata(NAME)["cacheControl"] == "no-store"


def test_keys_are_those_of_django_storages(through):
    from django.core.files.base import ContentFile

    storage = through(location="site/media")
    storage.storage.save("jobs/job-7/a b%c.json", ContentFile(b"saved by Django"))
    assert storage.read("jobs/job-7/a b%c.json").data == b"saved by Django"
    storage.write("jobs/job-7/a b%c.json", b"saved here")
    with storage.storage.open("jobs/job-7/a b%c.json") as file:
        assert file.read() == b"saved here"


def test_a_subclass_that_makes_its_own_client_is_asked_for_it(proxy, gcs_bucket):
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.storage import Client
    from storages.backends.gcloud import GoogleCloudStorage

    class Private(GoogleCloudStorage):
        @functools.cached_property
        def client(self):
            return Client("test", AnonymousCredentials(), client_options={"api_endpoint": proxy.url})

    django_storage = Private(bucket_name=gcs_bucket)
    shared = django_storage.client
    storage = adapt(django_storage)
    storage.write(NAME, b"1")
    assert proxy.kinds() == ["write"]
    assert storage._client.get() is not shared
    assert django_storage.client is shared


def test_a_write_refused_for_coming_within_a_second_waits_and_succeeds(through, proxy):
    storage = through()
    version = storage.write(NAME, b"1")
    refused = TestGoogleCloudStorageBehindAProxy.refusals["429"]
    proxy.break_next(status(429, refused), "write", 3)
    assert storage.write(NAME, b"2", if_version=version) == storage.read(NAME).version
    assert proxy.kinds() == ["write"] * 5 + ["read"]


def test_a_tree_is_removed_in_batches_of_100_that_spare_what_was_written_since(through, proxy, emulator):
    storage, direct = through(), emulator.adapter()
    proxy.emulates_batch = True
    run_threads(lambda n: [direct.write(f"jobs/job-1/{n}-{m}.json", b"") for m in range(50)], 5)
    rewritten = []

    def rewrite_and_pass_on(handler, request, forward):
        rewritten.append(direct.write("jobs/job-1/0-0.json", b"theirs"))
        assert b"ifGenerationMatch=" in request.body
        handler.answer(forward(request))

    proxy.break_next(rewrite_and_pass_on, "batch")
    assert storage.delete_tree("jobs/job-1") == 250
    # The file written while the first batch was under way was spared, found by a second listing, and removed then.
    assert proxy.kinds() == ["list", "batch", "batch", "batch", "list", "batch"]
    assert len(rewritten) == 1
    assert list(direct.list_dirs("jobs")) == []


@pytest.mark.parametrize("fault", [reset, lost(), truncated, hang], ids=["reset", "lost", "truncated", "hangs"])
def test_a_batch_without_an_answer_is_repeated_and_counts_what_it_removed(through, proxy, fault):
    storage = through(timeout=2)
    proxy.emulates_batch = True
    for number in range(5):
        storage.write(f"jobs/job-1/{number}.json", b"")
    proxy.break_next(fault, "batch")
    assert storage.delete_tree("jobs/job-1") == 5
    assert list(storage.list_dirs("jobs")) == []


def test_where_there_is_no_batch_objects_are_removed_one_by_one_and_batches_not_tried_again(through, proxy):
    storage = through(concurrency=4)
    for job in range(2):
        for number in range(5):
            storage.write(f"jobs/job-{job}/{number}.json", b"")
    proxy.requests.clear()
    assert storage.delete_tree("jobs/job-0") == 5
    assert proxy.kinds() == ["list", "batch"] + ["delete"] * 5
    assert all(request.query["ifGenerationMatch"] for request in proxy.requests if request.kind == "delete")
    proxy.requests.clear()
    assert storage.delete_tree("jobs/job-1") == 5
    assert proxy.kinds() == ["list"] + ["delete"] * 5


def test_directory_markers_are_removed_and_not_counted(through, gcs_bucket):
    storage = through()
    storage.write(NAME, b"")
    storage._client.get().bucket(gcs_bucket).blob("jobs/job-1/").upload_from_string(b"")
    assert storage.delete_tree("jobs/job-1") == 1
    assert list(storage.list_dirs("jobs")) == []


def test_the_bucket_is_looked_for_once_where_the_service_does_not_say_what_is_missing(through, proxy):
    storage = through()
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            storage.read(NAME)
    assert proxy.kinds() == ["read", "list", "read"]


def test_missing_credentials_are_told_at_once(monkeypatch, tmp_path):
    from storages.backends.gcloud import GoogleCloudStorage

    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    storage = adapt(GoogleCloudStorage(bucket_name="some-bucket"), alias="media")
    with pytest.raises(StorageMisconfigured, match="credentials"):
        storage.read(NAME)
