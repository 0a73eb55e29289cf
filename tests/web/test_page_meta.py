from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.http import QueryDict
from django.template import Context, RequestContext, Template
from django.test import RequestFactory

from django_jobkit.jobs.paging import PageMeta, adjust_item_count, select_ids
from django_jobkit.templatetags.jobkit import navigation


def meta(page: int, total: int = 57, per_page: int = 10) -> PageMeta:
    return select_ids([f"{n:06}" for n in range(total)], page, per_page, None)[1]


def render(page_meta: PageMeta, request=None, **context) -> str:
    template = Template("{% load jobkit %}{% page_meta meta %}")
    if request is not None:
        return template.render(RequestContext(request, {"meta": page_meta, **context}))
    return template.render(Context({"meta": page_meta, **context}))


class Links(HTMLParser):
    """The links as (text, attributes), as an assistive technology would list them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: dict[str, dict[str, str]] = {}
        self.navs: list[dict[str, str]] = []
        self._open: dict[str, str] | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self._open = dict(attrs)
        if tag == "nav":
            self.navs.append(dict(attrs))

    def handle_data(self, data):
        if self._open is not None:
            self.links[data] = self._open
            self._open = None


@pytest.mark.parametrize(
    ("page", "total", "expected"),
    [
        # page, jobs (10 each), (first, previous, numbers, next, last)
        (1, 0, ("", "", [], "", "")),
        (1, 10, ("", "", [1], "", "")),
        (1, 57, ("", "", [1, 2, 3, 4, 5], "?page=2", "?page=6")),
        (2, 57, ("?page=1", "?page=1", [1, 2, 3, 4, 5], "?page=3", "?page=6")),
        (4, 57, ("?page=1", "?page=3", [2, 3, 4, 5, 6], "?page=5", "?page=6")),
        (6, 57, ("?page=1", "?page=5", [2, 3, 4, 5, 6], "", "")),
        (99, 57, ("?page=1", "?page=5", [2, 3, 4, 5, 6], "", "")),  # past the end is the last
    ],
)
def test_navigation_links_only_to_where_there_is_something(page, total, expected):
    shown = navigation(meta(page, total), None)
    first, previous, numbers, next_, last = expected
    assert (shown["first"], shown["previous"], shown["next"], shown["last"]) == (first, previous, next_, last)
    assert shown["pages"] == [(number, f"?page={number}") for number in numbers]


def test_everything_on_one_page_has_no_links():
    shown = navigation(meta(1, per_page=0), QueryDict("page=1"))
    assert [number for number, _ in shown["pages"]] == [1]
    assert not any((shown["first"], shown["previous"], shown["next"], shown["last"]))


@pytest.mark.parametrize(
    ("page_meta", "text"),
    [
        (meta(2), "11–20 of 57"),
        (meta(1), "1–10 of 57"),
        (meta(6), "51–57 of 57"),
        (meta(2, total=11), "11 of 11"),
        (meta(1, total=3), "1–3 of 3"),
        (meta(1, total=0), "0 of 0"),
        (adjust_item_count(meta(2), 8), "11–18 of 57"),
        (adjust_item_count(meta(2), 0), "0 of 57"),
    ],
)
def test_the_range_is_told(page_meta, text):
    assert f">{text}<" in render(page_meta)


def test_the_navigation_is_a_landmark_with_a_current_page_and_relations():
    found = Links(render(meta(3)))
    assert found.navs == [{"class": "jobkit-pages", "aria-label": "Pages"}]
    assert found.links["3"]["aria-current"] == "page"
    assert [text for text, link in found.links.items() if "aria-current" in link] == ["3"]
    assert found.links["Previous"] == {"href": "?page=2", "rel": "prev"}
    assert found.links["Next"] == {"href": "?page=4", "rel": "next"}
    assert found.links["4"]["aria-label"] == "Page 4"
    assert (found.links["First"]["href"], found.links["Last"]["href"]) == ("?page=1", "?page=6")


def test_what_leads_nowhere_is_no_link():
    assert set(Links(render(meta(1))).links) == {"1", "2", "3", "4", "5", "Next", "Last"}
    assert set(Links(render(meta(6))).links) == {"2", "3", "4", "5", "6", "Previous", "First"}


def test_one_page_has_no_navigation():
    found = Links(render(meta(1, total=5)))
    assert found.navs == []
    assert found.links == {}


@pytest.mark.parametrize("with_processor", [True, False])
def test_links_keep_the_query_of_the_request(settings, with_processor):
    if not with_processor:
        settings.TEMPLATES = [{**settings.TEMPLATES[0], "OPTIONS": {}}]
    request = RequestFactory().get("/jobs/?state=failed&state=queued&page=3&q=%3Cb%3E%22")
    links = Links(render(meta(3), request)).links
    assert links["Next"]["href"] == "?state=failed&state=queued&page=4&q=%3Cb%3E%22"


def test_a_hostile_query_stays_inside_the_link():
    request = RequestFactory().get("/jobs/", {"q": '"><script>alert(1)</script>', "'><img src=x>": "1"})
    html = render(meta(3), request)
    assert "<script" not in html
    assert "<img" not in html


def test_thousands_are_grouped_for_people_and_not_in_links(settings):
    settings.USE_THOUSAND_SEPARATOR = True
    html = render(meta(1500, total=20_000))
    assert "14,991–15,000 of 20,000" in html
    assert 'href="?page=1501"' in html


def test_a_site_can_replace_the_template(settings, tmp_path):
    (tmp_path / "django_jobkit").mkdir()
    (tmp_path / "django_jobkit" / "page_meta.html").write_text("{{ meta.page }} of {{ meta.total_pages }}: {{ next }}")
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    assert render(meta(2)) == "2 of 6: ?page=3"
