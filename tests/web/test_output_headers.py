"""How an output is sent: nothing of it is run, parts can be asked for, and it is never in memory as a whole."""

from __future__ import annotations

import gzip
import io

import pytest
from asgiref.sync import async_to_sync
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.test import AsyncClient

from django_jobkit.web.output_view import PLAYER_POLICY, POLICY, headers_for
from tests.web.conftest import JOB_ID, put
from tests.web.made_outputs import TEXT, body, made, url
from tests.web.test_streaming import Endless

INLINE, SAVED = "inline", "attachment"


class TestHeaders:
    @pytest.mark.parametrize(
        ("name", "media_type", "disposition"),
        [
            ("a.txt", "text/plain; charset=utf-8", INLINE),
            ("A.TXT", "text/plain; charset=utf-8", INLINE),
            ("a.csv", "text/csv; charset=utf-8", INLINE),
            ("a.json", "application/json; charset=utf-8", INLINE),
            ("a.png", "image/png", INLINE),
            ("a.jpg", "image/jpeg", INLINE),
            ("a.pdf", "application/pdf", INLINE),
            ("a.mp4", "video/mp4", INLINE),
            ("a.mp3", "audio/mpeg", INLINE),
            ("a.svg", "image/svg+xml", INLINE),  # it can't run anything, see the policy
            # scripts and styles are texts here, so that no page can use them
            ("a.js", "text/plain; charset=utf-8", INLINE),
            ("a.mjs", "text/plain; charset=utf-8", INLINE),
            ("a.css", "text/plain; charset=utf-8", INLINE),
            # what could be a page, and what no browser shows
            ("a.html", "text/html; charset=utf-8", SAVED),
            ("a.htm", "text/html; charset=utf-8", SAVED),
            ("a.xml", None, SAVED),
            ("a.xhtml", None, SAVED),
            ("a.mht", None, SAVED),
            ("a.swf", None, SAVED),
            ("a.zip", "application/zip", SAVED),
            ("a.svgz", "application/octet-stream", SAVED),
            ("a.csv.gz", "application/octet-stream", SAVED),
            ("a.txt.bz2", "application/octet-stream", SAVED),
            ("a.unheard-of", "application/octet-stream", SAVED),
            ("a", "application/octet-stream", SAVED),
            (".txt", "application/octet-stream", SAVED),
            ("a.html.txt", "text/plain; charset=utf-8", INLINE),
            ("a.txt.html", "text/html; charset=utf-8", SAVED),
            ("x.html/a.txt", "text/plain; charset=utf-8", INLINE),
        ],
    )
    def test_the_name_tells_the_type_and_the_type_whether_it_is_shown(self, name, media_type, disposition):
        headers = headers_for(name)
        if media_type:
            assert headers["Content-Type"] == media_type
        base = name.rpartition("/")[2]
        assert headers["Content-Disposition"] == f'{disposition}; filename="{base}"'

    @pytest.mark.parametrize(
        ("name", "disposition"),
        [
            ("charts/by region.zip", 'attachment; filename="by region.zip"'),
            ('a"b\\c.zip', 'attachment; filename="a\\"b\\\\c.zip"'),
            ("月次.zip", "attachment; filename*=utf-8''%E6%9C%88%E6%AC%A1.zip"),
            ("é;x=1.zip", "attachment; filename*=utf-8''%C3%A9%3Bx%3D1.zip"),
            ("月.txt", "inline; filename*=utf-8''%E6%9C%88.txt"),
        ],
    )
    def test_a_file_is_saved_under_its_own_name(self, name, disposition):
        assert headers_for(name)["Content-Disposition"] == disposition

    @pytest.mark.parametrize("name", ["a.html", "a.svg", "a.txt", "a.png", "a.pdf", "a.js", "a", "a.xml"])
    def test_nothing_in_a_file_is_run(self, name):
        headers = headers_for(name)
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Content-Type-Options"] == "nosniff"

    def test_players_may_load_the_film_and_run_nothing(self):
        for name in ("a.mp4", "a.wav"):
            assert headers_for(name)["Content-Security-Policy"] == PLAYER_POLICY
        for policy in (POLICY, PLAYER_POLICY):
            directives = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
            assert directives["default-src"] == "'none'"
            assert "script-src" not in directives
        assert "allow" not in POLICY

    def test_they_are_sent(self, viewer, kit):
        made(kit, "a.svg")
        response = viewer.get(url("a.svg"))
        assert {name: response[name] for name in headers_for("a.svg")} == headers_for("a.svg")
        assert response["Cache-Control"] == "private, no-store"
        assert response["Content-Length"] == "10"
        assert response["Accept-Ranges"] == "bytes"
        assert body(response) == TEXT

    def test_a_site_s_own_policy_does_not_take_its_place(self, viewer, kit, settings):
        from tests.web import csp

        csp.switch_on(settings)
        made(kit, "a.svg")
        assert viewer.get(url("a.svg"))["Content-Security-Policy"] == POLICY

    def test_head_has_the_same_and_nothing_else(self, viewer, kit):
        made(kit, "a.txt")
        response = viewer.head(url())
        expected = viewer.get(url())
        expected.close()
        assert dict(response.headers) == dict(expected.headers)
        assert (response.status_code, response.content) == (200, b"")


def asked(client, **headers: str):
    response = client.get(url(), headers=headers)
    found = body(response) if response.streaming else response.content
    return response.status_code, response.get("Content-Range"), response.get("Content-Length"), found


class TestRanges:
    @pytest.fixture(autouse=True)
    def _job(self, kit):
        made(kit, "a.txt")

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            ("bytes=0-1", (206, "bytes 0-1/10", "2", b"01")),
            ("bytes=0-", (206, "bytes 0-9/10", "10", TEXT)),
            ("bytes=4-", (206, "bytes 4-9/10", "6", b"456789")),
            ("bytes=-3", (206, "bytes 7-9/10", "3", b"789")),
            ("bytes=8-100", (206, "bytes 8-9/10", "2", b"89")),
            ("bytes=10-", (416, "bytes */10", "0", b"")),
            ("bytes=0-1,4-5", (200, None, "10", TEXT)),
            ("nonsense", (200, None, "10", TEXT)),
        ],
    )
    def test_a_part_is_sent(self, viewer, header, expected):
        assert asked(viewer, Range=header) == expected

    def test_a_part_has_the_headers_of_the_whole(self, viewer):
        response = viewer.get(url(), headers={"Range": "bytes=0-1"})
        response.close()
        for name, value in headers_for("a.txt").items():
            assert response[name] == value
        assert response["Cache-Control"] == "private, no-store"

    def test_what_is_not_there_is_not_kept_either(self, viewer):
        response = viewer.get(url(), headers={"Range": "bytes=10-"})
        assert response["Cache-Control"] == "private, no-store"

    def test_a_version_is_never_the_one_that_is_asked_for(self, viewer):
        """There is none that we ever gave out, so the whole file is the answer."""
        assert asked(viewer, Range="bytes=0-1", If_Range='"x"') == (200, None, "10", TEXT)

    def test_head_has_no_parts(self, viewer):
        response = viewer.head(url(), headers={"Range": "bytes=0-1"})
        assert (response.status_code, response["Content-Length"]) == (200, "10")

    def test_an_empty_file_is_sent_as_it_is(self, viewer, kit):
        kit.django_storage.delete(f"jobs/{JOB_ID}/a.txt")
        kit.django_storage.save(f"jobs/{JOB_ID}/a.txt", ContentFile(b""))
        assert asked(viewer, Range="bytes=0-") == (200, None, "0", b"")

    def test_a_file_that_cannot_be_sought_in_has_no_parts(self, viewer, kit, monkeypatch):
        monkeypatch.setattr(type(kit.django_storage.open(f"jobs/{JOB_ID}/a.txt")), "seekable", lambda file: False)
        response = viewer.get(url(), headers={"Range": "bytes=0-1"})
        assert response.status_code == 200
        assert not {"Accept-Ranges", "Content-Range", "Content-Length"} & set(response.headers)
        assert body(response) == TEXT


class Vast(Storage):
    """Holds one file of a gigabyte under any name, and nothing in memory."""

    def __init__(self) -> None:
        self.files: list[Endless] = []

    def _open(self, name, mode="rb"):
        self.files.append(EndlessFile())
        return File(self.files[-1], name)


class EndlessFile(Endless):
    def seekable(self):
        return True

    def seek(self, place, whence=io.SEEK_SET):
        return super().seek(place + self.size if whence == io.SEEK_END else place)

    def tell(self):
        return self.place


class TestLargeFiles:
    @pytest.fixture
    def vast(self, kit) -> Vast:
        put(kit, outputs=["a.bin"])
        kit.django_storage = Vast()
        return kit.django_storage

    def test_are_read_as_they_are_sent(self, viewer, vast):
        response = viewer.get(url("a.bin"))
        assert response["Content-Length"] == str(1 << 30)
        pieces = iter(response)
        assert sum(len(next(pieces)) for _ in range(10)) == sum(vast.files[0].reads) <= 1 << 20
        response.close()
        assert vast.files[0].closed

    def test_are_read_as_they_are_sent_by_asgi_servers_too(self, viewer, vast):
        async def first_piece() -> bytes:
            client = AsyncClient()
            client.cookies = viewer.cookies
            response = await client.get(url("a.bin"))
            async for piece in response:
                return piece
            return b""

        assert len(async_to_sync(first_piece)()) == sum(vast.files[0].reads) <= 1 << 20

    def test_are_not_read_for_head(self, viewer, vast):
        assert viewer.head(url("a.bin"))["Content-Length"] == str(1 << 30)
        assert vast.files[0].reads == []
        assert vast.files[0].closed

    def test_are_not_read_for_a_part_that_is_not_there(self, viewer, vast):
        assert viewer.get(url("a.bin"), headers={"Range": f"bytes={1 << 30}-"}).status_code == 416
        assert vast.files[0].reads == []
        assert vast.files[0].closed

    def test_are_sought_in(self, viewer, vast):
        response = viewer.get(url("a.bin"), headers={"Range": f"bytes={(1 << 30) - 5}-"})
        assert body(response) == b"x" * 5
        assert vast.files[0].reads[0] == 5

    def test_may_be_compressed_on_the_way(self, viewer, kit, settings):
        settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
        made(kit, "b.txt", data=b"hello " * 1000)
        response = viewer.get(url("b.txt"), headers={"Accept-Encoding": "gzip"})
        assert gzip.decompress(body(response)) == b"hello " * 1000

    def test_a_part_is_never_packed(self, viewer, kit, settings):
        """Its bytes are counted unpacked, and joined to others."""
        settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
        made(kit, "b.txt", data=b"hello " * 1000)
        response = viewer.get(url("b.txt"), headers={"Accept-Encoding": "gzip", "Range": "bytes=0-2999"})
        assert (response.status_code, response["Content-Range"]) == (206, "bytes 0-2999/6000")
        assert body(response) == b"hello " * 500
