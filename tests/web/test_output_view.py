"""A job's outputs, handed out to those who may see the job, and to nobody else."""

from __future__ import annotations

import gzip
import io
import logging
from html import unescape
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage
from django.test import AsyncClient, Client, override_settings
from django.urls import reverse

from django_jobkit.web.links import ROUTES
from django_jobkit.web.output_view import PLAYER_POLICY, POLICY, headers_for
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user
from tests.web.payloads import PAYLOADS
from tests.web.test_outputs import ELSEWHERE, Failing
from tests.web.test_streaming import Endless
from tests.web.test_urls import BAD_IDS, MANY, TestManyIncludes

TEXT = b"0123456789"
OWNERS = "django_jobkit.access.OwnerAccess"


def url(name: str = "a.txt", job_id: str = JOB_ID) -> str:
    return reverse("jobkit:output", args=[job_id, name])


def made(kit, *names: str, data: bytes = TEXT, **fields) -> None:
    """Record a job with these outputs, and save their files."""
    put(kit, outputs=list(names), **fields)
    for name in names:
        kit.django_storage.save(kit.output_name(JOB_ID, name), ContentFile(data))


def body(response) -> bytes:
    data = b"".join(response)
    response.close()
    return data


class TestWhoGetsThem:
    @pytest.fixture(params=["get", "head"])
    def ask(self, request):
        return lambda client, *args: getattr(client, request.param)(url(*args))

    def test_who_may_see_the_job(self, viewer, kit, ask):
        made(kit, "a.txt")
        assert ask(viewer).status_code == 200

    @pytest.mark.parametrize("exists", [True, False])
    def test_not_who_is_unknown_who_logs_in_and_comes_back(self, db, kit, ask, exists):
        if exists:
            made(kit, "a.txt")
        kit.storage.calls.clear()
        response = ask(Client())
        assert (response.status_code, response["Location"]) == (302, f"/admin/login/?next={url()}")
        assert not kit.storage.calls

    @pytest.mark.parametrize("name", ["a%20b%3F%23.txt", "%E6%9C%88/a.txt"])
    def test_the_login_leads_back_to_the_same_file(self, db, kit, name):
        location = Client().get(f"/jobs/{JOB_ID}/outputs/{name}")["Location"]
        assert location == f"/admin/login/?next=/jobs/{JOB_ID}/outputs/{quote(name)}"

    def test_not_who_has_no_permission(self, stranger, kit, ask):
        made(kit, "a.txt")
        kit.storage.calls.clear()
        assert ask(stranger).status_code == 403
        assert not kit.storage.calls

    @pytest.mark.parametrize("permission", ["delete_job", "retry_job", "add_job"])
    def test_not_who_may_do_something_else(self, db, kit, ask, permission):
        made(kit, "a.txt")
        assert ask(client_of(user("ann", permission, is_staff=True))).status_code == 403

    def test_django_s_own_gate_does_not_come_before_ours(self, viewer, kit, ask, settings):
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.contrib.auth.middleware.LoginRequiredMiddleware"]
        settings.JOBKIT = {"default": {"ACCESS": "tests.web.everybody.Everybody"}}
        made(in_a_dict(), "a.txt")
        assert ask(Client()).status_code == 200

    def test_the_page_of_the_job_links_to_them(self, viewer, kit):
        made(kit, "a b/ü?.txt", data=b"hello")
        html = viewer.get(reverse("jobkit:detail", args=[JOB_ID])).content.decode()
        link = f"/jobs/{JOB_ID}/outputs/a%20b/%C3%BC%3F.txt"
        assert f'href="{link}"' in html
        assert "/media/" not in html
        assert body(viewer.get(link)) == b"hello"

    @pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
    def test_nothing_else_is_done_there(self, staff, kit, method):
        made(kit, "a.txt")
        response = getattr(staff, method)(url())
        assert (response.status_code, response["Allow"]) == (405, "GET, HEAD, OPTIONS")
        assert kit.django_storage.exists(f"jobs/{JOB_ID}/a.txt")


class TestOwners:
    @pytest.fixture(autouse=True)
    def _owners_only(self):
        with override_settings(JOBKIT={"default": {"ACCESS": OWNERS}}):
            yield

    @pytest.fixture
    def kit(self):
        return in_a_dict()

    @pytest.fixture
    def ann(self, db) -> Client:
        return client_of(user("ann"))

    def test_get_those_of_their_own_jobs(self, ann, kit):
        made(kit, "a.txt", owner="ann")
        assert body(ann.get(url())) == TEXT

    @pytest.mark.parametrize("owner", ["bob", "Ann", "ann ", ""])
    @pytest.mark.parametrize("method", ["get", "head"])
    def test_find_nothing_of_others(self, ann, kit, owner, method):
        made(kit, "a.txt", owner=owner)
        none = getattr(ann, method)(url("a.txt", "nothing"))
        for name in ("a.txt", "b.txt", "../x"):
            theirs = getattr(ann, method)(url(name))
            assert theirs.status_code == none.status_code == 404
            assert theirs.content.decode().replace(JOB_ID, "nothing") == none.content.decode()

    def test_find_nothing_of_others_in_a_range_either(self, ann, kit):
        made(kit, "a.txt", owner="bob")
        assert ann.get(url(), headers={"Range": "bytes=0-1"}).status_code == 404
        assert ann.get(url(), headers={"Range": "bytes=99-"}).status_code == 404

    def test_are_not_led_to_signed_urls_of_others(self, ann, kit, monkeypatch):
        made(kit, "a.txt", owner="bob")
        monkeypatch.setattr(kit.django_storage, "url", lambda name: f"https://storage.example/{name}?sig=x")
        assert ann.get(url()).status_code == 404

    def test_find_nothing_of_damaged_jobs(self, ann, kit):
        put(kit, data=b'{"owner": "ann", "owner": "ann", "outputs": ["a.txt"]}')
        kit.django_storage.save(f"jobs/{JOB_ID}/a.txt", ContentFile(TEXT))
        assert ann.get(url()).status_code == 404

    def test_have_to_log_in(self, db, kit):
        made(kit, "a.txt", owner="")
        assert Client().get(url()).status_code == 302

    def test_who_may_see_all_jobs_gets_theirs(self, db, kit):
        made(kit, "a.txt", owner="bob")
        assert body(client_of(user("eve", "view_job")).get(url())) == TEXT


def machines():
    from django_jobkit.access import FirstOf, OwnerAccess
    from django_jobkit.signing_keys import SigningKeys
    from django_jobkit.token_access import GoogleTokenAccess
    from tests.issuer import ACCOUNT, AUDIENCE

    return FirstOf(GoogleTokenAccess(audience=AUDIENCE, accounts=[ACCOUNT], keys=SigningKeys(Keys.url)), OwnerAccess())


class Keys:
    url: str


class TestMachines:
    @pytest.fixture(autouse=True)
    def _tokens(self, issuer, db):
        Keys.url = issuer.url
        with override_settings(JOBKIT={"default": {"ACCESS": f"{__name__}.machines"}}):
            yield

    def test_get_them_with_a_token(self, issuer):
        made(in_a_dict(), "a.txt", owner="ann")
        client = Client(headers={"Authorization": f"Bearer {issuer.token()}"})
        assert body(client.get(url())) == TEXT

    @pytest.mark.parametrize(("changes", "status"), [({"aud": "https://x/"}, 401), ({"email": "x@y.example"}, 403)])
    def test_a_token_that_is_refused_is_not_made_good_by_a_cookie(self, issuer, changes, status):
        made(in_a_dict(), "a.txt", owner="ann")
        headers = {"Authorization": f"Bearer {issuer.token(**changes)}"}
        assert client_of(user("ann")).get(url(), headers=headers).status_code == status


class TestWhichNames:
    UNLISTED = "This job has no output of this name."

    def test_those_that_the_record_lists_are_served(self, viewer, kit):
        names = [
            "a.txt",
            "charts/by region.txt",
            "100%#1?.txt",
            "月次　報告.txt",
            "..hidden.txt",
            "<b>&'\".txt",
            "a%2Fb.txt",
        ]
        for name in names:
            made(kit, name, data=name.encode())
            assert body(viewer.get(url(name))) == name.encode()

    @pytest.mark.parametrize("exists", [True, False])
    @pytest.mark.parametrize("name", ["b.txt", "status.json", "input.csv", "charts", "a.txt/b", "A.txt", "a.txt "])
    def test_any_other_is_404_whether_there_is_such_a_file_or_not(self, viewer, kit, settings, name, exists):
        settings.ROOT_URLCONF = "tests.web.urls_without_admin"  # whose pages have no form, and so no token
        put(kit, outputs=["a.txt", "charts/a.txt"])
        if exists:
            kit.django_storage.save(f"jobs/{JOB_ID}/{name}", ContentFile(b"secret"))
        response = viewer.get(url(name))
        assert response.status_code == 404
        html = unescape(response.content.decode())
        assert self.UNLISTED in html
        assert f'href="/jobs/{JOB_ID}/"' in html
        assert "secret" not in html
        assert html.replace(name, "") == unescape(viewer.get(url("nothing")).content.decode()).replace(name, "")

    def test_the_record_is_served_if_it_lists_itself(self, viewer, kit):
        made(kit, "status.json", data=b"{}")
        assert body(viewer.get(url("status.json"))) == b"{}"

    @pytest.mark.parametrize("name", [name for name in ELSEWHERE if name], ids=ascii)
    @pytest.mark.parametrize("escape", [lambda name: quote(name), lambda name: quote(name, safe="")])
    def test_a_name_that_leads_elsewhere_is_not_served_even_if_it_is_listed(self, viewer, kit, tmp_path, name, escape):
        kit.django_storage = FileSystemStorage(tmp_path / "media")
        for place in ("etc/passwd", "media/other-job/status.json", "media/jobs/other-job/status.json", "b", "x"):
            file = tmp_path / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("secret")
        (tmp_path / "media" / "jobs" / JOB_ID / "a").mkdir(parents=True)
        put(kit, outputs=[name])
        response = viewer.get(f"/jobs/{JOB_ID}/outputs/{escape(name)}")
        # 400 and 405 are of other URLs, to which a client or Django shortens this one.
        assert response.status_code == 404
        assert b"secret" not in response.content

    @pytest.mark.parametrize(
        "path",
        [
            "../{job}/status.json",
            "..%2F{job}%2Fstatus.json",
            "%2e%2e/{job}/status.json",
            "%2e%2e%2f{job}%2fstatus.json",
            "%252e%252e/{job}/status.json",
            "..%5C{job}%5Cstatus.json",
            "%2Fetc%2Fpasswd",
            "/etc/passwd",
            "a.txt%00.png",
            "%00",
            "%FF",
            "a.txt%0A",
            "a.txt%0D%0ASet-Cookie:x=1",
            ".",
            "./a.txt",
            "charts/../a.txt",
            "charts//a.txt",
            "a.txt/",
            "a.txt//",
            "a.txt;x",
            "a.txt%3Fx",
            "a.txt%20",
            "%20a.txt",
            "A.TXT",
            "ａ.txt",
            "file:///etc/passwd",
            "a.txt::$DATA",
        ],
    )
    def test_ways_out_lead_nowhere(self, viewer, kit, path):
        made(kit, "a.txt", "charts/b.txt")
        kit.django_storage.save(f"jobs/{JOB_ID}/status.json", ContentFile(b"secret"))
        response = viewer.get(f"/jobs/{JOB_ID}/outputs/" + path.format(job=JOB_ID))
        assert response.status_code == 404
        assert not response.streaming

    @pytest.mark.parametrize("payload", PAYLOADS, ids=lambda text: ascii(text[:20]))
    def test_hostile_names_are_served_as_files_or_not_at_all(self, viewer, kit, payload):
        put(kit, outputs=[payload, f"{payload}.html", f"x/{payload}.svg"])
        for name in (payload, f"{payload}.html", f"x/{payload}.svg"):
            if path := fits(kit, name):
                kit.django_storage.save(path, ContentFile(b"data"))
            response = viewer.get(f"/jobs/{JOB_ID}/outputs/{quote(name)}")
            if response.status_code == 200:
                assert body(response) == b"data"
                assert response["Content-Security-Policy"].startswith(("sandbox", "default-src 'none'"))
                assert "html" not in response["Content-Type"] or response["Content-Disposition"].startswith("attach")
                assert not set(response["Content-Disposition"]) & set("\r\n")
            else:
                assert response.status_code == 404
                assert "alert(1)" not in response.content.decode()

    @pytest.mark.parametrize("bad_id", BAD_IDS, ids=lambda text: text[:30])
    def test_what_is_no_job_id_is_400(self, viewer, storage, bad_id):
        assert viewer.get(f"/jobs/{bad_id}/outputs/a.txt").status_code == 400
        assert not storage.calls


def fits(kit, name: str) -> str:
    """The name in the storage, where it is one that a file system would take."""
    try:
        path = kit.output_name(JOB_ID, name)
        return path if kit.django_storage.get_available_name(path) == path and "\n" not in path else ""
    except Exception:
        return ""


class TestAnswers:
    def test_a_file_that_is_gone_is_404_and_says_so(self, viewer, kit):
        put(kit, outputs=["a.txt"])
        response = viewer.get(url())
        html = unescape(response.content.decode())
        assert response.status_code == 404
        assert "The job’s record names this output, but its file isn’t there any more." in html
        assert f'href="/jobs/{JOB_ID}/"' in html
        assert viewer.head(url()).status_code == 404

    def test_a_job_that_is_not_there_is_404(self, viewer, kit):
        kit.django_storage.save(f"jobs/{JOB_ID}/a.txt", ContentFile(TEXT))
        response = viewer.get(url())
        assert response.status_code == 404
        assert "There is no job with this ID." in response.content.decode()

    def test_a_damaged_record_names_nothing(self, viewer, kit):
        put(kit, data=b'{"outputs": ["a.txt"]')
        kit.django_storage.save(f"jobs/{JOB_ID}/a.txt", ContentFile(TEXT))
        assert viewer.get(url()).status_code == 500

    def test_a_record_that_cannot_be_read_is_503(self, viewer, kit):
        made(kit, "a.txt")
        kit.storage.read_fails = True
        response = viewer.get(url())
        assert (response.status_code, response["Retry-After"]) == (503, "10")

    @pytest.mark.parametrize("on_reading", [True, False])
    def test_so_is_a_file_that_cannot_be_read(self, viewer, kit, caplog, on_reading):
        made(kit, "a.txt")
        kit.django_storage = Failing(OSError("https://key:s3cr3t@storage.example/"), on_reading=on_reading)
        response = viewer.get(url())
        assert (response.status_code, response["Retry-After"]) == (503, "10")
        assert "s3cr3t" not in response.content.decode()
        assert "s3cr3t" in caplog.text

    def test_a_storage_of_a_test_that_fails_on_demand_does_so_here(self, viewer, jobkit):
        made(jobkit, "a.txt")
        assert body(viewer.get(url())) == TEXT
        jobkit.storage.fail("read", where="*/status.json")
        assert viewer.get(url()).status_code == 503

    def test_one_file_is_one_read_of_the_record(self, viewer, kit):
        made(kit, "a.txt")
        kit.storage.calls.clear()
        viewer.get(url()).close()
        assert dict(kit.storage.calls) == {"read": 1}

    def test_it_costs_no_query_beyond_the_user_and_their_permissions(self, viewer, kit, django_assert_num_queries):
        made(kit, "a.txt")
        with django_assert_num_queries(4):
            viewer.get(url()).close()


class TestSignedURLs:
    @pytest.mark.parametrize("method", ["get", "head"])
    def test_lead_to_the_storage_each_time_anew(self, viewer, kit, monkeypatch, method):
        put(kit, outputs=["a b.txt"])
        signed = "https://storage.example/a%20b.txt?X-Amz-Signature=0a"
        monkeypatch.setattr(kit.django_storage, "url", lambda name: signed)
        response = getattr(viewer, method)(url("a b.txt"))
        assert (response.status_code, response["Location"]) == (302, signed)
        assert response["Cache-Control"] == "private, no-store"

    def test_are_what_the_page_of_the_job_links_to(self, viewer, kit, monkeypatch):
        put(kit, outputs=["a.txt"])
        monkeypatch.setattr(kit.django_storage, "url", lambda name: f"https://storage.example/{name}?sig=0a")
        html = viewer.get(reverse("jobkit:detail", args=[JOB_ID])).content.decode()
        assert f'href="https://storage.example/jobs/{JOB_ID}/a.txt?sig=0a"' in html

    def test_names_that_are_not_listed_are_not_signed(self, viewer, kit, monkeypatch):
        put(kit, outputs=["a.txt"])
        monkeypatch.setattr(kit.django_storage, "url", lambda name: f"https://storage.example/{name}?sig=0a")
        assert viewer.get(url("b.txt")).status_code == 404


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


class TestPlaces:
    @pytest.mark.parametrize(("prefix", "alias"), TestManyIncludes.PREFIXES)
    @pytest.mark.parametrize("name", ["a.txt", "x/a b?#%.txt", "月.txt"])
    @MANY
    def test_links_stay_below_the_prefix_and_lead_to_the_file(self, staff, prefix, alias, name):
        kit = in_a_dict(alias)
        made(kit, name, data=alias.encode())
        link = f"{prefix}{JOB_ID}/outputs/{quote(name)}"
        assert f'href="{link}"' in staff.get(f"{prefix}{JOB_ID}/").content.decode()
        assert body(staff.get(link)) == alias.encode()

    @pytest.mark.parametrize(("prefix", "alias"), TestManyIncludes.PREFIXES)
    @pytest.mark.parametrize("name", ["nothing.txt", "x/no thing?#%.txt", "月.txt", "outputs/a"])
    @MANY
    def test_links_of_an_error_do_so_too(self, staff, prefix, alias, name):
        put(in_a_dict(alias))
        response = staff.get(f"{prefix}{JOB_ID}/outputs/{quote(name)}")
        assert response.status_code == 404
        assert f'href="{prefix}{JOB_ID}/"' in response.content.decode()
        assert f'href="{prefix}"' in response.content.decode()

    def test_the_admin_has_them_too(self, staff, kit):
        made(kit, "a b.txt")
        place = f"/admin/django_jobkit/job/{JOB_ID}/"
        link = f"{place}outputs/a%20b.txt"
        assert f'href="{link}"' in staff.get(place).content.decode()
        assert body(staff.get(link)) == TEXT
        assert f'href="{place}"' in staff.get(f"{place}outputs/b.txt").content.decode()
        assert Client().get(link)["Location"].startswith("/admin/login/?next=")

    @pytest.mark.django_db
    def test_nobody_gets_them_there_who_may_not_into_the_admin(self, settings):
        settings.JOBKIT = {"default": {"ACCESS": "tests.web.everybody.Everybody"}}
        made(in_a_dict(), "a.txt")
        for client in (Client(), client_of(user("ann"))):
            assert client.get(f"/admin/django_jobkit/job/{JOB_ID}/outputs/a.txt").status_code in (302, 403)

    def test_a_page_that_the_site_maps_by_itself_links_to_the_urls_of_the_kit(self, staff, kit, settings):
        settings.ROOT_URLCONF = "tests.web.urls_many"
        made(kit, "a b.txt")
        assert f'href="/jobs/{JOB_ID}/outputs/a%20b.txt"' in staff.get(f"/mine/{JOB_ID}/").content.decode()

    def test_the_route_is_the_last_so_that_it_hides_no_other(self):
        assert list(ROUTES)[-1] == "output"

    @pytest.mark.parametrize("name", ["status/", "delete/", "retry/", "outputs/a.txt"])
    def test_no_name_hides_another_url(self, staff, kit, name):
        made(kit, "a.txt")
        assert staff.get(f"/jobs/{JOB_ID}/{name}").status_code in (200, 405)


def test_nothing_is_logged_of_a_storage_without_urls(viewer, kit, caplog):
    caplog.set_level(logging.INFO, logger="django_jobkit.views")
    made(kit, "a.txt")
    viewer.get(url()).close()
    assert not caplog.records
