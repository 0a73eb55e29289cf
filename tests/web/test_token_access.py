"""Machines that come with a token: on every URL, beside people who log in."""

from __future__ import annotations

import logging

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, RequestFactory, override_settings

from django_jobkit.access import Action, FirstOf, OwnerAccess, StaffAccess
from django_jobkit.signing_keys import SigningKeys
from django_jobkit.token_access import GoogleTokenAccess, bearer_token
from tests.issuer import ACCOUNT, AUDIENCE, Issuer
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user
from tests.web.test_access import DELETES, JSON, REQUESTS, RETRIES, url

CLEANER = "cleaner@some-project.iam.gserviceaccount.com"
SENDER = "sender@some-project.iam.gserviceaccount.com"

# Forms are for people: their CSRF check comes before everything else. Machines have JSON URLs.
MACHINES = [request for request in REQUESTS if request[1] != "post"]
every_request = pytest.mark.parametrize(("name", "method", "success"), MACHINES)


class Site:
    """What the site's settings would hold."""

    issuer: Issuer


def machines() -> GoogleTokenAccess:
    return GoogleTokenAccess(
        audience=AUDIENCE,
        accounts={ACCOUNT: ["view"], CLEANER: [Action.VIEW, Action.DELETE], SENDER: "add"},
        keys=SigningKeys(Site.issuer.url),
    )


def machines_and_staff() -> FirstOf:
    return FirstOf(machines(), StaffAccess())


def machines_and_owners() -> FirstOf:
    return FirstOf(machines(), OwnerAccess())


@pytest.fixture(autouse=True)
def _site(issuer, db):
    Site.issuer = issuer
    with override_settings(JOBKIT={"default": {"ACCESS": f"{__name__}.machines_and_staff"}}):
        yield


@pytest.fixture
def kit():
    return in_a_dict()


def sender(token: str, scheme: str = "Bearer") -> Client:
    """A client that sends this with each request, and checks forgery as a real server does."""
    return Client(headers={"Authorization": f"{scheme} {token}"}, enforce_csrf_checks=True)


@pytest.mark.parametrize("path", ["", "-/api/", "x/", "x/status/"])
def test_a_token_that_is_none_is_refused_in_the_admin_too(db, kit, path):
    """The admin turns a machine away before the token is looked at."""
    response = sender("garbage").get(f"/admin/django_jobkit/job/{path}")
    assert response.status_code == 401
    assert "Bearer" in response["WWW-Authenticate"]


class TestWhoIsLetIn:
    @every_request
    def test_each_account_may_do_what_stands_beside_it(self, kit, issuer, name, method, success):
        put(kit)
        for account in (ACCOUNT, CLEANER):
            response = getattr(sender(issuer.token(email=account)), method)(url(name))
            may = (name, method) not in (RETRIES if account == CLEANER else DELETES | RETRIES)
            assert response.status_code == (success if may else 403)

    def test_deleting_takes_no_csrf_token(self, kit, issuer):
        put(kit)
        assert sender(issuer.token(email=CLEANER)).delete(url("api-job")).status_code == 204
        assert not kit.storage.files

    def test_the_log_names_the_account(self, kit, issuer, caplog):
        caplog.set_level(logging.INFO, logger="django_jobkit.audit")
        put(kit)
        sender(issuer.token(email=CLEANER)).delete(url("api-job"))
        assert caplog.messages == [f"'{CLEANER}' deleted job {JOB_ID} of default"]

    def test_so_takes_submitting(self, kit, issuer, settings):
        settings.ROOT_URLCONF = "tests.web.submit_site"
        for account, status in [(SENDER, 202), (ACCOUNT, 403)]:
            client = sender(issuer.token(email=account))
            response = client.post("/hand-over/", {}, content_type="application/json")
            assert response.status_code == status
        assert len(kit.history.ids()) == 1

    def test_it_sees_all_jobs_whosever_they_are(self, kit, issuer):
        put(kit, "a", owner="ann")
        put(kit, "b", data=b"{")
        found = sender(issuer.token()).get(url("api-list")).json()
        assert found["total"] == 2
        assert "searched" not in found

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    def test_the_schemes_name_is_of_any_case(self, kit, issuer, scheme):
        assert sender(issuer.token(), scheme).get(url("api-list")).status_code == 200

    def test_a_token_is_verified_once_per_request_and_keys_fetched_once(self, kit, issuer, monkeypatch):
        from google.auth import crypt

        verified = []
        verify = crypt.verify_signature
        monkeypatch.setattr(crypt, "verify_signature", lambda *args: verified.append(1) or verify(*args))
        put(kit)
        for count in (1, 2):
            assert sender(issuer.token()).get(url("detail")).status_code == 200
            assert len(verified) == count
        assert issuer.asked == 1

    @pytest.mark.parametrize("name", ["status", "api-job", "api-list"])
    def test_it_costs_no_query(self, kit, issuer, name, django_assert_num_queries):
        put(kit)
        with django_assert_num_queries(0):
            assert sender(issuer.token()).get(url(name)).status_code == 200


class TestWhoIsNot:
    @every_request
    def test_a_refused_token_is_401_and_says_why(self, kit, issuer, name, method, success):
        put(kit)
        for token, why in [
            (issuer.token(exp=1, iat=1), "The token has expired."),
            (issuer.token(aud="https://elsewhere.example.com"), "The token is meant for another audience."),
            (issuer.token(email_verified=False), "The token holds no verified e-mail address."),
            ("garbage", "The token is no signed JWT."),
            ("", "The token is no signed JWT."),
        ]:
            response = getattr(sender(token), method)(url(name))
            assert response.status_code == 401
            assert response["WWW-Authenticate"] == (
                f'Bearer realm="jobs", error="invalid_token", error_description="{why}", Session realm="jobs"'
            )
            assert "no-store" in response["Cache-Control"]
            if name in JSON:
                assert response.json()["error"]["code"] == "invalid_token"
        assert kit.storage.files

    @every_request
    def test_another_account_is_403(self, kit, issuer, name, method, success):
        put(kit)
        response = getattr(sender(issuer.token(email="other@example.com")), method)(url(name))
        assert response.status_code == 403
        if name in JSON:
            assert response.json()["error"]["code"] == "forbidden"
        assert kit.storage.files

    @every_request
    def test_without_the_keys_it_is_503_and_not_401(self, kit, issuer, name, method, success):
        put(kit)
        issuer.go_down()
        response = getattr(sender(issuer.token()), method)(url(name))
        assert (response.status_code, response["Retry-After"]) == (503, "10")
        assert "WWW-Authenticate" not in response
        if name in JSON:
            assert response.json()["error"]["code"] == "unavailable"
            assert "keys" in response.json()["error"]["message"]
        assert b"127.0.0.1" not in response.content
        assert kit.storage.files

    def test_when_they_are_back_it_is_let_in(self, kit, issuer):
        issuer.status = 500
        client = sender(issuer.token())
        assert client.get(url("api-list")).status_code == 503
        issuer.status = 200
        assert client.get(url("api-list")).status_code == 503  # not asked again at once
        from django_jobkit.kit import jobkits

        jobkits["default"].access.members[0].verifier.keys.retry_after = 0
        assert client.get(url("api-list")).status_code == 200

    def test_it_learns_nothing_of_jobs(self, kit, issuer):
        put(kit)
        kit.storage.read_fails = kit.storage.list_fails = True
        for token in ("garbage", issuer.token(email="other@example.com")):
            for name, method, _ in REQUESTS:
                for job_id in (JOB_ID, "nothing", "no id"):
                    assert getattr(sender(token), method)(url(name, job_id)).status_code in (401, 403)
        assert set(kit.storage.calls) <= {"write"}

    @pytest.mark.parametrize(
        "header", ["", "Bearer", "Bearer ", "Bearer\t{token}", "Bearer  ", "bearer {token} {token}", "Bearer {token},x"]
    )
    def test_a_mangled_header_is_no_token(self, kit, issuer, header):
        client = Client(headers={"Authorization": header.format(token=issuer.token())})
        assert client.get(url("api-list")).status_code == 401

    @pytest.mark.parametrize("scheme", ["Basic", "Token", "Bearers", "xBearer", "Session"])
    def test_other_schemes_are_none_of_ours(self, kit, issuer, scheme):
        response = sender(issuer.token(), scheme).get(url("api-list"))
        assert response.json()["error"]["code"] == "not_authenticated"
        assert response["WWW-Authenticate"] == 'Bearer realm="jobs", Session realm="jobs"'

    def test_a_token_anywhere_else_is_none(self, kit, issuer):
        token = issuer.token()
        client = Client(headers={"X-Authorization": f"Bearer {token}"})
        client.cookies["token"] = token
        assert client.get(url("api-list") + f"?access_token={token}").status_code == 401


class TestBesidePeople:
    def test_the_login_is_as_without_it(self, kit, staff):
        put(kit)
        assert Client().get(url("history")).status_code == 302
        assert Client().get(url("api-list")).status_code == 401
        assert staff.get(url("history")).status_code == 200
        assert staff.delete(url("api-job")).status_code == 204

    def test_a_session_still_needs_the_csrf_token(self, kit, staff):
        put(kit)
        browser = Client(enforce_csrf_checks=True)
        browser.cookies = staff.cookies
        assert browser.delete(url("api-job")).json()["error"]["code"] == "csrf_failed"
        assert kit.storage.files

    @pytest.mark.parametrize("email", [ACCOUNT, "other@example.com", None])
    def test_a_token_that_may_not_is_not_made_good_by_a_session(self, kit, issuer, staff, email):
        """Nor does the token spare the session its CSRF token."""
        put(kit)
        browser = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {issuer.token(email=email)}"})
        browser.cookies = staff.cookies
        assert browser.delete(url("api-job")).status_code == (401 if email is None else 403)
        assert kit.storage.files

    def test_the_form_is_for_people(self, kit, issuer):
        put(kit)
        assert sender(issuer.token(email=CLEANER)).post(url("delete")).status_code == 403
        assert kit.storage.files

    @override_settings(JOBKIT={"default": {"ACCESS": f"{__name__}.machines_and_owners"}})
    def test_users_see_their_own_jobs_and_machines_all(self, issuer):
        kit = in_a_dict()
        put(kit, "of-ann", owner="ann")
        put(kit, "of-bob", owner="bob")
        ann = client_of(user("ann"))
        assert [item["job_id"] for item in ann.get(url("api-list")).json()["items"]] == ["of-ann"]
        assert ann.get(url("status", "of-bob")).status_code == 404
        machine = sender(issuer.token())
        assert machine.get(url("api-list")).json()["total"] == 2
        assert machine.get(url("status", "of-bob")).status_code == 200

    @override_settings(JOBKIT={"default": {"ACCESS": f"{__name__}.machines"}})
    def test_alone_it_lets_nobody_else_in(self, issuer, staff):
        put(in_a_dict())
        assert staff.get(url("api-list")).status_code == 401
        assert staff.get(url("api-list"))["WWW-Authenticate"] == 'Bearer realm="jobs"'
        assert Client(enforce_csrf_checks=True).delete(url("api-job")).status_code == 401
        assert sender(issuer.token()).get(url("api-list")).status_code == 200


class TestSecrecy:
    def test_no_token_is_in_an_answer_or_a_log(self, kit, issuer, caplog):
        caplog.set_level(logging.DEBUG)
        put(kit)
        tokens = [
            issuer.token(),
            issuer.token(aud="x"),
            issuer.token(email="a@b.example"),
            "rubbish-a.rubbish-b.rubbish-c",
        ]
        answers = []
        for outage in (False, True):
            if outage:
                issuer.go_down()
            for token in tokens:
                for name, method, _ in REQUESTS:
                    response = getattr(sender(token), method)(url(name))
                    answers.append(str(response.headers) + response.content.decode())
        everything = "\n".join([*answers, caplog.text])
        for token in tokens:
            assert not [part for part in (token, *token.split(".")[1:]) if part in everything]


class TestConfiguration:
    @pytest.mark.parametrize("options", [{"audience": ""}, {"accounts": []}, {"accounts": {}}, {"audience": ()}])
    def test_audience_and_accounts_have_to_be_there(self, options):
        with pytest.raises(ImproperlyConfigured, match="A verifier of identity tokens needs"):
            GoogleTokenAccess(**{"audience": AUDIENCE, "accounts": ACCOUNT, **options})

    @pytest.mark.parametrize("actions", [["veiw"], "everything", [None], None, 7, [["view"]]])
    def test_an_action_that_there_is_none_of_is_named(self, actions):
        with pytest.raises(ImproperlyConfigured, match=r"accounts\['reporter@.*not a list of actions: view, "):
            GoogleTokenAccess(audience=AUDIENCE, accounts={ACCOUNT: actions})

    def test_without_a_dict_accounts_may_see_and_no_more(self):
        access = GoogleTokenAccess(audience=AUDIENCE, accounts=[ACCOUNT, CLEANER])
        assert access.actions == {ACCOUNT: {Action.VIEW}, CLEANER: {Action.VIEW}}

    def test_only_a_token_spares_the_csrf_token(self):
        access = GoogleTokenAccess(audience=AUDIENCE, accounts=ACCOUNT)
        request, with_token = (
            RequestFactory().post("/"),
            RequestFactory().post("/", headers={"Authorization": "Bearer x"}),
        )
        assert access.needs_csrf_token(request)
        assert not access.needs_csrf_token(with_token)

    def test_manage_py_check_finds_what_is_wrong(self, monkeypatch):
        from django_jobkit.checks import check_settings

        def wrong():
            return GoogleTokenAccess(audience=AUDIENCE, accounts=[])

        monkeypatch.setitem(globals(), "machines_and_staff", wrong)
        errors = [found for found in check_settings() if found.id == "jobkit.E002"]
        assert [("needs accounts" in error.msg, "['ACCESS']" in error.hint) for error in errors] == [(True, True)]

    def test_first_of_none_is_an_error(self):
        with pytest.raises(ImproperlyConfigured):
            FirstOf()

    def test_a_function_may_make_it(self):
        from django_jobkit.checks import check_settings

        assert not [found for found in check_settings() if found.id == "jobkit.E002"]


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        ("", None),
        ("Bearer", ""),
        ("Bearer ", ""),
        ("Bearer  x ", "x"),
        ("bearer x", "x"),
        ("Bearer x y", "x y"),
        ("Basic x", None),
        (" Bearer x", None),
        ("Bearer:x", None),
    ],
)
def test_what_stands_in_the_header(header, token):
    request = RequestFactory().get("/", headers={} if header is None else {"Authorization": header})
    assert bearer_token(request) == token
