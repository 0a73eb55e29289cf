"""What files say is never obeyed: not as HTML, not as a link, not as a text direction."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from django.urls import reverse

from django_jobkit.web.display import BIDI_CONTROLS
from tests.web.conftest import JOB_ID, put
from tests.web.payloads import PAYLOADS

FIELDS = [
    "title",
    "command",
    "error",
    "state",
    "progress_message",
    "owner",
    "retry_of",
    "retried_as",
    "a_member",
    "result",
    "outputs",
]


class Checker(HTMLParser):
    """Fails on any element or attribute that the pages don't make themselves."""

    EXPECTED = {
        *("html", "head", "meta", "title", "link", "script", "noscript", "body", "div", "header", "nav", "ol"),
        *("ul", "li", "a", "bdi", "main", "h1", "h2", "p", "span", "b", "i", "table"),
        *("caption", "thead", "tbody", "tr", "th", "td", "code", "pre", "progress", "time", "article", "section"),
        *("dl", "dt", "dd", "details", "summary", "form", "fieldset", "legend", "label", "input", "select", "option"),
        *("datalist", "output", "button", "strong"),
    }
    VOID = {"meta", "link", "input"}

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in self.EXPECTED, tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name not in ("style", "srcdoc", "formaction"), name
            if name in ("href", "src", "action"):
                assert value.startswith(("/", "?", "#")), value
                assert not value.startswith("//"), value
        given = dict(attrs)
        if tag == "script":
            assert given["src"].startswith("/static/django_jobkit/")
        if "http-equiv" in given:
            assert self.open[-1] == "noscript"
            assert given["content"].isdigit()
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        raise AssertionError(data)


def check(html: str) -> None:
    found = Checker(html)
    assert not set(html) & set(BIDI_CONTROLS)
    assert not {char for char in html if ord(char) < 32} - {"\t", "\n"}
    assert "only for tests" not in "".join(found.text)  # the secret key


def hostile(payload: str) -> bytes:
    document = {"state": "running", "attempts": 1, "progress_total": 5, **dict.fromkeys(FIELDS, payload)}
    document["outputs"] = [payload, f"x/{payload}"]
    document[payload] = payload
    return json.dumps(document).encode()


@pytest.fixture(autouse=True)
def _plain_pages(settings):
    """The admin has scripts of its own."""
    settings.ROOT_URLCONF = "tests.web.urls_without_admin"


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda text: ascii(text[:20]))
def test_texts_of_files_are_texts_on_every_page(staff, kit, payload):
    put(kit, data=hostile(payload))
    for name in ("history", "detail", "delete"):
        response = staff.get(reverse(f"jobkit:{name}", args=[] if name == "history" else [JOB_ID]))
        assert response.status_code == 200
        check(response.content.decode())


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda text: ascii(text[:20]))
def test_texts_of_files_are_texts_in_json(staff, kit, payload):
    put(kit, data=hostile(payload))
    for path in (f"/jobs/{JOB_ID}/status/", f"/jobs/-/api/{JOB_ID}/"):
        response = staff.get(path)
        assert response["Content-Type"] == "application/json"
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response.json()["title"] == payload
    [item] = staff.get("/jobs/-/api/").json()["items"]
    assert item["title"] == payload


@pytest.mark.parametrize("name", ["<script>alert(1)<", "a\u202eb", "\x1b[2J", "é" * 100, "a\n b", "x" * 200])
def test_names_of_directories_are_texts(staff, kit, name):
    kit.storage.write(f"jobs/{name}/status.json", b"{}")
    check(staff.get("/jobs/").content.decode())


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda text: ascii(text[:20]))
@pytest.mark.parametrize("path", ["/jobs/{}/", "/jobs/{}/delete/", "/jobs/?page={}", "/jobs/?q={}&per_page=1"])
def test_texts_of_urls_are_texts(staff, kit, payload, path):
    from urllib.parse import quote

    put(kit, "a")
    put(kit, "b")
    response = staff.get(path.format(quote(payload[:2000], safe="")))
    assert response.status_code in (200, 400, 404)
    if response.templates:
        check(response.content.decode())


def test_a_message_after_deleting_names_the_id_only(staff, kit):
    put(kit, title=PAYLOADS[0])
    check(staff.post(f"/jobs/{JOB_ID}/delete/", follow=True).content.decode())
