"""Which names are outputs, and what is answered where there is none."""

from __future__ import annotations

import logging
from html import unescape
from urllib.parse import quote

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from django.urls import reverse

from tests.web.conftest import JOB_ID, put
from tests.web.made_outputs import TEXT, body, made, url
from tests.web.payloads import PAYLOADS
from tests.web.test_outputs import ELSEWHERE, Failing
from tests.web.test_urls import BAD_IDS


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


def test_nothing_is_logged_of_a_storage_without_urls(viewer, kit, caplog):
    caplog.set_level(logging.INFO, logger="django_jobkit.views")
    made(kit, "a.txt")
    viewer.get(url()).close()
    assert not caplog.records
