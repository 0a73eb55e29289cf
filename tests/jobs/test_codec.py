from __future__ import annotations

import base64
import dataclasses
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from django_jobkit.exceptions import InvalidJobID, StatusCorrupt, StatusNotEncodable
from django_jobkit.jobs import codec, rfc3339
from django_jobkit.jobs.status import JobStatus, State, Status, json_field
from django_jobkit.jobs.store import StatusStore, under_job_dir
from tests.jobs import readings
from tests.jobs.fakes import Clock, DictStorage
from tests.jobs.shapes import SHAPES, Nested, OutputDirStatus
from tests.vectors import cases

# Where Python can't follow the reference, and why.
NOT_FOLLOWED = {
    "encode-065-queued-one-nano": "Python keeps microseconds; nothing finer is left to write",
    "encode-076-queued-zero-plus-nano": "cut to microseconds this is Go's zero time, which is not set",
    "decode-265-updated-at-0000-01-01T00:00:00Z": "the year 0 is before datetime.min",
    "decode-266-updated-at-0000-02-29T00:00:00Z": "the year 0 is before datetime.min",
}


def times_beyond_microseconds(given_: dict[str, Any]) -> bool:
    values = [given_["clock"], *(given_["status"].get(name) for name in readings.TIMES)]
    return any(readings.has_nanoseconds(value) for value in values)


@pytest.mark.parametrize(("given_", "expected"), cases("status_encode.json"))
def test_saving_writes_what_the_go_reference_writes(given_, expected, request):
    storage = DictStorage()
    if expected.get("error") == "bad_time":
        with pytest.raises(ValueError, match="RFC 3339"):  # Python's datetime has no such year: it can't be handed in
            readings.time(given_["status"]["queued_at"])
        return
    status = readings.status(given_["status"], given_["type"])
    store = StatusStore(
        storage, SHAPES[given_["type"]], locate=under_job_dir("base"), clock=Clock(readings.time(given_["clock"]))
    )
    before = dataclasses.asdict(status)

    if kind := expected.get("error"):
        with pytest.raises(InvalidJobID if kind == "invalid_job_id" else StatusNotEncodable) as caught:
            store.save(given_["job_id"], status)
        assert kind == "invalid_job_id" or caught.value.kind == kind
        assert storage.files == {}
        return

    store.save(given_["job_id"], status)

    assert dataclasses.asdict(status) == before or given_["type"] == "rich"  # saving changes no argument
    written = storage.files["base/" + expected["path"]].data
    wanted = base64.b64decode(expected["bytes_b64"])
    if request.node.callspec.id in NOT_FOLLOWED:
        return
    if times_beyond_microseconds(given_):
        # Python's clock and datetime stop at microseconds; all but the cut digits agrees.
        assert cut_times(json.loads(written)) == cut_times(json.loads(wanted))
    elif given_["type"] == "rich":
        # Doubles may be spelt otherwise (1.0 for 1): equal as JSON is what is promised; the order of members is kept.
        assert json.loads(written) == json.loads(wanted)
        assert list(json.loads(written)) == list(json.loads(wanted))
    else:
        assert written == wanted


def cut_times(document: dict[str, Any]) -> dict[str, Any]:
    return {name: readings.time(value) if name in readings.TIMES else value for name, value in document.items()}


@pytest.mark.parametrize(("given_", "expected"), cases("status_decode.json"))
def test_reading_returns_what_the_go_reference_returns(given_, expected, request):
    name = f"jobs/{given_['job_id']}/status.json"
    store = StatusStore(DictStorage({name: base64.b64decode(given_["document_b64"])}), OutputDirStatus)

    if request.node.callspec.id in NOT_FOLLOWED:
        with pytest.raises(StatusCorrupt) as caught:
            store.get(given_["job_id"])
        assert caught.value.kind == "bad_time"
    elif "error" in expected:
        with pytest.raises(StatusCorrupt) as caught:
            store.get(given_["job_id"])
        assert caught.value.kind == expected["error"]
    else:
        status = store.get(given_["job_id"])
        assert status == readings.status(expected["status"])
        assert status.is_terminal is expected["terminal"]


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (b"[" * 50_000_000, "too_deep"),
        (b'{"a":' * 20_000, "too_deep"),
        (b'{"state":{"a":1,"a":2}}', "duplicate_key"),  # the value is read whole before its kind is judged
        (b'{"a":1,"b":2,"a"', "duplicate_key"),
        (b'{"attempts":1', "truncated"),
        (b'{"attempts":1.', "truncated"),
        (b'{"attempts":1.}', "not_json"),
        (b'{"x":tru', "truncated"),
        (b'{"x":"\\ud83d', "truncated"),
        (b'{"x":"\\ud83d\\', "truncated"),
        (b'{"x":"\\ud83dx"}', "bad_escape"),
        (b'{"x":"\\u12g4"}', "bad_escape"),
        (b'{"x":"\xe9\xa1"}', "invalid_utf8"),
        (b'{"x":"\xe9\xa1', "truncated"),
        (b'{"attempts":1e999}', "not_an_integer"),
        (b'{"attempts":' + b"9" * 5000 + b"}", "out_of_range"),
        (b'{"x":NaN}', "not_json"),
        (b'{"x":[1,]}', "not_json"),
        (b'{"x":1,}', "not_json"),
        (b'{"x"}', "not_json"),
        (b'{"state":1}{', "wrong_type"),
        (b"{}{", "trailing_data"),
        (b"[]]", "wrong_type"),
        (b"null]", "trailing_data"),
        (b'{"queued_at":"2026-08-11T24:00:00Z"}', "bad_time"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value[:30]),
)
def test_a_damaged_file_is_named_by_its_first_fault(document, kind):
    with pytest.raises(StatusCorrupt) as caught:
        codec.decode(document, OutputDirStatus)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "document",
    [
        b'{"job_id":"a","state":"queued","updated_at":"2026-08-31T10:20:30Z","x":1,"y":{"z":[null,true,"\xe6\xb5\xb7"]}}',
        b'{"job_id":"a","state":"queued","updated_at":"2026-08-31T10:20:30Z","x":1e999999,"y":-1e999}',
        b'{"job_id":"a","state":"queued","updated_at":"2026-08-31T10:20:30Z","x":' + b"7" * 5000 + b"}",
        b'{"job_id":"a","state":"queued","updated_at":"2026-08-31T10:20:30Z","x":' + b"[" * 9999 + b"]" * 9999 + b"}",
        b'{"job_id":"a","state":"queued","updated_at":"2026-08-31T10:20:30Z","x":'
        + b'{"a":[' * 4999
        + b"0"
        + b"]}" * 4999
        + b"}",
    ],
    ids=["plain", "past a double", "past int's digits", "deep lists", "deep objects"],
)
def test_members_the_class_does_not_know_are_written_back_as_they_were(document):
    assert codec.encode(codec.decode(document, OutputDirStatus)) == document


def test_extra_members_survive_get_and_save_but_no_carry_over():
    storage = DictStorage({"jobs/a/status.json": b'{"job_id":"a","state":"queued","pages":7}'})
    store = StatusStore(storage)
    status = store.get("a")
    assert status.extra == {"pages": 7}

    store.save("a", status)
    assert json.loads(storage.files["jobs/a/status.json"].data)["pages"] == 7

    fresh = JobStatus(state=State.RUNNING)
    fresh.carry_over(status)
    assert fresh.extra == {}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"title": "\ud800"}, "invalid_utf8"),
        ({"title": 7}, "wrong_type"),
        ({"attempts": "2"}, "wrong_type"),
        ({"attempts": True}, "wrong_type"),
        ({"attempts": 2**63}, "bad_number"),
        ({"queued_at": datetime(2026, 8, 31)}, "bad_time"),  # noqa: DTZ001
        ({"queued_at": "2026-08-31"}, "wrong_type"),
        ({"result": float("nan")}, "bad_number"),
        ({"result": {1: "a name that is no text would come back as one"}}, "wrong_type"),
        ({"result": ("a tuple would come back as a list",)}, "wrong_type"),
        ({"result": object()}, "wrong_type"),
        ({"outputs": "summary.json"}, "wrong_type"),
        ({"outputs": [1]}, "wrong_type"),
        ({"queued_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1, seconds=1)))}, "bad_time"),
    ],
    ids=repr,
)
def test_what_a_file_cannot_hold_is_refused_before_anything_is_written(fields, kind):
    storage = DictStorage()
    with pytest.raises(StatusNotEncodable) as caught:
        StatusStore(storage).save("a", JobStatus(**fields))
    assert caught.value.kind == kind
    assert storage.files == {}


def test_an_extra_member_with_the_name_of_a_field_is_refused():
    status = Status()
    status.extra["title"] = "second"
    with pytest.raises(StatusNotEncodable, match="set the field instead"):
        codec.encode(status)


def test_the_default_status_costs_no_bytes_for_what_is_not_set():
    assert codec.encode(JobStatus(job_id="a", state=State.QUEUED)) == codec.encode(
        Status(job_id="a", state=State.QUEUED)
    )


def test_a_class_with_a_field_no_file_can_hold_says_which():
    @dataclass(kw_only=True)
    class Odd(Status):
        when: complex = json_field(0)

    with pytest.raises(TypeError, match=r"Odd\.when: a status file can't hold"):
        codec.decode(b"{}", Odd)


def test_an_unknown_state_is_kept_as_text_and_a_known_one_is_a_state():
    assert codec.decode(b'{"state":"paused"}', Status).state == "paused"
    assert codec.decode(b'{"state":"queued"}', Status).state is State.QUEUED


def test_a_zone_with_odd_seconds_is_written_as_the_same_moment_in_utc():
    moment = datetime(1900, 1, 1, 12, tzinfo=timezone(timedelta(hours=9, minutes=18, seconds=59)))
    data = codec.encode(Status(queued_at=moment))
    assert b'"1900-01-01T02:41:01Z"' in data
    assert codec.decode(data, Status).queued_at == moment


def test_a_time_in_the_year_zero_that_utc_can_hold_reads_as_that_moment():
    status = codec.decode(b'{"queued_at":"0000-12-31T23:30:00-01:00"}', Status)
    assert status.queued_at == datetime(1, 1, 1, 0, 30, tzinfo=UTC)


# --- Hypothesis -------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.none() | st.datetimes(
    timezones=st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
).filter(lambda value: not rfc3339.is_zero(value))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)
NESTED = st.recursive(
    st.builds(Nested, name=TEXT, ratio=st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.builds(Nested, name=TEXT, ratio=st.just(1.5), deep=st.none() | inner),
    max_leaves=4,
)


@dataclass(kw_only=True)
class EveryKind(JobStatus):
    number: float = json_field(0.0)
    flag: bool = json_field(False)
    blob: bytes = json_field(b"")
    nested: Nested | None = json_field(None)
    many: list[Nested] = json_field([])
    table: dict[str, int] = json_field({})


STATUSES = st.builds(
    EveryKind,
    job_id=st.just("a"),
    command=TEXT,
    state=st.sampled_from(State) | TEXT,
    title=TEXT,
    error=TEXT,
    attempts=INT64,
    queued_at=TIMES,
    updated_at=TIMES,
    started_at=TIMES,
    finished_at=TIMES,
    progress_current=INT64,
    outputs=st.lists(TEXT),
    owner=TEXT,
    result=JSON,
    number=st.floats(allow_nan=False, allow_infinity=False),
    flag=st.booleans(),
    blob=st.binary(),
    nested=st.none() | NESTED,
    many=st.lists(NESTED),
    table=st.dictionaries(TEXT, INT64),
)


@given(STATUSES, st.dictionaries(TEXT.map("x".__add__), JSON))
def test_any_status_that_can_be_saved_reads_back_equal(status, extra):
    status.extra.update(extra)
    found = codec.decode(codec.encode(status), EveryKind)
    assert found == status
    assert found.extra == status.extra


def reads_or_is_corrupt(data: bytes) -> None:
    try:
        status = codec.decode(data, JobStatus)
    except StatusCorrupt:
        return
    codec.encode(status)


@given(st.binary())
@example(b"")
@example(b'{"x":"\\ud800"}')
def test_any_bytes_read_or_are_corrupt_and_nothing_else(data):
    reads_or_is_corrupt(data)


DOCUMENT = codec.encode(
    JobStatus(job_id="a", state=State.FAILED, title="海 \U0001f600 \\", attempts=3, queued_at=datetime.now(UTC))
)


@given(st.integers(0, len(DOCUMENT)), st.integers(0, 20), st.binary(max_size=4))
def test_a_damaged_document_reads_or_is_corrupt_and_nothing_else(start, length, patch):
    reads_or_is_corrupt(DOCUMENT[:start] + patch + DOCUMENT[start + length :])


@given(st.integers(0, len(DOCUMENT) - 1))
def test_a_document_cut_anywhere_is_truncated(length):
    with pytest.raises(StatusCorrupt) as caught:
        codec.decode(DOCUMENT[:length], JobStatus)
    assert caught.value.kind == "truncated"
