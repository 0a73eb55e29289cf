"""Each user has their own jobs: what they find of others' is nothing, in lists, pages, JSON and numbers alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import pytest
from django.test import Client, RequestFactory, override_settings

from django_jobkit.access import Action, OwnerAccess
from django_jobkit.jobs import JobStatus, State, Status
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user
from tests.web.test_access import JSON, REQUESTS, url

PATH = "django_jobkit.access.OwnerAccess"
JOB_REQUESTS = [request for request in REQUESTS if request[0] in ("detail", "status", "delete", "api-job")]
of_a_job = pytest.mark.parametrize(("name", "method", "success"), JOB_REQUESTS)


class ViewOnly(OwnerAccess):
    owner_actions = frozenset({Action.VIEW})


@dataclass
class Recipe:
    job_id: str
    cooked_on: date
    owner: str = ""


def owned_row(job_id: str):
    return Recipe(job_id, date(2026, 8, 31), "ann" if "mine" in job_id else "bob")


def row_without_owner(job_id: str):
    return {"job_id": job_id, "title": "Whose?"}


def by_owner(path: str = PATH, **options):
    return override_settings(JOBKIT={"default": {"ACCESS": path, **options}})


@pytest.fixture(autouse=True)
def _owners_only():
    with by_owner():
        yield


@pytest.fixture
def kit():
    return in_a_dict()


@pytest.fixture
def ann(db) -> Client:
    return client_of(user("ann"))


@pytest.fixture
def watcher(db) -> Client:
    """May see all jobs; no member of the staff."""
    return client_of(user("watcher", "view_job"))


def shown(client: Client, query: str = "") -> dict:
    return client.get(url("api-list") + query).json()


def ids_of(client: Client, query: str = "") -> list[str]:
    return [item["job_id"] for item in shown(client, query)["items"]]


class TestOthersJobs:
    @of_a_job
    @pytest.mark.parametrize("owner", ["bob", "Ann", "ann ", "", "annika"])
    def test_are_answered_as_none(self, ann, kit, name, method, success, owner):
        put(kit, owner=owner, title="Secret", outputs=["secret.txt"])
        theirs = getattr(ann, method)(url(name))
        none = getattr(ann, method)(url(name, "nothing"))
        assert theirs.status_code == none.status_code == 404
        bodies = [response.content.decode().replace("nothing", JOB_ID) for response in (theirs, none)]
        if name in JSON:
            assert bodies[0] == bodies[1]
        assert "ecret" not in bodies[0]
        assert kit.storage.files

    @of_a_job
    @pytest.mark.parametrize("data", [b"{", b"", b'{"owner": "ann", "owner": "ann"}', b'{"owner": ["ann"]}'])
    def test_so_are_damaged_ones_which_nobody_can_say_the_owner_of(self, ann, kit, name, method, success, data):
        put(kit, data=data)
        assert getattr(ann, method)(url(name)).status_code == 404
        assert kit.storage.files

    @of_a_job
    def test_so_is_what_is_left_of_a_job_without_a_record(self, ann, kit, name, method, success):
        kit.storage.write(f"jobs/{JOB_ID}/secret.txt", b"")
        response = getattr(ann, method)(url(name))
        assert response.status_code == 404
        assert b"<form" not in response.content.partition(b"</nav>")[2] or name != "delete"
        assert kit.storage.files

    def test_are_not_deleted_with_others_that_were_selected(self, ann, kit):
        put(kit, "mine", owner="ann", title="My own")
        put(kit, "theirs", owner="bob", title="Secret")
        put(kit, "broken", data=b"{")
        kit.storage.write("jobs/left/secret.txt", b"")
        chosen = {"job": ["mine", "theirs", "broken", "left", "nothing"]}
        asked = ann.post(url("delete-selected"), chosen).content.decode()
        assert "My own" in asked
        assert "Secret" not in asked
        assert asked.count("There is no job with this ID.") == 4
        ann.post(url("delete-selected"), {**chosen, "confirm": "yes"})
        assert sorted(kit.storage.files) == [
            "jobs/broken/status.json",
            "jobs/left/secret.txt",
            "jobs/theirs/status.json",
        ]

    def test_are_in_no_list_and_in_no_number(self, ann, kit):
        for n in range(30):
            put(
                kit, f"job-202608{n + 1:02}-000000-0123456789ab", owner="ann" if n % 3 == 0 else "bob", title=f"Day {n}"
            )
        put(kit, "broken", data=b"{")
        kit.storage.write("jobs/left/x", b"")
        found = shown(ann, "?page=2&per_page=4")
        assert [item["title"] for item in found.pop("items")] == ["Day 15", "Day 12", "Day 9", "Day 6"]
        assert found == {
            "page": 2,
            "per_page": 4,
            "total": 10,
            "total_pages": 3,
            "has_prev": True,
            "has_next": True,
            "prev_page": 1,
            "next_page": 3,
            "from": 5,
            "to": 8,
            "searched": {"limit": 500, "complete": True},
        }
        html = ann.get(url("history") + "?page=2&per_page=4").content.decode()
        assert "5–8 of 10" in html
        assert html.count("<tr") == 1 + 4
        assert "Day 14" not in html
        assert "looked for" not in html

    @pytest.mark.parametrize("query", ["?q=secret", "?state=failed", "?command=draw", "?owner=bob", "?prefix=theirs"])
    def test_cannot_be_guessed_by_filters(self, ann, kit, query):
        put(kit, "theirs-1", owner="bob", title="Secret", state="failed", command="draw")
        found = shown(ann, query)
        assert (found["items"], found["total"]) == ([], 0)
        assert set(found["searched"]) == {"limit", "complete"}

    def test_an_outage_is_one_whoever_asks(self, ann, kit):
        kit.storage.read_fails = kit.storage.list_fails = True
        assert ann.get(url("status")).status_code == 503
        assert ann.get(url("api-list")).status_code == 503


class TestYourOwnJobs:
    @pytest.mark.parametrize("query", ["", "?prefix=secret-", "?prefix=none-", "?since=2026-08-01&until=2026-08-02"])
    def test_that_they_were_not_all_looked_for_says_nothing_of_others(self, ann, query):
        """Else one could count others' jobs, by asking for one second after the other."""
        with by_owner(SEARCH_LIMIT=3):
            kit = in_a_dict()
            for number in range(4):
                put(kit, f"secret-2026080{number + 1}-000000-0123456789ab", owner="bob")
            assert shown(ann, query)["searched"] == {"limit": 3, "complete": False}

    @of_a_job
    def test_are_yours(self, ann, kit, name, method, success):
        put(kit, owner="ann")
        assert getattr(ann, method)(url(name)).status_code == success

    def test_have_links_to_what_they_made(self, ann, kit):
        put(kit, owner="ann", outputs=["chart.svg"])
        assert f"/jobs/{JOB_ID}/outputs/chart.svg" in ann.get(url("detail")).content.decode()

    def test_are_looked_for_among_the_newest_and_the_page_says_so(self, ann):
        with by_owner(SEARCH_LIMIT=5):
            kit = in_a_dict()
            for day in range(1, 10):
                put(kit, f"job-2026080{day}-000000-0123456789ab", owner="ann" if day in (1, 6, 8) else "bob")
            kit.storage.calls.clear()
            found = shown(ann)
            assert kit.storage.calls["read"] <= 5
            assert (found["total"], found["searched"]) == (2, {"limit": 5, "complete": False})
            html = ann.get(url("history")).content.decode()
            assert "Only your jobs among the newest 5 jobs of this site are looked for." in html
            assert "of 9" not in html  # how many there are in all is nobody's business

    def test_without_any_the_page_says_so(self, ann, kit):
        put(kit, owner="bob")
        assert "There are no jobs yet" in ann.get(url("history")).content.decode()
        assert shown(ann)["total"] == 0

    @by_owner(f"{__name__}.ViewOnly")
    def test_a_site_may_take_the_deleting_away(self, ann):
        kit = in_a_dict()
        put(kit, owner="ann")
        assert "/delete/" not in ann.get(url("detail")).content.decode()
        assert ann.post(url("delete")).status_code == 403
        assert ann.delete(url("api-job")).status_code == 403
        assert client_of(user("cat", "delete_job")).delete(url("api-job")).status_code == 404
        assert kit.storage.files

    @by_owner(f"{__name__}.ViewOnly")
    def test_and_give_it_back_as_a_permission(self, db):
        kit = in_a_dict()
        put(kit, owner="dan")
        assert client_of(user("dan", "delete_job")).delete(url("api-job")).status_code == 204


class TestPermissions:
    @pytest.mark.parametrize("flags", [{}, {"is_superuser": True}])
    def test_who_has_the_permission_sees_all_and_damaged_ones_too(self, db, kit, flags):
        eve = client_of(user("eve", *([] if flags else ["view_job"]), **flags))
        put(kit, "of-bob", owner="bob")
        put(kit, "of-eve", owner="eve")
        put(kit, "broken", data=b"{")
        assert sorted(ids_of(eve)) == ["broken", "of-bob", "of-eve"]
        assert "searched" not in shown(eve)
        assert eve.get(url("status", "of-bob")).status_code == 200
        assert eve.get(url("status", "broken")).status_code == 500

    def test_seeing_all_is_not_deleting_all(self, watcher, kit):
        put(kit, owner="bob")
        put(kit, "broken", data=b"{")
        for name, job_id in [("detail", JOB_ID), ("detail", "broken"), ("history", "")]:
            assert "/delete/" not in watcher.get(url(name, job_id)).content.decode()
        for job_id in (JOB_ID, "broken"):
            assert watcher.get(url("delete", job_id)).status_code == 403
            assert watcher.delete(url("api-job", job_id)).status_code == 403
        assert len(kit.storage.files) == 2

    def test_counts_of_everybodys_jobs_are_for_those_who_see_them(self, ann, watcher, kit):
        for name in ("queue", "api-queue"):
            assert ann.get(url(name)).status_code == 403
            assert watcher.get(url(name)).status_code == 200

    def test_deleting_all_takes_seeing_all(self, db, kit):
        put(kit, owner="bob")
        assert client_of(user("cat", "delete_job")).delete(url("api-job")).status_code == 404
        assert client_of(user("dan", "delete_job", "view_job")).delete(url("api-job")).status_code == 204

    @pytest.mark.parametrize(("name", "method", "success"), REQUESTS)
    def test_who_is_unknown_has_no_jobs(self, db, kit, name, method, success):
        put(kit, owner="")
        assert getattr(Client(), method)(url(name)).status_code == (401 if name in JSON else 302)
        assert kit.storage.files

    def test_it_costs_no_query_beyond_the_user_and_their_permissions(self, ann, kit, django_assert_num_queries):
        put(kit, owner="ann")
        # Whether lists are of everybody’s jobs is a matter of permissions, as is the admin’s look; one’s own job isn’t.
        for name, queries in [("history", 4), ("api-list", 4), ("detail", 4), ("status", 2)]:
            with django_assert_num_queries(queries):
                ann.get(url(name))


class Person:
    is_authenticated = True

    def __init__(self, name: str, *, is_active: bool = True) -> None:
        self.name = name
        self.is_active = is_active

    def get_username(self) -> str:
        return self.name

    def has_perm(self, name: str) -> bool:
        return not self.is_active  # a backend that grants everything to the wrong people


def request_of(person):
    request = RequestFactory().get("/")
    request.user = person
    return request


class TestTheQuestions:
    def test_a_user_without_a_name_has_no_jobs(self):
        access, request = OwnerAccess(), request_of(Person(""))
        assert not any(access.allows(request, action) for action in Action)
        assert not access.allows_job(request, Action.VIEW, JOB_ID, JobStatus(owner=""))

    def test_an_inactive_one_is_let_in_nowhere(self):
        access, request = OwnerAccess(), request_of(Person("ann", is_active=False))
        assert not any(access.allows(request, action) for action in Action)
        assert not access.allows_job(request, Action.VIEW, JOB_ID, JobStatus(owner="ann"))
        assert access.owner_filter(request) == ""

    def test_a_request_without_users_is_let_in_nowhere(self):
        access, request = OwnerAccess(), RequestFactory().get("/")
        assert not any(access.allows(request, action) for action in Action)
        assert not access.allows_job(request, Action.VIEW, JOB_ID, JobStatus(owner=""))

    def test_a_record_that_has_no_owner_is_nobodys(self):
        access, request = OwnerAccess(), request_of(Person("ann"))
        assert not access.allows_job(request, Action.VIEW, JOB_ID, Status(job_id=JOB_ID))
        assert not access.allows_job(request, Action.VIEW, JOB_ID, None)


class TestListsAndJobsAgree:
    """What is in the list can be opened, and what can be opened is in the list, whatever rows are made of."""

    @pytest.mark.parametrize("owner", ["ann", "bob", "", "Ann"])
    @pytest.mark.parametrize("state", [State.QUEUED, State.SUCCEEDED, "paused"])
    def test_for_every_job(self, ann, watcher, kit, owner, state):
        put(kit, owner=owner, state=state)
        for client in (ann, watcher):
            for _ in range(2):  # cold and warm
                assert (ids_of(client) == [JOB_ID]) == (client.get(url("status")).status_code == 200)

    def test_a_change_of_owner_counts_at_once(self, ann, kit):
        put(kit, owner="ann")
        assert ids_of(ann) == [JOB_ID]
        put(kit, owner="bob")
        assert ids_of(ann) == []

    def test_rows_of_the_sites_own_tell_their_owner(self, ann, watcher):
        with by_owner(LOAD=f"{__name__}.owned_row"):
            kit = in_a_dict()
            for job_id in ("mine-1", "mine-2", "theirs"):
                put(kit, job_id)
            assert sorted(ids_of(ann)) == ["mine-1", "mine-2"]
            assert len(ids_of(watcher)) == 3

    def test_or_are_nobodys(self, ann, watcher):
        with by_owner(LOAD=f"{__name__}.row_without_owner"):
            put(in_a_dict(), owner="ann")
            assert ids_of(ann) == []
            assert ids_of(watcher) == [JOB_ID]
