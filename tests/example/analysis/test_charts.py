from xml.etree import ElementTree

import pytest
from filereport.analysis.charts import group_chart, histogram, short, ticks, time_chart, word_chart
from filereport.analysis.groups import group
from filereport.analysis.svg import clean, spell
from filereport.analysis.table import parse_table

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 5, 10]),
        (0, 100, [0, 50, 100]),
        (-3, 17, [-5, 0, 5, 10, 15, 20]),
        (0.12, 0.19, [0.12, 0.14, 0.16, 0.18, 0.2]),
        (5, 5, [4, 4.5, 5, 5.5, 6]),  # one value: some room around it
        (0, 1e12, [0, 5e11, 1e12]),
    ],
)
def test_ticks_are_round_and_reach_over_all_values(low, high, expected):
    assert ticks(low, high) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1500, "1500"), (15000, "15k"), (2.5e6, "2.5M"), (-3e9, "-3G"), (1e99, "1e+90G")],
)
def test_numbers_on_an_axis_are_short(value, text):
    assert short(value) == text


def test_coordinates_are_spelled_to_a_tenth():
    assert [spell(1), spell(1.26), spell(-0.04)] == ["1", "1.3", "-0"]


def test_characters_that_xml_cannot_write_are_replaced():
    assert clean("a\x00b\x0b\ud800\n") == "a\ufffdb\ufffd\ufffd\n"


def test_titles_and_labels_may_hold_any_character():
    drawn(word_chart("W\x0b", [("a\x00", 1)]))


def drawn(svg):
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return root


def check_accessible(root, title):
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title description"
    assert root.find(f"{SVG}title").text == title
    assert root.find(f"{SVG}desc").text
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text


def test_measures_over_time_are_a_line_within_a_band():
    found = group(parse_table("day,t\n2025-01-01,2\n2025-01-02,4\n2025-02-01,9\n"))

    root = drawn(time_chart("A & B", found))

    check_accessible(root, "A & B")
    classes = [path.get("class") for path in root.iter(f"{SVG}path")]
    assert "band bar0" in classes
    assert "line line0" in classes


def test_sums_over_time_are_bars_that_tell_their_value():
    found = group(parse_table("day,n\n2025-01-01,2\n2025-01-01,1500\n2025-02-01,-9\n2025-02-01,1\n"))

    tips = [tip.text for tip in drawn(time_chart("t", found)).iter(f"{SVG}title")]

    assert tips == ["t", "2025-01: 1,502", "2025-02: -8"]


def test_groups_are_bars_of_their_means():
    found = group(parse_table("way,n\nbus,2\nbus,4\n<script>,9\n"))

    tips = [tip.text for tip in drawn(group_chart("t", found)).iter(f"{SVG}title")]

    assert tips == ["t", "<script>: 9", "bus: 3"]


def test_values_without_groups_are_a_histogram_with_every_row_in_it():
    table = parse_table("n\n" + "".join(f"{n}\n" for n in range(50)))

    root = drawn(histogram("t", table.numbers))

    check_accessible(root, "t")
    tips = [tip.text for tip in root.iter(f"{SVG}title")][1:]
    assert tips[0] == "0 to 5: 5"
    assert sum(int(tip.rpartition(": ")[2]) for tip in tips) == 50


def test_a_table_without_numbers_says_so():
    assert "no column of numbers" in histogram("t", [])


def test_the_most_frequent_word_has_the_longest_bar():
    root = drawn(word_chart("Words", [("clock", 4), ("sea", 2)]))

    check_accessible(root, "Words")
    _page, clock, sea = (float(bar.get("width")) for bar in root.iter(f"{SVG}rect"))
    assert clock == pytest.approx(2 * sea)


def test_a_text_of_common_words_only_says_so():
    assert "very common words" in word_chart("Words", [])


@pytest.mark.parametrize(
    "values", [["0", "0"], ["-5", "-5"], ["1e99", "-1e99"], ["1e-99", "2e-99"], ["1e15", "1000000000000000.5"]]
)
def test_values_of_any_size_fit_into_the_picture(values):
    table = parse_table("way,n\n" + "".join(f"w{index},{value}\n" for index, value in enumerate(values)))

    for svg in (group_chart("t", group(table)), histogram("t", table.numbers)):
        root = drawn(svg)
        height = float(root.get("height"))
        for bar in root.iter(f"{SVG}rect"):
            assert 0 <= float(bar.get("y")) <= float(bar.get("y")) + float(bar.get("height")) <= height
