import json

import pytest
from filereport import samples
from filereport.analysis import FileProblem, analyse, kind_of


def report_on(name, data, resamples=20):
    steps = []
    report = analyse(name, data, resamples=resamples, progress=lambda *step: steps.append(step))
    return report, steps


@pytest.mark.parametrize(
    ("name", "kind"), [("a.csv", "table"), ("A.CSV", "table"), ("b.tsv", "table"), ("c.txt", "text"), ("d.md", "text")]
)
def test_the_ending_of_the_name_tells_the_kind(name, kind):
    assert kind_of(name) == kind


@pytest.mark.parametrize("name", ["photo.png", "csv", "a.csv.exe"])
def test_other_endings_are_refused(name):
    with pytest.raises(FileProblem, match=r"doesn't end in \.csv, \.tsv, \.txt, \.md\."):
        kind_of(name)


@pytest.mark.parametrize("name", [name for name in samples.SAMPLES if name != samples.BROKEN])
def test_every_file_of_the_site_has_a_report(name):
    report, steps = report_on(name, samples.read(name))

    assert list(report.files) == ["chart.svg", "summary.txt", "summary.json"]
    assert json.loads(report.files["summary.json"])["file"] == name
    assert report.files["summary.txt"].decode().startswith(f"{name}\n====")
    numbers, totals, messages = zip(*steps, strict=True)
    assert list(numbers) == sorted(numbers)
    assert numbers[-1] == totals[-1]
    assert all(messages)


def test_the_broken_file_says_what_is_wrong_where():
    with pytest.raises(FileProblem, match="Line 37, column “level_cm”: “sensor cleaned” is not a number"):
        report_on(samples.BROKEN, samples.read(samples.BROKEN))


def test_the_files_of_the_site_are_those_that_are_described():
    names = {path.name for path in samples._DIRECTORY.iterdir()} - {"README.md"}

    assert names == set(samples.SAMPLES)
    with pytest.raises(KeyError):
        samples.read("README.md")


def test_a_table_is_summed_up_in_numbers_and_in_words():
    report, _ = report_on(
        "sales.csv", b"day,shop,sold\n2025-01-01,N,2\n2025-01-01,S,4\n2025-02-01,N,\n2025-02-01,S,3\n"
    )
    summary = json.loads(report.files["summary.json"])

    assert report.headline == "4 rows, 3 columns, 1 missing values"
    assert [column["kind"] for column in summary["columns"]] == ["date", "text", "number"]
    assert summary["grouping"]["shown"] == "sum"
    assert summary["grouping"]["groups"][0]["columns"]["sold"]["sum"] == 6
    text = report.files["summary.txt"].decode()
    assert "The sum by month of day" in text
    assert "2025-01     2     6\n" in text
    assert "shop: 2 different: N (2), S (2); 0 missing" in text


def test_a_text_is_summed_up_in_numbers_and_in_words():
    report, _ = report_on("a.txt", b"The clock ticks. The clock stops at night.\n")
    summary = json.loads(report.files["summary.json"])

    assert report.headline == "8 words in 2 sentences, very easy to read"
    assert summary["frequent_words"][0] == {"word": "clock", "count": 2}
    assert summary["sentences"]["longest"][0] == {"words": 5, "sentence": "The clock stops at night."}
    assert "Words per sentence  4 (95 % interval" in report.files["summary.txt"].decode()


def test_a_table_without_numbers_has_a_report_too():
    report, _ = report_on("names.csv", b"name\nA\nB\n")

    assert json.loads(report.files["summary.json"])["grouping"] is None
    assert b"no column of numbers" in report.files["chart.svg"]
