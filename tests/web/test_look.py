"""The pages in the admin's look, in their own, and in the site's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import django
import pytest
from django.urls import reverse

from tests.web import csp
from tests.web.conftest import JOB_ID, put

PAGES = [("history", []), ("detail", [JOB_ID]), ("delete", [JOB_ID])]


@pytest.mark.parametrize(("name", "args"), PAGES)
def test_with_the_admin_they_look_like_it(staff, job, name, args):
    html = staff.get(reverse(f"jobkit:{name}", args=args)).content.decode()
    assert "admin/css/base.css" in html
    assert "Django administration" in html
    assert 'action="/admin/logout/"' in html
    assert '<a href="/admin/">Home</a>' in html
    assert "django_jobkit/jobkit.css" in html
    assert "standalone.css" not in html


def test_without_the_staffs_rights_there_are_no_links_of_the_admin(db, kit, settings):
    from tests.web.conftest import client_of, user

    html = client_of(user("ann")).get("/jobs/").content.decode()
    assert "/admin/logout/" not in html


@pytest.mark.parametrize(("name", "args"), PAGES)
def test_where_the_admin_has_no_urls_they_have_a_look_of_their_own(staff, job, settings, name, args):
    settings.ROOT_URLCONF = "tests.web.urls_without_admin"
    html = staff.get(reverse(f"jobkit:{name}", args=args)).content.decode()
    assert "admin" not in html
    assert html.index("standalone.css") < html.index("jobkit.css")


def test_where_requests_have_no_user_they_have_a_look_of_their_own(client, job, settings):
    """The admin's page would ask the user for permissions."""
    settings.JOBKIT = {"default": {"ACCESS": "tests.web.everybody.Everybody"}}
    settings.MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
    html = client.get("/jobs/").content.decode()
    assert "standalone.css" in html


@pytest.mark.parametrize(("name", "args"), PAGES)
def test_a_site_can_have_them_in_its_own_look(staff, kit, settings, tmp_path, name, args):
    put(kit, title="Chart")
    (tmp_path / "django_jobkit").mkdir()
    (tmp_path / "site.html").write_text(
        "<title>{% block title %}{% endblock %} - Our site</title>{% block extrahead %}{% endblock %}"
        "<body>{% block breadcrumbs %}{% endblock %}<main>{% block content %}{% endblock %}</main>"
    )
    (tmp_path / "django_jobkit" / "base.html").write_text('{% extends "site.html" %}')
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    html = staff.get(reverse(f"jobkit:{name}", args=args)).content.decode()
    assert "- Our site</title>" in html
    assert "Chart" in html
    assert html.count("<h1") == 1
    assert "django_jobkit/jobkit.css" in html
    assert "admin/css" not in html


def test_they_need_neither_a_database_nor_users_nor_the_admin():
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.web.bare_site"],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("System check identified no issues (0 silenced).\nwell\n", 0), done.stderr


@pytest.mark.parametrize(("name", "args"), PAGES)
def test_in_a_language_from_right_to_left_the_page_is_mirrored(staff, job, settings, name, args):
    settings.ROOT_URLCONF = "tests.web.urls_without_admin"
    settings.LANGUAGE_CODE = "he"
    assert 'dir="rtl"' in staff.get(reverse(f"jobkit:{name}", args=args)).content.decode()


@pytest.mark.parametrize("urls", ["tests.urls", "tests.web.urls_without_admin"])
@pytest.mark.parametrize("name", [*(name for name, _args in PAGES), "no-such-job"])
def test_each_of_our_files_carries_the_nonce_of_the_sites_policy(staff, kit, settings, urls, name):
    put(kit, state="running")
    settings.ROOT_URLCONF = urls
    csp.switch_on_nonces(settings)
    args = dict(PAGES).get(name, [name])
    response = staff.get(reverse(f"jobkit:{name if name in dict(PAGES) else 'detail'}", args=args))
    nonce = "abc"
    if django.VERSION >= (6, 0):  # a lazy one, which is in the policy only if the page asks for it
        [nonce] = set(re.findall("'nonce-([^']+)'", response["Content-Security-Policy"]))
    tags = re.findall(r"<(?:script|link)[^>]*?/django_jobkit/([^\"]+)\"([^>]*)>", response.content.decode())
    assert {file for file, _rest in tags} == {
        "jobkit.css",
        *(["standalone.css"] if "without" in urls else []),
        *{"history": ["history.js"], "detail": ["jobkit.js"]}.get(name, []),
    }
    assert [file for file, rest in tags if f' nonce="{nonce}"' not in rest] == []


def test_our_own_files_are_small():
    static = Path(__file__).parents[2] / "django_jobkit" / "static" / "django_jobkit"
    assert sum(path.stat().st_size for path in static.iterdir() if path.suffix in (".css", ".js")) < 20_000
