from __future__ import annotations

import logging
import threading

import pytest
from django.core.cache.backends.locmem import LocMemCache

from django_jobkit.exceptions import KeysNotListable
from django_jobkit.jobs import guard as guard_module
from django_jobkit.jobs.guard import CacheAway, GuardedCache

from .fake_cache import DictCache, FakeTime, ListableCache


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def cache(time: FakeTime) -> DictCache:
    return DictCache(time)


@pytest.fixture
def guard(cache: DictCache, time: FakeTime) -> GuardedCache:
    return GuardedCache(cache, retry_after=5.0, clock=time)


def lose(guard: GuardedCache, cache: DictCache) -> None:
    """Let the guard notice that the cache refuses connections."""
    cache.refuses = True
    with pytest.raises(CacheAway):
        guard.get("anything")


def test_a_working_cache_is_asked_once_per_call(guard: GuardedCache, cache: DictCache) -> None:
    guard.set("a", 1, 60)
    guard.set_many({"b": 2, "c": 3}, 60)
    assert guard.get("a") == 1
    assert guard.get("nothing", "default") == "default"
    assert guard.get_many(["a", "b", "nothing"]) == {"a": 1, "b": 2}
    assert guard.add("a", 9, 60) is False
    assert guard.add("new", 9, 60) is True
    guard.touch("a", 90)
    guard.delete("a")
    asked = [method for method, _ in cache.calls]
    assert asked == ["set", "set_many", "get", "get", "get_many", "add", "add", "touch", "delete"]


def test_nothing_is_asked_for_no_keys(guard: GuardedCache, cache: DictCache) -> None:
    guard.set_many({}, 60)
    assert guard.get_many([]) == {}
    assert cache.calls == []


def test_after_a_failure_the_cache_is_left_alone_for_retry_after_seconds(
    guard: GuardedCache, cache: DictCache, time: FakeTime
) -> None:
    lose(guard, cache)
    asked = len(cache.calls)
    time.now += 4.9
    for call in (lambda: guard.get("a"), lambda: guard.get_many(["a"]), lambda: guard.add("a", 1, 60)):
        with pytest.raises(CacheAway):
            call()
    guard.set("a", 1, 60)
    guard.set_many({"a": 1}, 60)
    guard.delete("a")
    assert len(cache.calls) == asked

    cache.refuses = False
    time.now += 0.2
    assert guard.add("a", 1, 60) is True


@pytest.mark.parametrize("hanging", [0.0, 3.0])
def test_a_failed_try_starts_the_waiting_anew(
    guard: GuardedCache, cache: DictCache, time: FakeTime, hanging: float
) -> None:
    lose(guard, cache)
    cache.hangs = hanging
    time.now += 5
    with pytest.raises(CacheAway):
        guard.get("a")
    asked = len(cache.calls)
    time.now += 4.9
    with pytest.raises(CacheAway):
        guard.get("a")
    assert len(cache.calls) == asked


def test_one_caller_tries_while_the_others_go_on_without(
    guard: GuardedCache, cache: DictCache, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(guard, cache)
    cache.refuses = False
    time.now += 5
    trying, answer = threading.Event(), threading.Event()
    add = cache.add

    def slow_add(*args: object, **kwargs: object) -> object:
        trying.set()
        assert answer.wait(10)
        return add(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "add", slow_add)
    found: list[object] = []
    probe = threading.Thread(target=lambda: found.append(guard.get("a", "miss")))
    probe.start()
    assert trying.wait(10)
    with pytest.raises(CacheAway):
        guard.get("a")
    answer.set()
    probe.join(10)
    assert found == ["miss"]
    assert guard.get("a", "miss") == "miss"


def test_an_outage_is_logged_once_and_so_is_its_end(
    guard: GuardedCache, cache: DictCache, time: FakeTime, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="django_jobkit.cache")
    lose(guard, cache)
    for _ in range(5):
        time.now += 5
        with pytest.raises(CacheAway):
            guard.get("a")
    cache.refuses = False
    time.now += 5
    guard.get("a")
    guard.get("a")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "The cache failed at get after 0.0 s (ConnectionError: no connection)."
            " Going on without it; trying again every 5 s.",
        ),
        ("INFO", "The cache answers again."),
    ]
    lose(guard, cache)
    assert len(caplog.records) == 3


def test_a_straggler_of_an_old_outage_says_nothing_about_the_present(
    cache: DictCache, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = GuardedCache(cache, clock=time)
    asked, fail = threading.Event(), threading.Event()
    get_many = cache.get_many

    def hanging_get_many(keys: list[str]) -> dict[str, object]:
        asked.set()
        assert fail.wait(10)
        raise TimeoutError("at last")

    monkeypatch.setattr(cache, "get_many", hanging_get_many)
    gone: list[str] = []

    def ask() -> None:
        try:
            guard.get_many(["a"])
        except CacheAway:
            gone.append("away")

    straggler = threading.Thread(target=ask)
    straggler.start()
    assert asked.wait(10)
    lose(guard, cache)
    cache.refuses = False
    time.now += 5
    guard.get("a")
    fail.set()
    straggler.join(10)
    assert gone == ["away"]
    monkeypatch.setattr(cache, "get_many", get_many)
    assert guard.get_many(["a"]) == {}


@pytest.mark.parametrize("change", ["set", "set_many", "delete", "replace"])
def test_what_could_not_be_changed_is_deleted_before_anything_else_is_asked(
    guard: GuardedCache, cache: DictCache, time: FakeTime, change: str
) -> None:
    guard.set_many({"a": "old", "b": "kept"}, 600)
    lose(guard, cache)
    if change == "set":
        guard.set("a", "new", 600)
    elif change == "set_many":
        guard.set_many({"a": "new"}, 600)
    elif change == "delete":
        guard.delete("a")
    else:
        guard.replace("a", "new")
    cache.refuses = False
    cache.calls.clear()
    time.now += 5
    assert guard.get("a") is None
    assert guard.get("b") == "kept"
    assert cache.calls == [("add", "jobkit:probe"), ("delete_many", ["a"]), ("get", "a"), ("get", "b")]


def test_a_change_that_fails_itself_is_owed_too(guard: GuardedCache, cache: DictCache, time: FakeTime) -> None:
    guard.set("a", "old", 600)
    cache.refuses = True
    guard.delete("a")
    cache.refuses = False
    time.now += 5
    assert guard.get("a") is None


def test_what_comes_to_be_owed_while_debts_are_paid_is_paid_as_well(
    guard: GuardedCache, cache: DictCache, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard.set_many({"a": "old", "b": "old"}, 600)
    lose(guard, cache)
    guard.delete("a")
    cache.refuses = False
    time.now += 5
    delete_many = cache.delete_many

    def interrupted(keys: list[str]) -> None:
        delete_many(keys)
        monkeypatch.setattr(cache, "delete_many", delete_many)
        guard.delete("b")  # by another thread: the cache isn't back for it

    monkeypatch.setattr(cache, "delete_many", interrupted)
    with pytest.raises(CacheAway, match="not yet cleaned up"):
        guard.get("b")
    assert guard.get("b") is None


def test_many_debts_are_paid_in_portions_and_the_oldest_are_let_go(
    guard: GuardedCache, cache: DictCache, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_module, "_MOST_OWED", 2500)
    lose(guard, cache)
    for number in range(3000):
        guard.delete(f"key-{number}")
    cache.refuses = False
    cache.calls.clear()
    time.now += 5
    guard.get("a")
    portions = [keys for method, keys in cache.calls if method == "delete_many" and isinstance(keys, list)]
    assert [len(portion) for portion in portions] == [1000, 1000, 500]
    assert portions[0][0] == "key-500"


def test_replacing_is_risked_early_after_a_quick_failure(guard: GuardedCache, cache: DictCache) -> None:
    lose(guard, cache)
    cache.refuses = False
    guard.replace("a", "new")
    assert cache.get("a") == "new"
    assert guard.get("a") == "new"


def test_replacing_waits_like_everything_else_after_a_hanging_failure(
    guard: GuardedCache, cache: DictCache, time: FakeTime
) -> None:
    cache.hangs = 1
    with pytest.raises(CacheAway):
        guard.get("a")
    asked = len(cache.calls)
    guard.replace("a", "new")
    assert len(cache.calls) == asked


class TestFailuresThatTheCacheHides:
    @pytest.fixture(autouse=True)
    def _hides(self, cache: DictCache) -> None:
        cache.hides_failures = True

    def test_add_that_answers_none(self, guard: GuardedCache, cache: DictCache) -> None:
        cache.refuses = True
        with pytest.raises(CacheAway):
            guard.add("a", 1, 60)

    def test_delete_that_answers_none(self, guard: GuardedCache, cache: DictCache, time: FakeTime) -> None:
        guard.set("a", "old", 600)
        cache.refuses = True
        guard.delete("a")
        cache.refuses = False
        with pytest.raises(CacheAway):
            guard.get("a")
        time.now += 5
        assert guard.get("a") is None

    def test_replace_whose_value_did_not_arrive(self, guard: GuardedCache, cache: DictCache) -> None:
        guard.set("a", "old", 600)
        cache.refuses = True
        guard.replace("a", "new")
        cache.refuses = False
        assert guard.get("a") is None

    @pytest.mark.parametrize("method", ["get", "get_many", "replace"])
    def test_a_miss_that_took_as_long_as_a_timeout(
        self, guard: GuardedCache, cache: DictCache, caplog: pytest.LogCaptureFixture, method: str
    ) -> None:
        cache.hangs = 5
        if method == "replace":
            guard.replace("a", "new")
        else:
            with pytest.raises(CacheAway):
                guard.get("a") if method == "get" else guard.get_many(["a"])
        assert len(cache.calls) == 1
        assert "answered with nothing, and too slowly for that" in caplog.text

    def test_its_return_is_not_announced_before_it_is_back(
        self, guard: GuardedCache, cache: DictCache, time: FakeTime, caplog: pytest.LogCaptureFixture
    ) -> None:
        cache.refuses = True
        with pytest.raises(CacheAway):
            guard.add("a", 1, 60)
        time.now += 5
        with pytest.raises(CacheAway):
            guard.get("a")
        assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_cache_whose_delete_always_answers_none_is_no_failing_cache(
    guard: GuardedCache, cache: DictCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = cache.delete
    monkeypatch.setattr(cache, "delete", lambda key: delete(key) and None)
    guard.set("a", 1, 60)
    guard.delete("a")
    assert guard.get("a") is None


def test_no_cache_is_away_and_nobody_is_told(caplog: pytest.LogCaptureFixture) -> None:
    guard = GuardedCache(None)
    with pytest.raises(CacheAway):
        guard.get("a")
    guard.set("a", 1, 60)
    guard.replace("a", "b")
    guard.delete("a")
    assert guard.keys("a") == []
    assert caplog.records == []


def test_keys_are_listed_where_the_cache_can(time: FakeTime) -> None:
    guard = GuardedCache(ListableCache(time), clock=time)
    guard.set_many({"x:1": 1, "x:2": 2, "y:1": 3}, 60)
    assert sorted(guard.keys("x:")) == ["x:1", "x:2"]


def test_a_cache_that_can_not_list_keys_says_which_can() -> None:
    with pytest.raises(KeysNotListable, match=r"Use django-redis \(django_redis.cache.RedisCache\) to count entries"):
        GuardedCache(LocMemCache("guard", {})).keys("x:")


def test_keys_of_a_failing_cache_can_not_be_listed(time: FakeTime) -> None:
    cache = ListableCache(time)
    cache.refuses = True
    with pytest.raises(KeysNotListable, match="try again later"):
        GuardedCache(cache, clock=time).keys("x:")
