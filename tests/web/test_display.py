from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.template import Context, Template
from django.utils import timezone as django_timezone

from django_jobkit.jobs import JobStatus, State, Status
from django_jobkit.web.display import BIDI_CONTROLS, Progress, cut, duration_text, progress_of, shown_time, visible


def render(source: str, **context) -> str:
    return Template("{% load jobkit %}" + source).render(Context(context)).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ('Draw <b> & "charts"', 'Draw <b> & "charts"'),  # escaping is the template's task
        ("a\tb\nc\r\nd", "a\tb\nc\nd"),
        ("a\0b\x1b[31mc\rd\x7f", "a␀b␛[31mc␍d␡"),
        ("a\x85b", "a[U+0085]b"),
        ("invoice\u202efdp.exe", "invoice[U+202E]fdp.exe"),
        ("a\u2066b\u2069", "a[U+2066]b[U+2069]"),
        ("a\u2028b", "a[U+2028]b"),
        ("שלום\u200f 1", "שלום\u200f 1"),  # marks that right-to-left texts need
        ("月次レポート 👩‍🔧", "月次レポート 👩‍🔧"),  # joiners too
    ],
)
def test_control_characters_are_shown_instead_of_obeyed(text, expected):
    assert visible(text) == expected


def test_no_control_character_is_left_but_tabs_and_line_breaks():
    shown = visible("".join(map(chr, range(0x3000))))
    assert {char for char in shown if unicodedata.category(char) == "Cc"} == {"\t", "\n"}
    assert not set(shown) & set(BIDI_CONTROLS)


def test_long_texts_are_cut_with_an_ellipsis():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"


class TestTimes:
    def test_a_time_is_told_in_the_current_zone_and_marked_with_what_was_stored(self):
        value = datetime(2026, 8, 31, 23, 20, 30, 123456, tzinfo=UTC)
        with django_timezone.override("Asia/Tokyo"):
            shown = shown_time(value)
        assert (shown.machine, shown.text) == ("2026-08-31T23:20:30.123456Z", "Sept. 1, 2026 08:20:30")
        assert shown.exact == "2026-09-01 08:20:30+09:00"

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (
                datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-1))),
                "9999-12-31T23:59:59-01:00",
            ),
            (datetime(1, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1))), "0001-01-01T00:30:00+01:00"),
        ],
    )
    @pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
    def test_a_time_that_cannot_be_moved_is_told_as_it_is(self, value, text, zone):
        with django_timezone.override(zone):
            assert text in render("{% job_time value %}", value=value)

    @pytest.mark.parametrize("use_tz", [True, False])
    def test_the_tag_marks_a_time_for_machines(self, settings, use_tz):
        settings.USE_TZ = use_tz
        html = render("{% job_time value %}", value=datetime(2026, 8, 31, 1, 2, 3, tzinfo=UTC))
        assert html.startswith('<time datetime="2026-08-31T01:02:03Z" title="2026-08-3')
        assert html.endswith("</time>")

    @pytest.mark.parametrize(("value", "text"), [(None, "–"), ("<b>", "&lt;b&gt;"), (datetime(2026, 8, 31), "2026")])  # noqa: DTZ001
    def test_what_is_no_time_is_told_as_it_is(self, value, text):
        html = render("{% job_time value %}", value=value)
        assert text in html
        assert "<time" not in html


class TestStates:
    @pytest.mark.parametrize("state", list(State))
    def test_a_known_state_has_its_own_badge(self, state):
        html = render("{% job_state status %}", status=Status(state=state))
        assert f'class="jobkit-state jobkit-state-{state}"' in html
        assert f">{state.value.capitalize()}<" in html

    @pytest.mark.parametrize(
        ("state", "label"),
        [
            ("paused", "paused"),
            ("", "Unknown"),
            ('x"><script>', "x&quot;&gt;&lt;script&gt;"),
            ("é" * 99, "é" * 39 + "…"),
        ],
    )
    def test_an_unknown_state_is_shown_as_the_word_it_is(self, state, label):
        html = render("{% job_state status %}", status=Status(state=state))
        assert 'class="jobkit-state jobkit-state-other"' in html
        assert f"<bdi>{label}</bdi>" in html

    def test_a_row_of_the_sites_own_has_its_state_shown_too(self):
        assert "Failed" in render("{% job_state row %}", row={"state": "failed"})
        assert "Unknown" in render("{% job_state row %}", row=None)


class TestProgress:
    @pytest.mark.parametrize(
        ("current", "total", "message", "expected"),
        [
            (0, 0, "", None),
            (3, 12, "", Progress(3, 12, 25, "")),
            (1, 3, "", Progress(1, 3, 33, "")),
            (0, 12, "", Progress(0, 12, 0, "")),
            (12, 12, "", Progress(12, 12, 100, "")),
            (13, 12, "", Progress(12, 12, 100, "")),
            (-5, 12, "", Progress(0, 12, 0, "")),
            (5, -12, "", Progress(5, 0, None, "")),
            (5, 0, "", Progress(5, 0, None, "")),  # the total isn't known
            (0, 0, "Waiting", Progress(0, 0, None, "Waiting")),
            (2**62, 2**63 - 1, "", Progress(2**62, 2**63 - 1, 50, "")),
        ],
    )
    def test_progress_is_brought_into_the_range(self, current, total, message, expected):
        status = JobStatus(progress_current=current, progress_total=total, progress_message=message)
        assert progress_of(status) == expected

    @pytest.mark.parametrize("status", [None, Status(), {"progress_total": "many"}, {"progress_current": None}])
    def test_what_has_no_progress_shows_none(self, status):
        assert progress_of(status) is None
        assert render("{% job_progress status %}", status=status) == ""

    def test_the_tag_is_a_real_progress_bar(self, settings):
        settings.USE_THOUSAND_SEPARATOR = True
        html = render("{% job_progress status %}", status={"progress_current": 5000, "progress_total": 20000})
        assert '<progress max="100" value="25" aria-label="Progress">' in html
        assert "5,000 of 20,000" in html

    def test_without_a_total_there_is_a_count_and_a_message(self):
        html = render("{% job_progress status %}", status=JobStatus(progress_current=7, progress_message="<i>rows"))
        assert "<progress" not in html
        assert "<span>7</span>" in html
        assert "&lt;i&gt;rows" in html


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (185, "3 min 5 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (3660, "1 h 1 min"),
        (86400 * 2 + 3600 * 4 + 59, "2 d 4 h"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds, expected):
    assert duration_text(seconds) == expected


def test_progress_that_is_live_has_a_place_for_everything():
    html = render("{% job_progress status live=True %}", status=JobStatus())
    assert '<progress data-jobkit="bar" max="100" value="0" aria-label="Progress" hidden>' in html
    assert html.count(" hidden>") == 4
    html = render("{% job_progress status live=True %}", status=JobStatus(progress_current=1, progress_total=4))
    assert 'value="25" aria-label="Progress">' in html
    assert "1 of 4" in html
