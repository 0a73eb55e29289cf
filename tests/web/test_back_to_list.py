"""Whoever goes from a filtered list to a job comes back to that list, at that page."""

from __future__ import annotations

import re
from html import unescape

import pytest

from django_jobkit.jobs import JobStatus, State
from django_jobkit.kit import jobkits
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user

QUERY = "?state=failed&q=a+%26+b&page=2&per_page=1"
ADMIN = "/admin/django_jobkit/job/"


def retry(job_id, status, request):
    jobkits["default"].store.save("again", JobStatus(state=State.FAILED))
    return "again"


@pytest.fixture
def site(settings):
    settings.JOBKIT = {"default": {"RETRY": f"{__name__}.retry"}}
    kit = in_a_dict()
    for n in range(3):
        put(kit, f"job-{n}", state=State.FAILED, title="a & b")
    return kit


def links(client, url: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'(?:href|action)="([^"]*)"', client.get(url).content.decode())]


@pytest.mark.parametrize("prefix", ["/jobs/", ADMIN])
class TestTheWay:
    def test_there_and_back(self, staff, site, prefix):
        assert f"{prefix}job-1/{QUERY}" in links(staff, prefix + QUERY)
        on_job = links(staff, f"{prefix}job-1/{QUERY}")
        assert {prefix + QUERY, f"{prefix}job-1/delete/{QUERY}", f"{prefix}job-1/retry/{QUERY}"} <= set(on_job)
        on_delete = links(staff, f"{prefix}job-1/delete/{QUERY}")
        assert {prefix + QUERY, f"{prefix}job-1/{QUERY}"} <= set(on_delete)

    def test_deleting_ends_on_the_list(self, staff, site, prefix):
        response = staff.post(f"{prefix}job-1/delete/{QUERY}")
        assert response["Location"] == prefix + QUERY

    def test_retrying_leads_on_with_it(self, staff, site, prefix):
        assert staff.post(f"{prefix}job-1/retry/{QUERY}")["Location"] == f"{prefix}again/{QUERY}"
        assert f"{prefix}job-1/{QUERY}" in links(staff, f"{prefix}again/{QUERY}")
        assert f"{prefix}again/{QUERY}" in links(staff, f"{prefix}job-1/{QUERY}")

    def test_from_what_is_damaged_or_gone(self, staff, site, prefix):
        put(site, "broken", data=b"{")
        assert {prefix + QUERY, f"{prefix}broken/delete/{QUERY}"} <= set(links(staff, f"{prefix}broken/{QUERY}"))
        assert prefix + QUERY in links(staff, f"{prefix}nothing/{QUERY}")

    def test_without_a_query_no_url_has_one(self, staff, site, prefix):
        assert f"{prefix}job-1/" in links(staff, prefix)
        assert {prefix, f"{prefix}job-1/delete/", f"{prefix}job-1/retry/"} <= set(links(staff, f"{prefix}job-1/"))
        assert staff.post(f"{prefix}job-1/delete/")["Location"] == prefix


def test_one_lands_on_a_page_that_there_is(staff, site):
    response = staff.post("/jobs/job-0/delete/?page=3&per_page=1", follow=True)
    assert response.redirect_chain == [("/jobs/?page=3&per_page=1", 302)]
    assert response.context["meta"].page == 2
    assert len(response.context["rows"]) == 1


def test_stopping_the_reloads_of_a_page_is_no_filter(staff, site):
    put(site, state=State.RUNNING)
    assert f"{QUERY}&reload=off" in links(staff, f"/jobs/{JOB_ID}/{QUERY}")
    assert "?reload=off" in links(staff, f"/jobs/{JOB_ID}/")
    on_job = links(staff, f"/jobs/{JOB_ID}/{QUERY}&reload=off")
    assert {QUERY, f"/jobs/{QUERY}", f"/jobs/{JOB_ID}/delete/{QUERY}"} <= set(on_job)
    assert "?" in links(staff, f"/jobs/{JOB_ID}/?reload=off")


@pytest.mark.parametrize(
    "query",
    [
        "next=//evil.example",
        "//evil.example/",
        "=//evil.example",
        "%0d%0aLocation:%20x",
        "back=javascript:alert(1)",
        "a#b",
    ],
)
def test_it_never_leads_elsewhere(staff, site, query):
    location = staff.post(f"/jobs/job-1/delete/?{query}")["Location"]
    assert location.startswith("/jobs/?")
    assert not set("\r\n#<>\"'") & set(location)
    assert staff.post(f"/jobs/job-2/retry/?{query}")["Location"].startswith("/jobs/again/?")


def test_what_stands_in_a_query_is_only_text(staff, site):
    html = staff.get('/jobs/job-1/?q="><script>alert(1)</script>').content.decode()
    assert "<script>alert" not in html


def test_a_page_of_the_sites_own_keeps_its_query_to_itself(settings, site, db):
    settings.ROOT_URLCONF = "tests.web.submit_site"
    client = client_of(user("ann", "view_job", "add_job", is_staff=True))
    found = links(client, "/new/?template=3")
    assert "/jobs/" in found
    assert not [link for link in found if "template" in link]
