"""Which URL answers what, and where the links of a page lead."""

from __future__ import annotations

import re

import pytest
from django.test import override_settings
from django.urls import resolve, reverse

from django_jobkit import urls
from django_jobkit.jobs import ids
from django_jobkit.web.links import ROUTES
from tests.web.conftest import JOB_ID, in_a_dict, put

MANY = override_settings(
    ROOT_URLCONF="tests.web.urls_many",
    JOBKIT={"default": {}, "comics": {"PREFIX": "comics"}, "music": {"PREFIX": "music"}},
)

BAD_IDS = {
    # As it stands in the URL, and why it is no ID.
    "a%20b": "a space",
    "%20": "blank",
    "%20abc": "white space around",
    "abc%0A": "a line break at the end",
    "abc%0D%0ASet-Cookie:x=1": "header injection",
    "%00": "NUL",
    "abc%00": "NUL at the end",
    "..": "a dot segment",
    ".": "a dot segment",
    "%2e%2e": "an escaped dot segment",
    "%252e%252e": "a doubly escaped dot segment",
    "..%5C..%5Cx": "backslashes",
    "%EF%BC%A1%EF%BC%A2": "full-width letters",
    "%D9%A1": "an Arabic digit",
    "%E2%80%8Fabc": "a right-to-left mark",
    "abc%E2%80%AE": "a right-to-left override",
    "a%CC%81": "a combining accent",
    "%FF": "not UTF-8",
    "-": "a hyphen first, as fixed paths have",
    "-abc": "a hyphen first",
    "_abc": "an underscore first",
    "a.b": "a dot",
    "a%3Ab": "a colon",
    "%3Cscript%3E": "HTML",
    "a" * 129: "129 bytes",
    "%E3%81%82" * 43: "129 bytes of 43 characters",
}


def test_the_names_and_paths_are_those_of_the_design():
    assert reverse("jobkit:history") == "/jobs/"
    assert reverse("jobkit:api-list") == "/jobs/-/api/"
    assert reverse("jobkit:detail", args=["abc"]) == "/jobs/abc/"
    assert reverse("jobkit:status", kwargs={"job_id": "abc"}) == "/jobs/abc/status/"
    assert reverse("jobkit:delete", args=["abc"]) == "/jobs/abc/delete/"
    assert reverse("jobkit:api-job", args=["abc"]) == "/jobs/-/api/abc/"
    assert {pattern.name for pattern in urls.urlpatterns} == set(ROUTES)


@pytest.mark.parametrize("bad_id", BAD_IDS, ids=lambda text: text[:30])
@pytest.mark.parametrize("path", ["{}/", "{}/delete/", "{}/status/", "-/api/{}/"])
def test_what_is_no_job_id_is_400_and_says_so(staff, storage, path, bad_id):
    response = staff.get("/jobs/" + path.format(bad_id))
    assert response.status_code == 400
    if path in ("{}/status/", "-/api/{}/"):
        assert response.json()["error"]["code"] == "invalid_job_id"
        assert "at most 128 bytes" in response.json()["error"]["message"]
    else:
        assert "at most 128 bytes" in response.content.decode()
    assert not storage.calls


@pytest.mark.parametrize("method", ["post", "delete"])
def test_nothing_is_deleted_by_what_is_no_job_id(staff, storage, method):
    storage.write("jobs/abc/status.json", b"{}")
    paths = {"post": ["/jobs/../delete/", "/jobs/%20abc/delete/"], "delete": ["/jobs/-/api/../", "/jobs/-/api/abc%0A/"]}
    for path in paths[method]:
        assert getattr(staff, method)(path).status_code == 400
    assert list(storage.files) == ["jobs/abc/status.json"]


@pytest.mark.parametrize(
    "path",
    [
        "//",  # an empty ID
        "/a/../b/",
        "/a%2F..%2Fb/",  # WSGI hands it over unescaped
        "/a/b/",
        "/-/nothing/",
        "/-/api/a/b/",
        "/abc/status/x/",
    ],
)
def test_other_paths_are_no_urls_of_the_kit(staff, kit, path):
    assert staff.get("/jobs" + path).status_code == 404


@pytest.mark.parametrize("job_id", ["api", "status", "delete", "history", "-api", "a" * 128, "A-Z_9"])
def test_no_job_hides_a_fixed_path_and_none_is_hidden(staff, kit, job_id):
    if ids.is_valid(job_id):
        put(kit, job_id, title=f"I am {job_id}")
        assert staff.get(f"/jobs/-/api/{job_id}/").json()["job_id"] == job_id
        assert f"I am {job_id}" in staff.get(f"/jobs/{job_id}/").content.decode()
        assert staff.get(f"/jobs/{job_id}/status/").json()["title"] == f"I am {job_id}"
    assert resolve("/jobs/-/api/").url_name == "api-list"
    assert "items" in staff.get("/jobs/-/api/").json()


def test_a_missing_slash_is_appended(staff, job):
    response = staff.get(f"/jobs/{JOB_ID}/status")
    assert (response.status_code, response["Location"]) == (301, f"/jobs/{JOB_ID}/status/")


class TestManyIncludes:
    """Every link of a page stays below the prefix under which the page was asked for."""

    PREFIXES = (
        ("/jobs/", "default"),
        ("/comics/", "comics"),
        ("/music/", "music"),
        ("/teams/red/2026/", "default"),
        ("/%E6%97%A5%E6%9C%AC/jobs/", "default"),
        ("/any%20of%3Fthem/jobs/", "default"),
    )

    @pytest.mark.parametrize(("prefix", "alias"), PREFIXES)
    @MANY
    def test_links_stay_below_the_prefix(self, staff, prefix, alias):
        kit = in_a_dict(alias)
        put(kit, title=f"of {alias}", retry_of="abc")
        for name, expected in [
            ("history", {f"{prefix}{JOB_ID}/"}),
            ("detail", {prefix, f"{prefix}abc/", f"{prefix}{JOB_ID}/delete/", f"{prefix}{JOB_ID}/status/"}),
            ("delete", {prefix, f"{prefix}{JOB_ID}/"}),
        ]:
            html = staff.get(prefix + ROUTES[name].format(job_id=JOB_ID)).content.decode()
            assert f"of {alias}" in html
            links = {link for link in re.findall(r'href="([^"?]+)', html) if not link.startswith(("/static/", "#"))}
            assert links == expected

    @pytest.mark.parametrize(("prefix", "alias"), PREFIXES)
    @MANY
    def test_one_lands_below_the_prefix_after_deleting(self, staff, prefix, alias):
        put(in_a_dict(alias))
        assert staff.post(f"{prefix}{JOB_ID}/delete/")["Location"] == prefix

    @MANY
    def test_a_prefix_of_slashes_leads_to_no_other_host(self, staff):
        put(in_a_dict())
        response = staff.post("/", PATH_INFO=f"//evil.example/jobs/{JOB_ID}/delete/")
        assert (response.status_code, response["Location"]) == (302, "/%2Fevil.example/jobs/")

    @MANY
    def test_each_include_shows_its_own_kit(self, staff):
        for alias in ("default", "comics", "music"):
            put(in_a_dict(alias), f"of-{alias}")
        for prefix, alias in self.PREFIXES[:4]:
            items = staff.get(f"{prefix}-/api/").json()["items"]
            assert [item["job_id"] for item in items] == [f"of-{alias}"]

    @MANY
    def test_a_view_that_the_site_maps_by_itself_links_to_the_urls_of_the_kit(self, staff):
        put(in_a_dict(), title="Chart")
        assert f'href="/jobs/{JOB_ID}/"' in staff.get("/mine/").content.decode()
        assert staff.get(f"/mine/{JOB_ID}.json").json()["title"] == "Chart"

    @override_settings(FORCE_SCRIPT_NAME="/site")
    def test_the_sites_own_prefix_is_kept(self, staff, job):
        response = staff.get("/jobs/", SCRIPT_NAME="/site")
        assert f'href="/site/jobs/{JOB_ID}/"' in response.content.decode()
