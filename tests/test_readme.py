"""What the README says is true: its code runs, its tables are those of the code, its links lead somewhere."""

import ast
import dataclasses
import json
import re
import sys
import threading
import types
from pathlib import Path

import pytest
from django.template import Context, Template
from django.test import RequestFactory

from django_jobkit import checks, conf, exceptions, jobkits, signals
from django_jobkit.access import Access, Action
from django_jobkit.backends import checking
from django_jobkit.jobs import JobStatus, State, codec
from django_jobkit.web import responses
from django_jobkit.web.links import ROUTES

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)
PYTHON = [code for language, code in BLOCKS if language == "python"]


def block(start):
    """The Python block that begins with this line."""
    (code,) = (code for code in PYTHON if code.startswith(start))
    return code


def module(start, name, monkeypatch):
    """That block as an imported module."""
    made = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(block(start), f"README.md:{name}", "exec"), made.__dict__)
    return made


def section(heading):
    return README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def table(text):
    """The cells of a section's table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def code(cell):
    return cell.removeprefix("`").removesuffix("`")


# --- what a newcomer types --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heading", ["Try it", "Test it"])
def test_the_headings_are_followed_at_once_by_a_block_of_one_line(heading):
    match = re.search(rf"^## {heading}\n\n```sh\n(.*)\n```$", README, re.M)

    assert match is not None
    assert match[1].startswith("python3 -m venv .venv && .venv/bin/pip install -q -e ")


def test_the_first_screen_says_what_it_is_for_and_shows_the_history():
    first_screen = README.partition("\n## ")[0]

    assert "one\nsmall JSON file per job" in first_screen
    assert re.search(r"!\[[^]]+\]\(docs/history\.png\)", first_screen)
    assert (ROOT / "docs/history.png").stat().st_size < 200_000


def test_links_lead_to_files_that_are_there():
    targets = re.findall(r"\]\(([^)#]+)\)", README)

    assert targets
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


def test_extras_are_those_of_the_package():
    tomllib = pytest.importorskip("tomllib")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    named = set(re.findall(r"`django-jobkit\[(\w+)\]`", README))
    assert named == {"gcs", "s3", "redis", "tasks", "oidc", "all"}
    assert named | {"test"} <= set(extras)


# --- tables -----------------------------------------------------------------------------------------------------------


def test_the_settings_are_all_there_with_their_defaults():
    documented = {code(name): ast.literal_eval(code(default)) for name, default, *_ in table(section("Settings"))}
    fields = [field for field in dataclasses.fields(conf.KitSettings) if field.name != "alias"]

    assert documented == {field.name.upper(): field.default for field in fields}
    assert list(documented) == [field.name.upper() for field in fields]


def test_the_checks_are_those_that_there_are():
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (checks, checking))

    assert {code(row[0]) for row in table(section("System checks"))} == set(re.findall(r'id="(jobkit\.\w+)"', source))


def test_errors_are_answered_as_the_table_says():
    rows = table(section("Errors"))
    answered = {}
    for error, http, answer_code, _meaning in rows:
        name = re.match(r"`(\w+)`", error)
        if name and hasattr(exceptions, name[1]):
            answered[getattr(exceptions, name[1])] = (int(http[:3]), code(answer_code), "Retry-After" in http)

    for error_class, expected in answered.items():
        answer = responses.answer_to(error_class())
        assert (answer.status, answer.code, answer.retry_after is not None) == expected, error_class
        if answer.retry_after is not None:
            assert f"`Retry-After: {answer.retry_after}`" in section("Errors")
    documented = {code(row[2]) for row in rows}
    assert documented | {"csrf_failed"} == {answer.code for _, answer in responses._ANSWERS} | {"not_authenticated"}


def test_the_urls_are_those_of_the_url_conf():
    rows = {
        code(name).removeprefix("jobkit:"): code(url)
        for url, name, _ in table(section("Add it to a site in five minutes"))
    }

    assert {name: "" if url == "(nothing)" else url for name, url in rows.items()} == {
        name: route.format(job_id="<job_id>", name="<name>") for name, route in ROUTES.items()
    }


# --- code -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", PYTHON, ids=lambda source: source.partition("\n")[0])
def test_every_block_is_python(source):
    compile(source, "README.md", "exec")


def test_every_block_says_its_language():
    assert {language for language, _ in BLOCKS} == {"sh", "python", "html", "json"}


def test_the_settings_block_is_free_of_problems(settings):
    settings.JOBKIT = {}
    namespace = {}
    exec(block("# settings.py"), namespace)
    settings.JOBKIT = namespace["JOBKIT"]

    assert conf.problems() == []
    assert "django_jobkit" in namespace["INSTALLED_APPS"]


def test_the_urls_block_leads_to_the_pages(monkeypatch, settings):
    urls = module("# urls.py", "readme_urls", monkeypatch)

    assert [str(found.pattern) for found in urls.urlpatterns] == ["jobs/"]


def test_the_worker_and_the_submit_run_a_job_to_its_output(monkeypatch):
    monkeypatch.setitem(sys.modules, "reports", types.ModuleType("reports"))
    worker = module("# reports/worker.py", "reports.worker", monkeypatch)
    views = types.ModuleType("reports.views")
    views.__package__ = "reports"
    exec(block("# reports/views.py"), views.__dict__)

    with ended() as wait:
        for text in ("one two\nthree\n", ""):
            request = RequestFactory().post("/", {"text": text})
            request.user = types.SimpleNamespace(username="ann")
            answer = views.submit(request)
            job_id = answer.url.strip("/").rpartition("/")[2]
            status = wait(job_id)
            assert (status.command, status.title, status.owner) == ("count-words", "Words of my text", "ann")
            assert status.attempts == 1
            if text:
                assert (status.state, status.outputs) == (State.SUCCEEDED, ["summary.txt"])
                kit = jobkits["default"]
                assert kit.storage.read(kit.output_name(job_id, "summary.txt")).data == b"3 words\n"
                assert (status.progress_current, status.progress_total) == (2, 2)
            else:
                assert status.state == State.FAILED
                assert "The text is empty." in status.error
    worker.pool.shutdown()


class ended:
    """Waits for the ends of jobs that other threads record, however fast they are."""

    def __enter__(self):
        self.statuses = {}
        self.news = threading.Condition()
        signals.status_saved.connect(self.hear)
        return self.wait

    def __exit__(self, *_):
        signals.status_saved.disconnect(self.hear)

    def hear(self, job_id, status, **_):
        if status.state in (State.SUCCEEDED, State.FAILED):
            with self.news:
                self.statuses[job_id] = status
                self.news.notify_all()

    def wait(self, job_id):
        with self.news:
            assert self.news.wait_for(lambda: job_id in self.statuses, timeout=20)
            return self.statuses[job_id]


def test_the_retry_submits_the_same_text_anew(monkeypatch):
    given = []
    worker = types.ModuleType("reports.worker")
    worker.start = lambda job_id, text: given.append((job_id, text))
    package = types.ModuleType("reports")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "reports", package)
    monkeypatch.setitem(sys.modules, "reports.worker", worker)
    found = types.ModuleType("reports.retry")
    found.__package__ = "reports"
    exec(block("# reports/retry.py"), found.__dict__)
    kit = jobkits["default"]
    kit.storage.write(kit.output_name("old-1", "input.txt"), b"one two")

    new_id = found.retry("old-1", JobStatus(command="count-words", title="Words", owner="ann"), None)

    assert given == [(new_id, "one two")]
    assert kit.store.get(new_id).owner == "ann"


def test_recording_by_hand_runs_once_and_records_the_end(monkeypatch):
    by_hand = module("from datetime import", "readme_by_hand", monkeypatch)
    store = jobkits["default"].store

    by_hand.run("hand-1", lambda job_id: ["a.txt"])
    by_hand.run("hand-1", lambda job_id: pytest.fail("it has succeeded before"))
    by_hand.run("hand-2", lambda job_id: 1 / 0)

    done, failed = store.get("hand-1"), store.get("hand-2")
    assert (done.state, done.attempts, done.outputs) == (State.SUCCEEDED, 1, ["a.txt"])
    assert (failed.state, failed.error) == (State.FAILED, "division by zero")
    assert done.started_at <= done.finished_at


def test_the_access_block_lets_people_see_their_own_jobs_and_machines_in_by_token(monkeypatch):
    pytest.importorskip("google.auth")
    access = module("# reports/access.py", "readme_access", monkeypatch).access()
    request = RequestFactory().get("/")
    request.user = types.SimpleNamespace(
        is_authenticated=True, is_active=True, get_username=lambda: "ann", has_perm=lambda name: False
    )

    assert isinstance(access, Access)
    assert access.allows(request, Action.VIEW)
    assert access.allows_job(request, Action.VIEW, "job-1", JobStatus(owner="ann"))
    assert not access.allows_job(request, Action.VIEW, "job-1", JobStatus(owner="bob"))
    assert not access.allows_job(request, Action.VIEW, "job-1", None)
    with_token = RequestFactory().get("/", headers={"Authorization": "Bearer x.y.z"})
    with_token.user = request.user
    with pytest.raises(exceptions.TokenRefused):
        access.allows(with_token, Action.VIEW)


def test_the_template_shows_rows_and_page_numbers():
    jobkits["default"].store.save("shown-1", JobStatus(state=State.RUNNING, title="Words <b>"))
    page = jobkits["default"].history.page(1, 20)
    (html,) = (code for language, code in BLOCKS if language == "html")

    shown = Template(html).render(
        Context({"rows": page.items, "meta": page.meta, "request": RequestFactory().get("/")})
    )

    assert "Words &lt;b&gt;" in shown
    assert "Running" in shown
    assert f"{page.meta.total}" in shown


def test_the_status_class_keeps_its_fields_in_the_file(monkeypatch):
    comic = module("# comics/status.py", "readme_comic", monkeypatch).ComicStatus

    data = codec.encode(comic(job_id="c-1", state=State.QUEUED, pages=12))

    assert json.loads(data) | {"pages": 12, "cover": ""} == json.loads(data)
    assert codec.decode(data, comic).pages == 12


def test_the_receivers_hear_of_saves_and_deletes(monkeypatch, capsys):
    heard = module("from django.dispatch import receiver", "readme_signals", monkeypatch)
    try:
        jobkits["default"].store.save("heard-1", JobStatus(state=State.SUCCEEDED, owner="ann"))
        jobkits["default"].history.delete("heard-1")
    finally:
        signals.status_saved.disconnect(heard.tell_owner)
        signals.status_deleted.disconnect(heard.forget)

    assert capsys.readouterr().out == "ann, your job heard-1 is done.\nJob heard-1 is gone.\n"


def test_the_file_shown_is_byte_for_byte_what_the_kit_writes():
    (shown,) = (code.strip().encode() for language, code in BLOCKS if language == "json")
    status = codec.decode(shown, JobStatus)

    assert codec.encode(status) == shown
    assert not status.extra
    assert f"`{' '.join(name for name in list(json.loads(shown))[:4])}" in README
