import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from filereport import samples

from django_jobkit import jobkits
from django_jobkit.jobs import State
from tests.inprocess.helpers import eventually


def post(client, **data):
    return client.post(reverse("submit"), data)


def upload(name, data):
    return SimpleUploadedFile(name, data)


def only_job():
    (row,) = jobkits["default"].history.latest(5)
    return row.status


def test_from_the_form_over_the_jobs_page_to_the_history(staff):
    page = staff.get("/")
    for name in samples.SAMPLES:
        assert f'value="{name}"' in page.text

    accepted = post(staff, sample="the-lighthouse-clock.txt")
    job = only_job()
    assert accepted.url == reverse("jobkit:detail", args=[job.job_id])
    assert job.owner == "ann"

    page = staff.get(accepted.url).text
    assert "the-lighthouse-clock.txt" in page
    for name in ("chart.svg", "summary.txt", "summary.json"):
        assert f'href="/jobs/{job.job_id}/outputs/{name}"' in page
    assert f'src="/jobs/{job.job_id}/outputs/chart.svg"' in page

    history = staff.get(reverse("jobkit:history")).text
    assert "the-lighthouse-clock.txt" in history
    assert accepted.url in history


def test_in_a_browser_that_wants_japanese_the_whole_site_is_in_japanese(staff):
    page = staff.get("/", headers={"accept-language": "ja"}).text
    for text in ("新しいレポート", "自分のファイル", "、最大 5.0", "短編小説", "レポートを作成", "ジョブ"):
        assert text in page
    refused = staff.post("/", headers={"accept-language": "ja"}).text
    assert "ファイルを選んでください。" in refused
    assert "ジョブはまだありません" in staff.get(reverse("jobkit:history"), headers={"accept-language": "ja"}).text


def test_a_file_of_ones_own_wins_over_the_one_that_is_ticked(staff):
    post(staff, file=upload("mine.csv", b"a\n1\n"), sample="meeting-notes.md")

    assert only_job().title == "mine.csv"


def test_the_job_runs_from_the_uploaded_file_in_its_directory(staff, media):
    post(staff, file=upload("Mine.CSV", b"a\n1\n"))

    job = only_job()
    assert job.state == State.SUCCEEDED
    assert (media / "jobs" / job.job_id / "input.csv").read_bytes() == b"a\n1\n"


def test_a_long_name_is_cut_and_keeps_its_ending(staff):
    post(staff, file=upload(f"{'n' * 240}.csv", b"a\n1\n"))

    assert only_job().title == f"{'n' * 150}.csv"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "Pick a file."),
        ({"sample": "../manage.py"}, "Select a valid choice."),
        ({"file": upload("empty.csv", b"")}, "The submitted file is empty."),
        ({"file": upload("photo.png", b"\x89PNG")}, "doesn&#x27;t end in .csv, .tsv, .txt, .md."),
        ({"file": upload("big.csv", b"x" * (5 * 1024 * 1024 + 1))}, "at most 5.0\xa0MB are read."),
    ],
)
def test_what_the_form_refuses_makes_no_job_and_says_why(staff, data, words):
    answer = post(staff, **data)

    assert answer.status_code == 400
    assert words in answer.text
    assert jobkits["default"].history.ids() == []


def test_a_file_of_exactly_the_limit_is_taken(staff):
    assert post(staff, file=upload("big.txt", b"x" * (5 * 1024 * 1024))).status_code == 302


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.txt", b"K\xe4se", "Line 1 is not UTF-8 text (byte 0xe4)."),
        ("a.csv", b"\x89PNG\r\n\0", "Line 1 is not UTF-8 text (byte 0x89)."),
        ("a.csv", b"a,b\n1\n", "Line 2 has 1 values, but the first line names 2 columns."),
    ],
)
def test_what_only_the_job_can_find_stands_on_its_page(staff, name, data, words):
    page = staff.get(post(staff, file=upload(name, data)).url).text

    assert words in page
    assert only_job().state == State.FAILED


def test_hostile_contents_stay_text_wherever_they_are_shown(staff):
    hostile = "</title><script>alert(1)</script>"
    data = f'"{hostile}",n\n"{hostile}",1\n<b>,2\n'.encode()
    page = staff.get(post(staff, file=upload(f"{'<i>' * 3}.csv", data)).url)
    job = only_job()

    assert "<script>alert" not in page.text
    assert "<i><i>" not in page.text
    chart = staff.get(f"/jobs/{job.job_id}/outputs/chart.svg")
    assert b"<script>alert" not in chart.getvalue()
    assert chart["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert chart["X-Content-Type-Options"] == "nosniff"


def test_the_form_says_so_when_the_site_can_take_no_job(staff, media):
    (media / "jobs").write_text("a file where the directory should be")

    answer = post(staff, sample="meeting-notes.md")

    assert answer.status_code == 503
    assert "The storage that holds the jobs doesn’t answer as it should." in answer.text


def test_a_stopping_site_answers_503_and_leaves_nothing_of_the_job(staff, queue):
    post(staff, sample="meeting-notes.md")
    queue.drain()
    answer = post(staff, sample="meeting-notes.md")

    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert "The queue takes no more jobs just now." in answer.text
    assert 'value="meeting-notes.md" checked' in answer.text
    assert only_job().state == State.SUCCEEDED


def test_a_program_submits_and_follows_a_job_by_json(staff):
    answer = staff.post("/", {"file": upload("a.csv", b"a\n1\n")}, headers={"accept": "application/json"})

    assert answer.status_code == 202
    assert staff.get(answer.json()["urls"]["status"]).json()["state"] == "succeeded"


def test_a_report_is_made_again_from_the_file_in_its_directory(staff, queue):
    url = post(staff, sample="meeting-notes.md").url
    assert eventually(lambda: only_job().state == State.SUCCEEDED)
    assert staff.post(f"{url}retry/").url == url
    queue.drain()

    assert (only_job().attempts, only_job().state) == (2, State.SUCCEEDED)


@pytest.mark.parametrize("name", ["status.json", "input.md"])
def test_of_a_jobs_files_only_its_outputs_are_served(staff, name):
    post(staff, sample="meeting-notes.md")

    assert staff.get(f"/jobs/{only_job().job_id}/outputs/{name}").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/jobs/", "/jobs/job-1/outputs/chart.svg"])
def test_everything_is_closed_to_strangers(client, path):
    answer = client.get(path)

    assert answer.status_code == 302
    assert answer.url.startswith(reverse("admin:login"))


def test_users_without_the_permission_get_403(staff, django_user_model):
    django_user_model.objects.get(username="ann").user_permissions.clear()

    assert staff.get("/").status_code == 403


@pytest.mark.django_db  # closing a file's response looks after the database's connection
@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/static/filereport/site.css", "text/css"),
        ("/static/django_jobkit/jobkit.css", "text/css"),
        ("/favicon.ico", "image/svg+xml"),
    ],
)
def test_the_site_serves_its_static_files_itself(client, path, media_type):
    answer = client.get(path, follow=True)

    assert (answer.status_code, answer["Content-Type"]) == (200, media_type)
    assert answer.getvalue()
    answer.close()
