"""Which outputs there are, where they are linked to, and which files they are."""

from __future__ import annotations

import os

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage
from django.test import RequestFactory

from django_jobkit.exceptions import StorageUnavailable
from django_jobkit.jobs import JobStatus, Status
from django_jobkit.web.links import Links
from django_jobkit.web.outputs import Output, is_signed, names_of, open_output, outputs_of, signed_url
from tests.components import require
from tests.issuer import key_pair
from tests.web.payloads import PAYLOADS


def outputs(kit, names) -> list[Output]:
    return outputs_of(kit, Links(RequestFactory().get("/")), "abc", JobStatus(outputs=names))


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("summary.json", "/jobs/abc/outputs/summary.json"),
        ("status.json", "/jobs/abc/outputs/status.json"),  # if the record says so
        ("charts/by region.svg", "/jobs/abc/outputs/charts/by%20region.svg"),
        ("100%#1?.txt", "/jobs/abc/outputs/100%25%231%3F.txt"),
        ("%2e%2e/a", "/jobs/abc/outputs/%252e%252e/a"),
        ("月次.csv", "/jobs/abc/outputs/%E6%9C%88%E6%AC%A1.csv"),
        ("月次　報告.csv", "/jobs/abc/outputs/%E6%9C%88%E6%AC%A1%E3%80%80%E5%A0%B1%E5%91%8A.csv"),  # a wide space
        ("..hidden", "/jobs/abc/outputs/..hidden"),
        ("<b>.txt", "/jobs/abc/outputs/%3Cb%3E.txt"),
        ("{job_id}{name}{0}.txt", "/jobs/abc/outputs/%7Bjob_id%7D%7Bname%7D%7B0%7D.txt"),
    ],
)
def test_outputs_in_the_jobs_directory_are_linked(kit, name, url):
    assert outputs(kit, [name]) == [Output(name, url)]


ELSEWHERE = [
    "",
    " ",
    ".",
    "..",
    "../other-job/status.json",
    "a/../../b",
    "a/./b",
    "a//b",
    "/etc/passwd",
    "//evil.example/x",
    "\\\\evil.example\\x",
    "..\\..\\x",
    "a/",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "https://evil.example/x",
    "data:text/html,<script>",
    "C:file.txt",
    " javascript:alert(1)",
    "java\nscript:x",
    "a\0b",
    "a\u202egnp.exe",
    "a\u2028b",
]


@pytest.mark.parametrize("name", ELSEWHERE, ids=ascii)
def test_names_that_lead_elsewhere_are_text(kit, name):
    assert outputs(kit, [name]) == [Output(name, "")]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda text: ascii(text[:20]))
def test_whatever_a_name_is_its_link_stays_below_the_job(kit, payload):
    for output in outputs(kit, [payload, f"x/{payload}"]):
        assert not output.url or output.url.startswith("/jobs/abc/outputs/")
        assert "/../" not in output.url
        assert output.url.isascii()
        assert not set(output.url) & set('"<>\\ ?#\n')


def test_outputs_keep_their_order(kit):
    assert [output.name for output in outputs(kit, ["b", "a", "../c"])] == ["b", "a", "../c"]


@pytest.mark.parametrize(("found", "names"), [(["a", 1, None, ["b"]], ["a"]), ("abc", []), (7, []), (None, [])])
def test_what_is_no_list_of_names_names_nothing(found, names):
    """A status class of the site's own may have a field of this name."""
    status = JobStatus()
    status.outputs = found
    assert names_of(status) == names


def test_a_status_without_outputs_has_none():
    assert names_of(Status()) == []


class TestSigned:
    """Only a URL that isn't for everybody and for good is given out in place of the kit's own."""

    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("https://s3.example/a.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=60&X-Amz-Signature=0a", True),
            ("https://s3.example/a.txt?AWSAccessKeyId=k&Signature=x%3D&Expires=1", True),
            ("https://storage.example/a.txt?X-Goog-Expires=60&X-Goog-Signature=0a", True),
            ("https://storage.example/a.txt?GoogleAccessId=k&Expires=1&Signature=x", True),
            ("https://cdn.example/a.txt?Expires=1&Signature=x&Key-Pair-Id=k", True),
            ("https://account.blob.example/a.txt?se=2026&sp=r&sig=x%3D", True),
            ("/media/a.txt?signature=x", True),
            ("/media/a.txt", False),
            ("https://cdn.example/a.txt", False),
            ("https://cdn.example/a.txt?v=1", False),
            ("https://cdn.example/a.txt?Signature=", False),
            ("https://cdn.example/Signature=x/a.txt", False),
            ("https://cdn.example/a.txt#Signature=x", False),
            ("https://cdn.example/a.txt%3FSignature=x", False),
            ("https://cdn.example/a.txt?X-Amz-SignedHeaders=host", False),
            ("https://cdn.example/a.txt?design=x", False),
            ("", False),
        ],
    )
    def test_it_is_told_by_the_url(self, url, expected):
        assert is_signed(url) == expected

    def test_a_signed_url_elsewhere_is_linked(self, kit, monkeypatch):
        monkeypatch.setattr(kit.django_storage, "url", lambda name: f"https://storage.example/{name}?Signature=x")
        assert outputs(kit, ["a.txt"]) == [Output("a.txt", "https://storage.example/jobs/abc/a.txt?Signature=x")]

    @pytest.mark.parametrize(
        "url",
        [
            NotImplementedError(),
            ValueError("not accessible via a URL"),
            AttributeError("no private key to sign"),
            "ftp://x/y?Signature=x",
            "javascript:x?Signature=x",
        ],
    )
    def test_where_a_storage_has_none_the_kit_serves_the_file(self, kit, monkeypatch, url):
        def answer(name):
            if isinstance(url, Exception):
                raise url
            return url

        monkeypatch.setattr(kit.django_storage, "url", answer)
        assert outputs(kit, ["a.txt"]) == [Output("a.txt", "/jobs/abc/outputs/a.txt")]

    @pytest.mark.parametrize("name", ["a.txt?Signature=x", "a.txt&sig=x", "a.txt%3Fsig=x"])
    def test_a_name_does_not_make_a_public_url_look_signed(self, kit, name):
        assert signed_url(kit, f"jobs/abc/{name}") == ""


class TestTheServices:
    """What the storages of django-storages give, by their options. Nothing is asked of a server."""

    @pytest.mark.parametrize(
        ("options", "signed"),
        [
            ({}, True),
            ({"signature_version": "s3"}, True),
            ({"querystring_auth": False}, False),
            ({"custom_domain": "cdn.example"}, False),  # the key is that of S3, not of the domain
            ({"custom_domain": "cdn.example", "querystring_auth": False}, False),
        ],
    )
    def test_s3(self, kit, options, signed):
        backend = require("storages.backends.s3", "pip install 'django-jobkit[s3]'")
        keys = {"access_key": "key", "secret_key": "secret", "region_name": "eu-central-1"}
        kit.django_storage = backend.S3Storage(bucket_name="jobs-of-a-test", **keys, **options)
        assert bool(signed_url(kit, "jobs/abc/a b.txt")) == signed

    @pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow")  # django-storages', since Python 3.12
    def test_s3_behind_cloudfront(self, kit):
        backend = require("storages.backends.s3", "pip install 'django-jobkit[s3]'")
        kit.django_storage = backend.S3Storage(
            bucket_name="jobs-of-a-test", custom_domain="cdn.example", cloudfront_key_id="K1", cloudfront_key=pem()
        )
        assert signed_url(kit, "jobs/abc/a.txt").startswith("https://cdn.example/jobs/abc/a.txt?")

    @pytest.mark.parametrize(
        ("options", "signed"),
        [
            ({}, True),
            ({"custom_endpoint": "https://cdn.example"}, True),
            ({"querystring_auth": False}, False),
            ({"default_acl": "publicRead"}, False),
            ({"custom_endpoint": "https://cdn.example", "querystring_auth": False}, False),
        ],
    )
    def test_google(self, kit, options, signed):
        backend = require("storages.backends.gcloud", "pip install 'django-jobkit[gcs]'")
        from google.oauth2 import service_account

        account = {"client_email": "a@b.example", "private_key": pem().decode(), "token_uri": "https://token.example/"}
        credentials = service_account.Credentials.from_service_account_info(account)
        kit.django_storage = backend.GoogleCloudStorage(
            bucket_name="jobs-of-a-test", project_id="a-test", credentials=credentials, **options
        )
        assert bool(signed_url(kit, "jobs/abc/a b.txt")) == signed

    def test_google_without_a_key_to_sign_with(self, kit):
        backend = require("storages.backends.gcloud", "pip install 'django-jobkit[gcs]'")
        from google.auth.credentials import AnonymousCredentials

        kit.django_storage = backend.GoogleCloudStorage(
            bucket_name="jobs-of-a-test", project_id="a-test", credentials=AnonymousCredentials()
        )
        assert signed_url(kit, "jobs/abc/a.txt") == ""


def pem() -> bytes:
    from cryptography.hazmat.primitives import serialization

    key, _certificate = key_pair(1)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.fixture
def disk(kit, tmp_path):
    """The job's directory on a disk."""
    kit.django_storage = FileSystemStorage(tmp_path / "media")
    directory = tmp_path / "media" / "jobs" / "abc"
    directory.mkdir(parents=True)
    return directory


def read(kit, name: str) -> bytes:
    file, size = open_output(kit, "abc", kit.output_name("abc", name))
    with file:
        data = file.read()
    assert size == len(data)
    return data


class TestFiles:
    def test_they_are_read_by_the_storage(self, kit):
        kit.django_storage.save("jobs/abc/charts/a b.txt", ContentFile(b"hello"))
        assert read(kit, "charts/a b.txt") == b"hello"

    def test_they_may_be_empty(self, kit, disk):
        (disk / "a.txt").write_bytes(b"")
        assert read(kit, "a.txt") == b""

    def test_one_that_is_not_there_is_said_so(self, kit, disk):
        for name in ("a.txt", "charts/a.txt"):
            with pytest.raises(FileNotFoundError):
                read(kit, name)

    @pytest.mark.parametrize("name", ["a.txt/b.txt", "x" * 300, "loop"])
    def test_nor_is_one_there_that_no_disk_could_have(self, kit, disk, name):
        (disk / "a.txt").write_bytes(b"")
        (disk / "loop").symlink_to("loop")
        with pytest.raises(FileNotFoundError):
            read(kit, name)

    def test_a_directory_is_no_file(self, kit, disk):
        (disk / "charts").mkdir()
        with pytest.raises(FileNotFoundError):
            read(kit, "charts")

    @pytest.mark.parametrize("target", ["{tmp}/secret.txt", "../other/a.txt", "..", "../../../secret.txt"])
    def test_a_link_out_of_the_jobs_directory_is_no_file(self, kit, disk, tmp_path, target):
        """As in an archive that a stranger uploaded, and the job unpacked."""
        (tmp_path / "secret.txt").write_text("secret")
        (disk.parent / "other").mkdir()
        (disk.parent / "other" / "a.txt").write_text("secret")
        (disk / "a.txt").symlink_to(target.format(tmp=tmp_path))
        with pytest.raises(FileNotFoundError):
            read(kit, "a.txt")
        (disk / "b").symlink_to(disk.parent / "other", target_is_directory=True)
        with pytest.raises(FileNotFoundError):
            read(kit, "b/a.txt")

    def test_a_directory_beside_it_whose_name_begins_alike_is_another(self, kit, disk):
        (disk.parent / "abcd").mkdir()
        (disk.parent / "abcd" / "a.txt").write_text("secret")
        (disk / "a.txt").symlink_to("../abcd/a.txt")
        with pytest.raises(FileNotFoundError):
            read(kit, "a.txt")

    def test_links_within_it_and_above_it_are_followed(self, kit, disk, tmp_path):
        (disk / "a.txt").write_text("hello")
        (disk / "latest.txt").symlink_to("a.txt")
        (tmp_path / "link").symlink_to(tmp_path / "media")
        kit.django_storage = FileSystemStorage(tmp_path / "link")
        assert read(kit, "latest.txt") == b"hello"

    def test_a_pipe_is_no_file_and_nobody_waits_for_it(self, kit, disk):
        os.mkfifo(disk / "a.txt")
        with pytest.raises(FileNotFoundError):
            read(kit, "a.txt")

    def test_the_size_is_that_of_the_file_that_is_open(self, kit, disk):
        (disk / "a.txt").write_text("hello")
        file, size = open_output(kit, "abc", "jobs/abc/a.txt")
        with file:
            (disk / "b.txt").write_text("hello, hello")
            (disk / "b.txt").replace(disk / "a.txt")
            assert (size, file.read()) == (5, b"hello")


class Failing(Storage):
    """Fails to open or to read, as it is told, and knows of no places on a disk."""

    def __init__(self, error: Exception, *, on_reading: bool = False) -> None:
        self.error = error
        self.on_reading = on_reading
        self.opened: list[ContentFile] = []

    def _open(self, name, mode="rb"):
        if not self.on_reading:
            raise self.error
        file = ContentFile(b"hello", name)
        self.opened.append(file)

        def fail(*_):
            raise self.error

        file.file.seek = fail
        return file


class BlobNotFound(Exception):
    error_code = "BlobNotFound"  # Azure's, which opens a file without asking for it


class ContainerNotFound(Exception):
    error_code = "ContainerNotFound"


class TestFaults:
    @pytest.mark.parametrize("error", [OSError("disk"), PermissionError(13, "no"), ContainerNotFound("none")])
    def test_what_fails_is_an_outage(self, kit, error):
        kit.django_storage = Failing(error)
        with pytest.raises(StorageUnavailable) as caught:
            read(kit, "a.txt")
        assert caught.value.__cause__ is error

    @pytest.mark.parametrize("error", [FileNotFoundError("none"), BlobNotFound("none")])
    def test_what_is_missing_is_not(self, kit, error):
        kit.django_storage = Failing(error)
        with pytest.raises(FileNotFoundError):
            read(kit, "a.txt")

    @pytest.mark.parametrize(
        ("error", "raised"), [(OSError("network"), StorageUnavailable), (BlobNotFound("none"), FileNotFoundError)]
    )
    def test_so_it_is_where_a_file_is_fetched_when_it_is_read(self, kit, monkeypatch, error, raised):
        kit.django_storage = storage = Failing(error, on_reading=True)
        closed = []
        monkeypatch.setattr(ContentFile, "close", lambda file: closed.append(file))
        with pytest.raises(raised):
            read(kit, "a.txt")
        assert closed == storage.opened

    def test_so_is_a_directory_that_may_not_be_read(self, kit, disk, monkeypatch):
        def refuse(path, **_):
            raise PermissionError(13, "no")

        monkeypatch.setattr("django_jobkit.web.outputs.os.stat", refuse)  # root may read everything
        with pytest.raises(StorageUnavailable):
            read(kit, "a.txt")

    def test_a_file_that_cannot_be_sought_in_has_no_size(self, kit, monkeypatch):
        kit.django_storage.save("jobs/abc/a.txt", ContentFile(b"hello"))
        monkeypatch.setattr(type(kit.django_storage.open("jobs/abc/a.txt")), "seekable", lambda file: False)
        file, size = open_output(kit, "abc", "jobs/abc/a.txt")
        with file:
            assert (size, file.read()) == (None, b"hello")
