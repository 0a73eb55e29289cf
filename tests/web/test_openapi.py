"""The description of the JSON: it says what there is, and the JSON is as it says."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client, override_settings
from django.urls import reverse

from django_jobkit import urls
from django_jobkit.access import FirstOf, StaffAccess
from django_jobkit.backends.stats import BackendStats
from django_jobkit.jobs import JobStatus, State, ids
from django_jobkit.jobs.history import Searched
from django_jobkit.jobs.paging import select_ids
from django_jobkit.kit import jobkits
from django_jobkit.signing_keys import SigningKeys
from django_jobkit.token_access import GoogleTokenAccess
from django_jobkit.web import openapi
from django_jobkit.web.baseviews import JSONView
from django_jobkit.web.display import STATES
from django_jobkit.web.history_filters import FilterForm
from django_jobkit.web.history_page import PROBLEMS
from django_jobkit.web.links import ROUTES
from django_jobkit.web.responses import _ANSWERS, METHOD_NOT_ALLOWED, NOT_LOGGED_IN
from tests.components import require
from tests.issuer import ACCOUNT, AUDIENCE, Issuer
from tests.web.conftest import client_of, put, user

ROOT = Path(__file__).parents[2]
DOCUMENT = json.loads(openapi.PATH.read_bytes())
SCHEMAS = DOCUMENT["components"]["schemas"]
METHODS = ("get", "post", "put", "patch", "delete")


def view_of(pattern):
    return pattern.callback.view_class


JSON_PATTERNS = {
    "/" + ROUTES[pattern.name]: pattern for pattern in urls.urlpatterns if issubclass(view_of(pattern), JSONView)
}


class TestItAgreesWithTheCode:
    def test_it_is_a_valid_document(self):
        require("openapi_spec_validator", "pip install openapi-spec-validator").validate(DOCUMENT)

    def test_it_has_every_json_url_and_no_other(self):
        assert set(DOCUMENT["paths"]) == set(JSON_PATTERNS)

    @pytest.mark.parametrize("path", JSON_PATTERNS)
    def test_it_has_every_method(self, path):
        described = {method for method in DOCUMENT["paths"][path] if method in METHODS}
        assert described == {method for method in METHODS if hasattr(view_of(JSON_PATTERNS[path]), method)}

    @pytest.mark.parametrize("path", JSON_PATTERNS)
    def test_every_operation_says_what_its_errors_are(self, path):
        for method, operation in DOCUMENT["paths"][path].items():
            if method == "parameters":
                continue
            expected = {"401", "403", "503"}
            if "{job_id}" in path:
                expected |= {"400", "404"}
                if method == "get":
                    expected |= {"304", "500"}
            if path == "/-/api/":
                expected |= {"400"}
            assert set(operation["responses"]) == expected | {"204" if method == "delete" else "200"}

    def test_ids_in_paths_are_declared(self):
        for path, item in DOCUMENT["paths"].items():
            declared = [parameter["$ref"] for parameter in item.get("parameters", [])]
            assert declared == ["#/components/parameters/JobID"] * path.count("{job_id}")

    def test_the_list_has_every_parameter(self):
        parameters = {parameter["name"]: parameter for parameter in DOCUMENT["paths"]["/-/api/"]["get"]["parameters"]}
        assert set(parameters) == {"page", "per_page", *FilterForm.base_fields}
        assert parameters["state"]["schema"]["enum"] == list(STATES)
        choices = [choice for choice, _ in FilterForm.base_fields["order"].choices if choice]
        assert parameters["order"]["schema"]["enum"] == choices
        for name in ("q", "command", "prefix"):
            assert parameters[name]["schema"]["maxLength"] == FilterForm.base_fields[name].max_length

    @pytest.mark.parametrize(
        "text", ["a", "A-Z_9", "9", "a" * 128, "a" * 129, "", "-a", "_a", "a.b", "a b", "a/b", "é"]
    )
    def test_a_job_id_is_what_the_kit_takes_for_one(self, text):
        schema = SCHEMAS["JobID"]
        fits = schema["minLength"] <= len(text) <= schema["maxLength"] and re.search(schema["pattern"], text)
        assert bool(fits) == ids.is_valid(text)

    def test_a_record_has_every_field(self):
        assert list(SCHEMAS["Status"]["properties"]) == [field.name for field in dataclasses.fields(JobStatus)]
        assert SCHEMAS["State"]["examples"] == [str(state) for state in State]

    def test_a_page_has_every_number(self):
        _, meta = select_ids([], 1, 20, None)
        assert SCHEMAS["History"]["required"] == ["items", *meta.as_dict()]
        assert set(SCHEMAS["Searched"]["properties"]) == {"limit", "complete", *Searched._fields}
        assert SCHEMAS["Problem"]["properties"]["problem"]["enum"] == list(PROBLEMS)

    def test_a_queue_has_every_count(self):
        names = [field.name for field in dataclasses.fields(BackendStats)]
        assert list(SCHEMAS["Queue"]["properties"]) == SCHEMAS["Queue"]["required"] == names

    def test_an_error_has_every_code_that_there_is_for_these_urls(self):
        # Those of the views for submitting and retrying, which are pages or the site's own.
        elsewhere = {"invalid_json", "job_exists", "queue_full", "queue_stopped", "not_retriable"}
        codes = {answer.code for _, answer in _ANSWERS} | {NOT_LOGGED_IN.code, METHOD_NOT_ALLOWED.code}
        described = SCHEMAS["Error"]["properties"]["error"]["properties"]["code"]["enum"]
        assert set(described) == codes - elsewhere
        for response in DOCUMENT["components"]["responses"].values():
            assert set(re.findall(r"`([a-z]+_[a-z_]+)`", response["description"])) <= set(described)

    def test_links_lead_to_operations(self):
        operations = {
            operation["operationId"]: operation
            for item in DOCUMENT["paths"].values()
            for method, operation in item.items()
            if method in METHODS
        }
        for operation in operations.values():
            for link in operation["responses"].get("200", {}).get("links", {}).values():
                assert link["operationId"] in operations


class TestItIsServed:
    def test_it_names_the_place_that_the_request_came_by(self, staff, kit):
        found = staff.get(reverse("jobkit:openapi"))
        assert found["Content-Type"] == "application/json"
        assert found.json() == {**DOCUMENT, "servers": [{"url": "/jobs"}]}

    @override_settings(
        ROOT_URLCONF="tests.web.urls_many", JOBKIT={"default": {}, "comics": {"PREFIX": "comics"}, "music": {}}
    )
    def test_wherever_that_is(self, staff):
        for prefix in ("/comics", "/teams/red/2026", "/%E6%97%A5%E6%9C%AC/jobs"):
            assert staff.get(f"{prefix}/-/api/openapi.json").json()["servers"] == [{"url": prefix}]

    def test_it_is_a_static_file_too(self):
        assert finders.find("django_jobkit/openapi.json") == str(openapi.PATH)


class Site:
    issuer: Issuer


def machines_and_staff() -> FirstOf:
    machines = GoogleTokenAccess(
        audience=AUDIENCE, accounts={ACCOUNT: ["view", "delete"]}, keys=SigningKeys(Site.issuer.url)
    )
    return FirstOf(machines, StaffAccess())


@pytest.fixture
def site(live_server, issuer, settings, tmp_path):
    """A server over local files, with jobs in every state and in none."""
    Site.issuer = issuer
    files = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(tmp_path / "media"), "base_url": "/media/"},
    }
    settings.STORAGES = {**settings.STORAGES, "default": files}
    settings.JOBKIT = {"default": {"ACCESS": f"{__name__}.machines_and_staff"}}
    settings.CSRF_USE_SESSIONS = True  # so that its token is a header and no cookie
    kit = jobkits["default"]
    for n in range(20):
        put(
            kit,
            f"job-202608{n + 1:02}-000000-0123456789ab",
            title=f"月 {n}",
            command="draw",
            state=[*State, "paused"][n % 5],
            outputs=["chart.svg"],
            result={"rows": [n, None, 1.5]},
            owner="ann",
        )
    put(kit, "job-20260930-000000-0123456789ab", data=b'{"job_id": "x", "job_id": "y"}')
    put(kit, "truncated", data=b"{")
    put(kit, "foreign", data=b'{"state":"running","pages":24,"queued_at":"2026-08-31T10:20:30.123456789+09:00"}')
    kit.storage.write("jobs/left/summary.json", b"{}")
    return live_server


def schemathesis(site, directory: Path, auth: str, *, examples: int, phases: str) -> str:
    """Have every operation tried with data that fit and data that don't; what was found, empty if nothing."""
    description = directory / "openapi.json"
    client = Client(headers={"Authorization": f"Bearer {Site.issuer.token()}"})
    description.write_bytes(client.get(reverse("jobkit:openapi")).content)
    config = directory / "schemathesis.toml"
    config.write_text(
        'hooks = "tests.web.openapi_hooks"\n'
        "continue-on-failure = true\n"
        "color = false\n"
        # Of server errors, a damaged record's is as described; any other body or status is found by other checks.
        '[checks.not_a_server_error]\nexpected-statuses = ["2xx", "3xx", "4xx", 500]\n'
        '[warnings]\nfail-on = ["missing_auth"]\n'
        f"[generation]\ndeterministic = true\nmax-examples = {examples}\n{auth}"
    )
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", str(description)]
    done = subprocess.run(
        [*command, "--url", f"{site.url}/jobs", "--phases", phases],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.component
@pytest.mark.slow
class TestTheServerIsAsItSays:
    @pytest.fixture(autouse=True)
    def _needs(self):
        require("schemathesis", "pip install 'schemathesis>=4'")

    def test_with_a_token(self, site, tmp_path):
        auth = f'[auth.openapi.token]\nbearer = "{Site.issuer.token()}"\n'
        found = schemathesis(site, tmp_path, auth, examples=15, phases="examples,coverage,fuzzing,stateful")
        assert not found, found

    def test_with_a_session(self, site, tmp_path):
        client = client_of(user("ann", "view_job", "delete_job", is_staff=True))
        page = client.get(reverse("jobkit:delete", args=["foreign"])).content.decode()
        token = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        session = client.cookies["sessionid"].value
        auth = f'[auth.openapi.session]\napi_key = "{session}"\n[headers]\nX-CSRFToken = "{token}"\n'
        found = schemathesis(site, tmp_path, auth, examples=5, phases="fuzzing")
        assert not found, found
