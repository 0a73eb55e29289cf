"""Closed by default: who gets what answer, on every URL there is."""

from __future__ import annotations

import inspect

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory, override_settings
from django.urls import reverse
from django.views.generic import View

from django_jobkit import urls, views
from django_jobkit.access import Access, Action, StaffAccess
from django_jobkit.exceptions import StatusUnavailable
from django_jobkit.web.baseviews import JSONView, KitView, PageView
from django_jobkit.web.links import ROUTES
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user

JSON = {"status", "api-list", "api-job", "api-queue", "openapi"}

# Every request that there is; `test_no_url_is_forgotten` finds one that isn't here.
REQUESTS = [
    ("history", "get", 200),
    ("queue", "get", 200),
    ("api-queue", "get", 200),
    ("openapi", "get", 200),
    ("detail", "get", 200),
    ("status", "get", 200),
    ("delete", "get", 200),
    ("delete", "post", 302),
    ("delete-selected", "get", 302),
    ("delete-selected", "post", 302),
    ("retry", "get", 302),
    ("retry", "post", 302),
    ("api-list", "get", 200),
    ("api-job", "get", 200),
    ("api-job", "delete", 204),
]
DELETES = {
    *(("delete", "get"), ("delete", "post"), ("api-job", "delete")),
    *(("delete-selected", "get"), ("delete-selected", "post")),
}
RETRIES = {("retry", "get"), ("retry", "post")}
every_request = pytest.mark.parametrize(("name", "method", "success"), REQUESTS)


def url(name: str, job_id: str = JOB_ID) -> str:
    return reverse(f"jobkit:{name}", args=[job_id] if "{job_id}" in ROUTES[name] else [])


def test_no_url_is_forgotten():
    methods = {
        (pattern.name, method)
        for pattern in urls.urlpatterns
        for method in ("get", "post", "put", "patch", "delete")
        if hasattr(pattern.callback.view_class, method)
    }
    elsewhere = {("output", "get")}  # a job has to have one: test_output_view.py
    assert methods - elsewhere == {(name, method) for name, method, _ in REQUESTS}


def test_no_view_is_forgotten():
    """Each view that the module offers has a URL, and is so in the table above, or sites map it by themselves."""
    offered = {
        found.__name__
        for found in vars(views).values()
        if inspect.isclass(found) and issubclass(found, View) and found not in (KitView, PageView, JSONView)
    }
    mapped_by_sites = {"JobSubmitView"}  # tried in test_submit_view.py
    assert offered - mapped_by_sites == {pattern.callback.view_class.__name__ for pattern in urls.urlpatterns}


@every_request
@pytest.mark.parametrize("exists", [True, False])
def test_who_is_unknown_is_sent_to_log_in(db, kit, name, method, success, exists):
    if exists:
        put(kit)
    response = getattr(Client(), method)(url(name))
    if name in JSON:
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "not_authenticated"
        assert response["WWW-Authenticate"].startswith("Session ")
    else:
        assert (response.status_code, response["Location"]) == (302, f"/admin/login/?next={url(name)}")
    assert len(kit.storage.files) == exists


@every_request
def test_who_is_unknown_learns_nothing_from_a_bad_id_or_an_outage(db, kit, name, method, success):
    kit.storage.read_fails = kit.storage.list_fails = True
    for job_id in (JOB_ID, "no id"):
        assert getattr(Client(), method)(url(name, job_id)).status_code in (302, 401)
    assert not kit.storage.calls


@every_request
@pytest.mark.parametrize("exists", [True, False])
def test_without_the_permission_it_is_403(stranger, kit, name, method, success, exists):
    if exists:
        put(kit)
    response = getattr(stranger, method)(url(name))
    assert response.status_code == 403
    if name in JSON:
        assert response.json()["error"]["code"] == "forbidden"
    else:
        assert "no permission" in response.content.decode()
    assert len(kit.storage.files) == exists


@every_request
def test_with_the_permissions_it_is_done(staff, job, name, method, success):
    assert getattr(staff, method)(url(name)).status_code == success


@every_request
def test_seeing_deleting_and_retrying_are_permissions_of_their_own(db, job, name, method, success):
    request = (name, method)
    needed = "delete_job" if request in DELETES else "retry_job" if request in RETRIES else "view_job"
    for permission in ("view_job", "delete_job", "retry_job"):
        client = client_of(user(permission, permission, is_staff=True))
        allowed = permission == needed
        assert getattr(client, method)(url(name)).status_code == (success if allowed else 403)


@every_request
@pytest.mark.parametrize("flags", [{"is_staff": False}, {"is_staff": True, "is_active": False}])
def test_the_permissions_alone_do_not_do(db, job, name, method, success, flags):
    client = client_of(user("ann", "view_job", "delete_job", **flags))
    # Django logs inactive users out.
    expected = {403} if flags.get("is_active", True) else {302, 401}
    assert getattr(client, method)(url(name)).status_code in expected


@every_request
def test_a_superuser_may_do_everything(db, job, name, method, success):
    client = client_of(user("root", is_staff=True, is_superuser=True))
    assert getattr(client, method)(url(name)).status_code == success


@pytest.mark.parametrize("name", ["history", "detail", "status", "delete", "api-list", "api-job"])
@pytest.mark.parametrize("method", ["head", "options", "post", "put", "patch", "delete", "trace"])
def test_no_method_gets_past_the_gate(db, kit, name, method):
    response = getattr(Client(), method)(url(name))
    assert response.status_code in (302, 401)
    assert "Allow" not in response


def test_delete_links_are_for_those_who_may(staff, viewer, kit):
    put(kit)
    put(kit, "broken", data=b"{")
    for client, expected in [(staff, True), (viewer, False)]:
        for name, job_id in [("history", ""), ("detail", JOB_ID), ("detail", "broken")]:
            assert ("/delete/" in client.get(url(name, job_id)).content.decode()) == expected


class Person:
    """Has every permission, as a backend of the site's own may grant them."""

    def __init__(self, **flags: bool) -> None:
        self.asked: list[str] = []
        self.__dict__.update({"is_authenticated": True, "is_active": True, "is_staff": True, **flags})

    def has_perm(self, name: str) -> bool:
        self.asked.append(name)
        return True


class TestStaffAccess:
    @pytest.mark.parametrize("flag", ["is_active", "is_staff"])
    def test_whatever_permissions_there_are_only_active_staff_is_let_in(self, flag):
        request = RequestFactory().get("/")
        request.user = Person(**{flag: False})
        assert not any(StaffAccess().allows(request, action) for action in Action)
        assert request.user.asked == []

    def test_each_action_has_its_permission(self):
        request = RequestFactory().get("/")
        request.user = Person()
        assert all(StaffAccess().allows(request, action) for action in Action)
        assert request.user.asked == [f"django_jobkit.{action}_job" for action in Action]

    def test_a_request_without_users_is_let_in_nowhere(self):
        """As where Django's authentication isn't installed."""
        request = RequestFactory().get("/")
        assert not any(StaffAccess().allows(request, action) for action in Action)
        assert not StaffAccess().known(request)

    def test_the_base_class_is_closed(self):
        request = RequestFactory().get("/")
        assert not any(Access().allows(request, action) for action in Action)


class Owners(Access):
    """Who is logged in sees their own jobs; only finished ones can be deleted."""

    def allows(self, request, action):
        return request.user.is_authenticated

    def allows_job(self, request, action, job_id, status):
        if status is None or status.owner != request.user.username:
            return False
        return action != Action.DELETE or status.is_terminal


class Careless(Access):
    """Hides others' jobs, and thinks that nothing can be hidden where there is no status."""

    def allows(self, request, action):
        return True

    def allows_job(self, request, action, job_id, status):
        return status is None


class Raising(Access):
    error: Exception

    def allows(self, request, action):
        raise self.error


def access(kind: type[Access]):
    return override_settings(JOBKIT={"default": {"ACCESS": f"{__name__}.{kind.__name__}"}})


class TestAnAccessClassOfTheSite:
    job_requests = pytest.mark.parametrize(
        ("name", "method", "success"), [request for request in REQUESTS if "{job_id}" in ROUTES[request[0]]]
    )

    @job_requests
    @access(Owners)
    def test_a_job_that_is_not_yours_is_answered_as_one_that_is_not_there(self, db, name, method, success):
        kit = in_a_dict()
        put(kit, owner="bob")
        client = client_of(user("ann"))
        theirs = getattr(client, method)(url(name))
        none = getattr(client, method)(url(name, "nothing"))
        assert theirs.status_code == none.status_code == 404
        bodies = [response.content.decode().replace("nothing", JOB_ID) for response in (theirs, none)]
        if name in JSON:
            assert bodies[0] == bodies[1]
        else:
            assert "There is no job with this ID." in bodies[0]
        assert kit.storage.files

    @job_requests
    @access(Owners)
    def test_your_own_job_is_yours(self, db, name, method, success):
        put(in_a_dict(), owner="ann")
        assert getattr(client_of(user("ann")), method)(url(name)).status_code == success

    @access(Owners)
    def test_a_job_that_you_may_see_and_not_delete_is_403(self, db):
        kit = in_a_dict()
        put(kit, owner="ann", state="running")
        client = client_of(user("ann"))
        assert "/delete/" not in client.get(url("detail")).content.decode()
        assert client.get(url("delete")).status_code == 403
        assert client.post(url("delete")).status_code == 403
        assert client.delete(url("api-job")).status_code == 403
        assert kit.storage.files

    @job_requests
    @access(Owners)
    def test_a_damaged_job_is_nobodys(self, db, name, method, success):
        kit = in_a_dict()
        put(kit, data=b"{")
        assert getattr(client_of(user("ann")), method)(url(name)).status_code == 404
        assert kit.storage.files

    @access(Owners)
    def test_what_is_left_of_a_job_without_a_status_is_nobodys(self, db):
        kit = in_a_dict()
        kit.storage.write(f"jobs/{JOB_ID}/summary.json", b"{}")
        client = client_of(user("ann"))
        assert client.post(url("delete")).status_code == 404
        assert client.get(url("delete")).status_code == 404
        assert "<form method" not in client.get(url("delete")).content.decode()
        assert kit.storage.files

    @access(Careless)
    def test_a_hidden_job_is_not_deleted_as_what_is_left_of_one(self, db):
        kit = in_a_dict()
        put(kit)
        client = Client()
        for response in (client.get(url("delete")), client.post(url("delete")), client.delete(url("api-job"))):
            assert response.status_code == 404
            assert b"csrfmiddlewaretoken" not in response.content
        assert kit.storage.files

    @every_request
    @access(Raising)
    def test_what_it_raises_is_answered(self, staff, monkeypatch, name, method, success):
        for error, status in [(PermissionDenied(), 403), (StatusUnavailable("the keys can't be fetched"), 503)]:
            monkeypatch.setattr(Raising, "error", error, raising=False)
            response = getattr(staff, method)(url(name))
            assert response.status_code == status
            assert b"keys" not in response.content

    @access(Owners)
    def test_it_sets_the_challenge(self, db, monkeypatch):
        monkeypatch.setattr(Owners, "challenge", "Bearer")
        assert Client().get(url("status"))["WWW-Authenticate"] == "Bearer"


class TestLoggingIn:
    def location(self, path: str) -> str:
        return Client().get(path)["Location"]

    def test_one_comes_back_with_the_query(self, db, kit):
        assert self.location("/jobs/?page=2&per_page=5") == "/admin/login/?next=/jobs/%3Fpage%3D2%26per_page%3D5"

    def test_the_sites_login_url_may_be_a_name_or_have_a_query(self, db, kit, settings):
        settings.LOGIN_URL = "admin:login"
        assert self.location("/jobs/") == "/admin/login/?next=/jobs/"
        settings.LOGIN_URL = "/sign-in/?theme=dark"  # maybe another program's, behind the same proxy
        assert self.location("/jobs/") == "/sign-in/?theme=dark&next=/jobs/"

    def test_another_hosts_login_page_gets_the_whole_url(self, db, kit, settings):
        settings.LOGIN_URL = "https://login.example/"
        assert self.location("/jobs/") == "https://login.example/?next=http%3A//testserver/jobs/"

    def test_where_it_leads_nowhere_it_is_the_admins_login_page(self, db, kit, settings):
        settings.LOGIN_URL = "/accounts/login/"
        assert self.location("/jobs/") == "/admin/login/?next=/jobs/"
        settings.ROOT_URLCONF = "tests.web.urls_without_admin"
        assert self.location("/jobs/") == "/accounts/login/?next=/jobs/"

    def test_djangos_default_is_used_where_the_site_has_a_page_there(self, db, kit, settings):
        settings.LOGIN_URL = "/accounts/login/"
        settings.ROOT_URLCONF = "tests.web.urls_with_login"
        assert self.location("/jobs/") == "/accounts/login/?next=/jobs/"

    @every_request
    def test_djangos_own_gate_does_not_come_before_ours(self, db, kit, settings, name, method, success):
        """LoginRequiredMiddleware would send machines to a login page."""
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.contrib.auth.middleware.LoginRequiredMiddleware"]
        assert getattr(Client(), method)(url(name)).status_code == (401 if name in JSON else 302)


class TestForgery:
    """Requests that another site's page has a browser send."""

    @pytest.fixture
    def browser(self, staff) -> Client:
        client = Client(enforce_csrf_checks=True)
        client.cookies = staff.cookies
        return client

    @pytest.mark.parametrize("with_middleware", [True, False])
    def test_nothing_is_deleted_without_a_token(self, browser, kit, settings, with_middleware):
        if not with_middleware:
            settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "Csrf" not in name]
        put(kit)
        assert browser.post(url("delete")).status_code == 403
        response = browser.delete(url("api-job"))
        assert (response.status_code, response.json()["error"]["code"]) == (403, "csrf_failed")
        assert kit.storage.files

    def test_the_form_of_the_page_has_the_token(self, browser, kit):
        put(kit)
        page = browser.get(url("delete")).content.decode()
        token = page.rpartition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        assert browser.post(url("delete"), {"csrfmiddlewaretoken": token}).status_code == 302
        assert not kit.storage.files

    def test_a_script_sends_the_token_as_a_header(self, browser, kit):
        put(kit)
        browser.get(url("delete"))
        token = browser.cookies["csrftoken"].value
        assert browser.delete(url("api-job"), headers={"X-CSRFToken": "x" * 32}).status_code == 403
        assert browser.delete(url("api-job"), headers={"X-CSRFToken": token}).status_code == 204
        assert not kit.storage.files

    def test_who_is_unknown_is_told_so_first(self, db, kit):
        client = Client(enforce_csrf_checks=True)
        assert client.delete(url("api-job")).status_code == 401
