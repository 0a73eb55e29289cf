"""A job's outputs are for those who may see the job, wherever its page is."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.core.files.base import ContentFile
from django.test import Client, override_settings
from django.urls import reverse

from django_jobkit.web.links import ROUTES
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user
from tests.web.made_outputs import TEXT, body, made, url
from tests.web.test_urls import MANY, TestManyIncludes

OWNERS = "django_jobkit.access.OwnerAccess"


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
        assert staff.get(f"/jobs/{JOB_ID}/{name}").status_code in (200, 302)
