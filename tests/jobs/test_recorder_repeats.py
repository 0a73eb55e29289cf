"""Records that would only repeat what was just saved, over a storage that takes one write of a file per second."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from django_jobkit.jobs.recorder import Recorder
from django_jobkit.jobs.status import JobStatus, State, json_field
from django_jobkit.jobs.store import StatusStore
from tests.jobs.fakes import Clock, DictStorage


class SlowObject(DictStorage):
    min_write_interval = 1.0


@dataclass(kw_only=True)
class ComicStatus(JobStatus):
    scores: dict[str, float] = json_field({}, omit="empty")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def storage():
    return SlowObject()


@pytest.fixture
def store(storage, clock):
    return StatusStore(storage, ComicStatus, clock=clock)


def running(**fields) -> ComicStatus:
    return ComicStatus(state=State.RUNNING, **fields)


def test_the_same_again_within_the_second_is_not_sent(storage, store, clock):
    recorder = Recorder(store)
    recorder.record("a", running(title="t", scores={"x": 1.5}))
    first = store.get("a")
    for _ in range(9):
        clock.now += timedelta(seconds=0.1)
        recorder.record("a", running(scores={"x": 1.5}))
    assert storage.calls["write"] == 1
    assert store.get("a") == first

    clock.now = first.updated_at + timedelta(seconds=1)
    recorder.record("a", running(scores={"x": 1.5}))
    assert storage.calls["write"] == 2
    assert store.get("a").updated_at == clock.now


@pytest.mark.parametrize(
    "news",
    [
        running(title="other"),
        running(progress_current=1),
        running(scores={"x": 2.0}),
        ComicStatus(state=State.FAILED),
        ComicStatus(state=State.SUCCEEDED),
        ComicStatus(state=State.QUEUED),
    ],
    ids=["title", "progress", "own field", "failed", "succeeded", "queued"],
)
def test_news_are_sent_at_once(storage, store, news):
    recorder = Recorder(store)
    recorder.record("a", running())
    recorder.record("a", news)
    assert storage.calls["write"] == 2
    assert store.get("a").state == news.state


def test_what_a_callback_changes_is_news_even_if_it_changes_the_previous_record_too(storage, store):
    def add_attempt(next_, prev):
        next_.attempts += 1
        if prev is not None:
            prev.attempts = next_.attempts

    recorder = Recorder(store)
    recorder.record("a", running(), add_attempt)
    recorder.record("a", running(), add_attempt)
    assert store.get("a").attempts == 2


def test_members_that_would_be_dropped_are_news(storage, store, clock):
    known = running()
    known.extra["engine"] = "celery"
    store.save("a", known)
    Recorder(store).record("a", running())
    assert store.get("a").extra == {}


def test_a_record_from_the_future_says_nothing_about_the_last_second(storage, store, clock):
    recorder = Recorder(store)
    recorder.record("a", running())
    clock.now -= timedelta(seconds=5)  # another worker's clock
    recorder.record("a", running())
    assert storage.calls["write"] == 2


def test_a_lease_that_has_hardly_begun_is_not_worth_a_write(storage, store, clock):
    recorder = Recorder(store, lease=60)
    recorder.begin("a", running())
    clock.now += timedelta(seconds=0.9)
    recorder.record("a", running())
    assert storage.calls["write"] == 1
    assert recorder.renew("a") is True  # asked for in so many words
    recorder.record("a", ComicStatus(state=State.FAILED))  # and it is still ours
    assert store.get("a").state == State.FAILED


def test_a_short_lease_is_renewed_all_the_same(storage, store, clock):
    recorder = Recorder(store, lease=1.5)
    recorder.begin("a", running())
    clock.now += timedelta(seconds=0.9)
    recorder.record("a", running())
    assert store.get("a").lease_expires_at == clock.now + timedelta(seconds=1.5)


def test_each_begin_is_sent(storage, store):
    recorder = Recorder(store)
    recorder.begin("a", running())
    recorder.begin("a", running())
    assert storage.calls["write"] == 2


def test_other_storages_get_every_record(clock):
    storage = DictStorage()
    recorder = Recorder(StatusStore(storage, ComicStatus, clock=clock))
    recorder.record("a", running())
    recorder.record("a", running())
    assert storage.calls["write"] == 2
