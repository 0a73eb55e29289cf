from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.cache import cache as default_cache
from django.core.cache.backends.base import memcache_key_warnings
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache

from django_jobkit.exceptions import KeysNotListable, ListTimeout
from django_jobkit.jobs.caching import IDListCache, TTLCache
from django_jobkit.jobs.guard import GuardedCache

from .fake_cache import DictCache, FakeTime, ListableCache

SOON = 20.0  # seconds that no test needs


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def cache(time: FakeTime) -> ListableCache:
    return ListableCache(time)


class Scan:
    """A `collect` over a list that stands for the storage; counts its calls."""

    def __init__(self, *job_ids: str) -> None:
        self.storage = list(job_ids)
        self.calls = 0

    def __call__(self) -> Iterable[str]:
        self.calls += 1
        return iter(list(self.storage))


def never() -> list[str]:
    raise AssertionError("this caller must not scan")


def process(cache: DictCache, **options: object) -> IDListCache:
    """A cache of lists as another process would have it: nothing in common but the cache."""
    clock = cache.time
    guard = GuardedCache(cache, clock=clock)
    return IDListCache(guard, clock=clock, sleep=clock.sleep, **options)  # type: ignore[arg-type]


@contextlib.contextmanager
def stuck_scan(lists: IDListCache) -> Iterator[None]:
    """A scan under way that doesn't end before the block does."""
    begun, release = threading.Event(), threading.Event()

    def collect() -> list[str]:
        begun.set()
        assert release.wait(SOON)
        return ["late"]

    scanner = threading.Thread(target=lists.load, args=("jobs", collect))
    scanner.start()
    assert begun.wait(SOON)
    try:
        yield
    finally:
        release.set()
        scanner.join(SOON)


class TestTTLCache:
    @pytest.fixture
    def statuses(self, cache: DictCache, time: FakeTime) -> TTLCache[object]:
        return TTLCache(GuardedCache(cache, clock=time))

    def test_holds_what_was_set_until_it_is_deleted(self, statuses: TTLCache[object]) -> None:
        assert statuses.get("job-1") is None
        assert statuses.get("job-1", "default") == "default"
        statuses.set("job-1", b"value")
        assert statuses.get("job-1") == b"value"
        statuses.delete("job-1")
        assert statuses.get("job-1") is None
        statuses.delete("job-1")

    @pytest.mark.parametrize("value", [None, "", 0, b"", []])
    def test_empty_values_are_values(self, statuses: TTLCache[object], value: object) -> None:
        statuses.set("job-1", value)
        assert statuses.get("job-1", "default") == value
        assert statuses.get_many(["job-1"]) == {"job-1": value}

    @pytest.mark.parametrize("asked", ["job-1", "dir/job-1", "../../job-1", " job-1 ", "job-1/"])
    def test_texts_that_name_one_job_are_one_entry(self, statuses: TTLCache[object], asked: str) -> None:
        statuses.set("a/job-1", "value")
        assert statuses.get(asked) == "value"
        assert statuses.count() == 1
        statuses.delete(asked)
        assert statuses.get("job-1") is None

    @pytest.mark.parametrize("text", ["日本語", "", "..", "a b", "a\nb", "\0", "\ud800", "x" * 500, "a:b", "~", "*"])
    def test_a_text_that_is_no_id_is_an_entry_of_its_own(self, statuses: TTLCache[object], text: str) -> None:
        statuses.set(text, "value")
        assert statuses.get(text) == "value"
        assert statuses.get(text + "?") is None
        assert statuses.get_many([text, "a"]) == {text: "value"}
        assert statuses.count() == 1

    def test_many_are_read_in_one_command_and_answered_as_they_were_asked(
        self, statuses: TTLCache[object], cache: DictCache
    ) -> None:
        statuses.set_many({"a": 1, "dir/b": 2})
        assert statuses.get_many(["a", "dir/a", "b", "missing", "b"]) == {"a": 1, "dir/a": 1, "b": 2}
        assert [method for method, _ in cache.calls] == ["set_many", "get_many"]

    def test_many_may_be_none_or_an_iterator(self, statuses: TTLCache[object], cache: DictCache) -> None:
        statuses.set_many({})
        assert statuses.get_many([]) == {}
        assert cache.calls == []
        statuses.set("a", 1)
        assert statuses.get_many(iter(["a"])) == {"a": 1}

    @pytest.mark.parametrize(
        ("ttl", "own", "lives"),
        [
            (30, None, 30),
            (30, 90, 90),
            (30, 0, 30),
            (30, -1, 30),
            (0.5, None, 0.5),
            (0, None, 600),  # not "for ever", nor "not at all": the Go reference's rule
            (-1, None, 600),
            (None, None, 600),
        ],
    )
    @pytest.mark.parametrize("many", [False, True])
    def test_a_value_lives_as_long_as_its_ttl(
        self, cache: DictCache, time: FakeTime, ttl: float | None, own: float | None, lives: float, many: bool
    ) -> None:
        statuses = TTLCache[str](GuardedCache(cache, clock=time), ttl)
        if many:
            statuses.set_many({"job-1": "value"}, own)
        else:
            statuses.set("job-1", "value", own)
        time.now += lives - 0.1
        assert statuses.get("job-1") == "value"
        time.now += 0.2
        assert statuses.get("job-1") is None, "reading must not have prolonged it"

    def test_namespaces_are_apart(self, cache: DictCache) -> None:
        comics, films = TTLCache[str](cache, namespace="comics"), TTLCache[str](cache, namespace="comics:films")
        comics.set("a", "comic")
        assert films.get("a") is None
        films.set("a", "film")
        assert comics.get("a") == "comic"
        assert (comics.count(), films.count()) == (1, 1)

    def test_without_a_cache_everything_is_a_miss(self) -> None:
        statuses = TTLCache[str](None)
        statuses.set("a", "value")
        statuses.set_many({"a": "value"})
        statuses.delete("a")
        assert statuses.get("a") is None
        assert statuses.get_many(["a"]) == {}
        assert statuses.count() == 0

    def test_a_failing_cache_is_a_miss_and_forgets_what_was_changed_meanwhile(
        self, statuses: TTLCache[object], cache: DictCache, time: FakeTime
    ) -> None:
        statuses.set_many({"deleted": 1, "changed": 1, "kept": 1})
        cache.refuses = True
        assert statuses.get("kept") is None
        assert statuses.get_many(["kept"]) == {}
        statuses.delete("deleted")
        statuses.set("changed", 2)
        cache.refuses = False
        time.now += 5
        assert statuses.get_many(["deleted", "changed", "kept"]) == {"kept": 1}

    def test_the_local_memory_cache_can_not_count(self) -> None:
        with pytest.raises(KeysNotListable, match="django-redis"):
            TTLCache(LocMemCache("ttl", {})).count()

    def test_closing_is_harmless_again_and_at_once(self, statuses: TTLCache[object]) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: statuses.close(), range(16)))


class TestIDListCache:
    @pytest.fixture
    def lists(self, cache: DictCache) -> IDListCache:
        return process(cache)

    def test_scans_once(self, lists: IDListCache) -> None:
        scan = Scan("job-b", "job-a", "job-b")
        assert [lists.load("jobs", scan) for _ in range(3)] == [["job-b", "job-a", "job-b"]] * 3
        assert scan.calls == 1

    def test_a_warm_list_takes_two_commands(self, lists: IDListCache, cache: DictCache) -> None:
        lists.load("jobs", Scan("a"))
        cache.calls.clear()
        lists.load("jobs", never)
        assert [method for method, _ in cache.calls] == ["get_many", "get"]

    def test_nothing_found_is_a_result(self, lists: IDListCache) -> None:
        assert lists.load("jobs", Scan()) == []
        assert lists.load("jobs", never) == []

    def test_every_caller_may_change_its_list(self, lists: IDListCache) -> None:
        lists.load("jobs", Scan("job-b", "job-a")).sort()
        lists.load("jobs", never).clear()
        assert lists.load("jobs", never) == ["job-b", "job-a"]

    @pytest.mark.parametrize(("ttl", "lives"), [(30, 30), (0, 60), (-5, 60), (None, 60)])
    def test_a_list_lives_as_long_as_its_ttl(
        self, cache: DictCache, time: FakeTime, ttl: float | None, lives: float
    ) -> None:
        lists = process(cache, ttl=ttl)
        lists.load("jobs", Scan("a"))
        time.now += lives - 0.1
        assert lists.load("jobs", Scan("a", "b")) == ["a"]
        time.now += 0.2
        assert lists.load("jobs", Scan("a", "b")) == ["a", "b"], "reading must not have prolonged it"

    def test_invalidated_it_is_scanned_anew_in_every_process(self, lists: IDListCache, cache: DictCache) -> None:
        lists.load("jobs", Scan("a", "b"))
        lists.invalidate("jobs")
        assert process(cache).load("jobs", Scan("a")) == ["a"]
        assert lists.load("jobs", never) == ["a"]

    def test_a_scan_that_began_before_does_not_bring_back_what_was_deleted(
        self, lists: IDListCache, cache: DictCache
    ) -> None:
        def interrupted() -> Iterator[str]:
            yield "deleted"
            process(cache).invalidate("jobs")
            yield "a"

        assert lists.load("jobs", interrupted) == ["deleted", "a"], "who asked before the deletion may still see it"
        assert lists.load("jobs", Scan("a")) == ["a"]
        assert process(cache).load("jobs", never) == ["a"]

    def test_an_announced_id_is_listed_at_once_in_every_process_without_a_scan(
        self, lists: IDListCache, cache: DictCache
    ) -> None:
        lists.load("jobs", Scan("a"))
        lists.announce("jobs", "b")
        lists.announce("jobs", "c")
        for each in (lists, process(cache)):
            assert each.load("jobs", never) == ["a", "b", "c"]

    def test_news_take_one_command_more_and_no_news_none(self, lists: IDListCache, cache: DictCache) -> None:
        lists.announce("jobs", "a")
        lists.load("jobs", Scan("a"))
        cache.calls.clear()
        lists.load("jobs", never)
        assert [method for method, _ in cache.calls] == ["get_many", "get"]
        lists.announce("jobs", "b")
        cache.calls.clear()
        lists.load("jobs", never)
        assert [method for method, _ in cache.calls] == ["get_many", "get", "get_many"]

    def test_an_id_announced_while_it_is_scanned_is_listed_once(self, lists: IDListCache) -> None:
        def collect() -> list[str]:
            lists.announce("jobs", "b")
            lists.announce("jobs", "c")
            return ["a", "b"]  # the scan has come past "b", and not yet past "c"

        lists.load("jobs", collect)
        assert lists.load("jobs", never) == ["a", "b", "c"]

    def test_a_job_deleted_after_it_was_announced_does_not_come_back(self, lists: IDListCache) -> None:
        scan = Scan("a")
        lists.load("jobs", scan)
        lists.announce("jobs", "b")
        lists.invalidate("jobs")
        assert lists.load("jobs", scan) == ["a"]
        assert lists.load("jobs", never) == ["a"]

    def test_announcements_outlive_the_list(self, lists: IDListCache, cache: DictCache, time: FakeTime) -> None:
        lists.load("jobs", Scan())
        lists.announce("jobs", "b")
        time.now += 59
        assert lists.load("jobs", never) == ["b"]

    def test_a_lost_count_hides_news_until_the_list_ends_and_no_longer(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        for n in range(3):
            lists.announce("jobs", f"old{n}")
        lists.load("jobs", Scan("a"))
        cache.delete("jobkit:ids:c:jobs")
        lists.announce("jobs", "b")
        assert lists.load("jobs", never) == ["a"]
        time.now += 60
        assert lists.load("jobs", Scan("a", "b")) == ["a", "b"]
        lists.announce("jobs", "c")
        assert lists.load("jobs", never) == ["a", "b", "c"]

    def test_more_news_than_are_read_at_once_show_the_latest(self, lists: IDListCache) -> None:
        lists.load("jobs", Scan())
        for n in range(2003):
            lists.announce("jobs", str(n))
        assert lists.load("jobs", never) == [str(n) for n in range(3, 2003)]

    def test_what_cannot_be_announced_has_the_list_scanned_anew(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        lists.load("jobs", Scan("a"))
        cache.refuses = True
        lists.announce("jobs", "b")
        cache.refuses = False
        time.now += 6
        assert lists.load("jobs", Scan("a", "b")) == ["a", "b"]

    def test_lists_of_other_names_and_namespaces_stay(self, lists: IDListCache, cache: DictCache) -> None:
        lists.load("jobs", Scan("a"))
        lists.load("jobs:e", Scan("b"))
        process(cache, namespace="other").load("jobs", Scan("c"))
        lists.invalidate("jobs")
        assert lists.load("jobs:e", never) == ["b"]
        assert process(cache, namespace="other").load("jobs", never) == ["c"]

    def test_superseded_lists_do_not_pile_up(self, lists: IDListCache, cache: DictCache) -> None:
        """A million IDs are 37 MB; deleting jobs one by one must not fill the cache with copies of them."""
        for _ in range(20):
            lists.load("jobs", Scan("a"))
            lists.invalidate("jobs")
        assert len(cache.held()) == 1

    def test_a_list_superseded_while_it_was_scanned_is_kept_for_those_who_wait_only(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        def interrupted() -> list[str]:
            process(cache).invalidate("jobs")
            return ["a"]

        lists.load("jobs", interrupted)
        time.now += 5.1
        assert len(cache.held()) == 1

    def test_while_another_scans_it_waits_for_the_result(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        begun, release = threading.Event(), threading.Event()

        def collect() -> list[str]:
            begun.set()
            assert release.wait(SOON)
            return ["a"]

        scanner = threading.Thread(target=lists.load, args=("jobs", collect))
        scanner.start()
        assert begun.wait(SOON)

        def finish() -> None:
            release.set()
            scanner.join(SOON)

        time.during_sleep = finish
        assert process(cache).load("jobs", never) == ["a"]
        assert len(time.slept) == 1

    def test_who_takes_the_lease_when_another_has_just_finished_takes_its_result(
        self, lists: IDListCache, cache: DictCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add = cache.add

        def overtaken(key: str, value: object, timeout: float | None = None) -> bool | None:
            if len(cache.held()) == 1:  # the epoch is there, the lease is asked for
                monkeypatch.setattr(cache, "add", add)
                process(cache).load("jobs", Scan("a"))
            return add(key, value, timeout=timeout)

        monkeypatch.setattr(cache, "add", overtaken)
        assert lists.load("jobs", never) == ["a"]
        assert len(cache.held()) == 2, "the epoch and the list, no lease"

    def test_its_pauses_grow_and_end_with_its_timeout(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        def collect() -> list[str]:
            with pytest.raises(ListTimeout, match="'jobs'"):
                process(cache).load("jobs", never, timeout=3)
            return ["a"]

        assert lists.load("jobs", collect) == ["a"]
        assert sum(time.slept) == pytest.approx(3)
        assert max(time.slept[:3]) < 0.05
        assert max(time.slept) <= 0.25
        assert len(time.slept) < 30
        assert lists.load("jobs", never) == ["a"], "the one that gave up took nobody along"

    def test_a_caller_that_says_nothing_waits_as_long_as_wait(self, cache: DictCache, time: FakeTime) -> None:
        def collect() -> list[str]:
            with pytest.raises(ListTimeout):
                process(cache, wait=1.5).load("jobs", never)
            with pytest.raises(ListTimeout):
                process(cache).load("jobs", never, timeout=0)
            return []

        process(cache).load("jobs", collect)
        assert sum(time.slept) == pytest.approx(1.5)

    def test_waiting_costs_one_command_per_pause(self, lists: IDListCache, cache: DictCache, time: FakeTime) -> None:
        def collect() -> list[str]:
            cache.calls.clear()
            with pytest.raises(ListTimeout):
                process(cache).load("jobs", never, timeout=3)
            asked = [method for method, _ in cache.calls]
            assert asked == ["get_many", "get", "add"] + ["get_many"] * len(time.slept)
            return []

        lists.load("jobs", collect)

    def test_a_scanner_that_died_costs_the_others_the_lease(self, cache: DictCache, time: FakeTime) -> None:
        """Its process is killed in the middle: here, a thread that doesn't go on."""
        with stuck_scan(process(cache, lease=10)):
            assert process(cache, lease=10).load("jobs", Scan("a")) == ["a"]
        assert 10 <= sum(time.slept) <= 10.3

    def test_a_long_scan_that_shows_signs_of_life_keeps_its_lease(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        def long_scan() -> Iterator[str]:
            for page in range(6):
                yield from (f"job-{page}-{number}" for number in range(1000))
                time.now += 6
                with pytest.raises(ListTimeout):
                    process(cache).load("jobs", never, timeout=0)

        assert len(lists.load("jobs", long_scan)) == 6000
        assert len(lists.load("jobs", never)) == 6000

    def test_who_lost_its_lease_does_not_overwrite_the_newer_list(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        def paused() -> Iterator[str]:
            yield "old"
            time.now += 11
            assert process(cache).load("jobs", Scan("new")) == ["new"]

        assert lists.load("jobs", paused) == ["old"]
        assert lists.load("jobs", never) == ["new"]

    def test_who_lost_its_lease_does_not_end_that_of_its_successor(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        with contextlib.ExitStack() as stack:

            def paused() -> Iterator[str]:
                yield "old"
                time.now += 11
                stack.enter_context(stuck_scan(process(cache)))

            lists.load("jobs", paused)
            with pytest.raises(ListTimeout):
                process(cache).load("jobs", never, timeout=5)

    @pytest.mark.parametrize("error", [OSError("no network"), KeyboardInterrupt(), SystemExit(1)])
    def test_an_error_goes_to_its_caller_and_is_not_kept(
        self, lists: IDListCache, cache: DictCache, time: FakeTime, error: BaseException
    ) -> None:
        def failing() -> Iterator[str]:
            yield "a"
            raise error

        with pytest.raises(type(error)) as caught:
            lists.load("jobs", failing)
        assert caught.value is error
        assert process(cache).load("jobs", Scan("b")) == ["b"]
        assert time.slept == [], "the lease was given back"

    def test_what_is_not_text_is_refused_and_not_kept(self, lists: IDListCache, time: FakeTime) -> None:
        with pytest.raises(TypeError):
            lists.load("jobs", lambda: [b"a"])  # type: ignore[list-item]
        assert lists.load("jobs", Scan("b")) == ["b"]
        assert time.slept == []

    def test_after_another_scan_failed_a_waiting_caller_scans(
        self, lists: IDListCache, cache: DictCache, time: FakeTime
    ) -> None:
        begun, release = threading.Event(), threading.Event()
        errors: list[BaseException] = []

        def collect() -> list[str]:
            begun.set()
            assert release.wait(SOON)
            raise OSError("no network")

        def scan() -> None:
            try:
                lists.load("jobs", collect)
            except OSError as error:
                errors.append(error)

        scanner = threading.Thread(target=scan)
        scanner.start()
        assert begun.wait(SOON)

        def finish() -> None:
            release.set()
            scanner.join(SOON)

        time.during_sleep = finish
        assert process(cache).load("jobs", Scan("a")) == ["a"]
        assert len(errors) == 1

    def test_what_another_version_wrote_is_scanned_anew(self, lists: IDListCache, cache: DictCache) -> None:
        lists.load("jobs", Scan("a"))
        cache.spoil("?\nold")
        assert lists.load("jobs", Scan("b")) == ["b"]
        assert lists.load("jobs", never) == ["b"]

    def test_many_threads_scan_once(self) -> None:
        lists = IDListCache(LocMemCache("threads", {}))
        begun, release = threading.Event(), threading.Event()
        calls = itertools.count()

        def collect() -> list[str]:
            next(calls)
            begun.set()
            assert release.wait(SOON)
            return ["job-b", "job-a"]

        with ThreadPoolExecutor(20) as pool:
            futures = [pool.submit(lists.load, "jobs", collect) for _ in range(20)]
            assert begun.wait(SOON)
            release.set()
            results = [future.result(SOON) for future in futures]
        assert results == [["job-b", "job-a"]] * 20
        assert next(calls) == 1
        assert len({id(result) for result in results}) == 20

    def test_counts_the_lists_that_are_valid(self, lists: IDListCache, cache: DictCache, time: FakeTime) -> None:
        assert lists.count() == 0
        lists.load("jobs", Scan("a"))
        lists.load("comics/jobs", Scan("a"))
        process(cache, namespace="other").load("jobs", Scan("a"))
        assert lists.count() == 2
        lists.invalidate("jobs")
        assert lists.count() == 1
        time.now += 61
        assert lists.count() == 0

    def test_the_local_memory_cache_can_not_count(self) -> None:
        with pytest.raises(KeysNotListable, match="django-redis"):
            IDListCache(LocMemCache("count", {})).count()


class TestIDListCacheWithoutOrWithABadCache:
    def test_without_a_cache_every_call_scans(self) -> None:
        lists, scan = IDListCache(None), Scan("a")
        assert lists.load("jobs", scan) == ["a"]
        lists.invalidate("jobs")
        assert lists.load("jobs", scan) == ["a"]
        assert scan.calls == 2
        assert lists.count() == 0

    def test_a_cache_that_keeps_nothing_makes_every_call_scan(self, caplog: pytest.LogCaptureFixture) -> None:
        lists, scan = IDListCache(DummyCache("dummy", {})), Scan("a")
        for _ in range(3):
            assert lists.load("jobs", scan) == ["a"]
            lists.invalidate("jobs")
        assert scan.calls == 3
        assert caplog.records == []

    def test_a_cache_that_hides_even_what_add_could_not_do(
        self, cache: DictCache, monkeypatch: pytest.MonkeyPatch, time: FakeTime
    ) -> None:
        """As memcached clients do that are told to ignore errors."""
        cache.refuses = cache.hides_failures = True
        monkeypatch.setattr(cache, "add", lambda *args, **kwargs: False)
        assert process(cache).load("jobs", Scan("a")) == ["a"]
        assert sum(time.slept) < 0.5

    def test_a_cache_that_drops_entries_costs_scans_only(self) -> None:
        lists = IDListCache(LocMemCache("small", {"OPTIONS": {"MAX_ENTRIES": 2}}))
        for round_ in range(50):
            expected = [f"job-{round_}"]
            lists.invalidate("jobs")
            assert lists.load("jobs", Scan(*expected)) == expected
            lists.load("other", Scan("x"))
            assert lists.load("jobs", Scan(*expected)) == expected

    @pytest.mark.parametrize("hidden", [False, True])
    @pytest.mark.parametrize("hangs", [0.0, 3.0])
    def test_a_failing_cache_costs_its_timeout_once_and_then_some_scans(
        self, cache: DictCache, time: FakeTime, hidden: bool, hangs: float, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, logger="django_jobkit.cache")
        lists, scan = process(cache), Scan("a")
        lists.load("jobs", scan)
        cache.refuses, cache.hangs, cache.hides_failures = not hangs, hangs, hidden
        begun = time.now
        for _ in range(10):
            assert lists.load("jobs", scan) == ["a"]
        assert scan.calls == 11
        assert time.now - begun == hangs
        cache.refuses, cache.hangs = False, 0.0
        time.now += 5
        assert lists.load("jobs", never) == ["a"]
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]

    @pytest.mark.parametrize("hidden", [False, True])
    @pytest.mark.parametrize("hangs", [0.0, 0.5, 3.0])
    @pytest.mark.parametrize("noticed", [False, True])
    def test_what_is_invalidated_while_the_cache_fails_does_not_come_back_with_it(
        self, cache: DictCache, time: FakeTime, hidden: bool, hangs: float, noticed: bool
    ) -> None:
        lists = process(cache)
        lists.load("jobs", Scan("a", "deleted"))
        cache.refuses, cache.hangs, cache.hides_failures = not hangs, hangs, hidden
        if noticed:
            lists.load("jobs", Scan("a", "deleted"))
        lists.invalidate("jobs")
        assert lists.load("jobs", Scan("a")) == ["a"]
        cache.refuses, cache.hangs = False, 0.0
        assert lists.load("jobs", Scan("a")) == ["a"]
        time.now += 5
        assert lists.load("jobs", Scan("a")) == ["a"]
        assert process(cache).load("jobs", never) == ["a"]

    def test_other_processes_hear_of_it_at_once_when_a_refusing_cache_is_back(
        self, cache: DictCache, time: FakeTime
    ) -> None:
        """Not only when this process next tries the cache for a page of its own."""
        lists = process(cache)
        cache.refuses = True
        lists.load("jobs", Scan("a", "deleted"))
        cache.refuses = False
        process(cache).load("jobs", Scan("a", "deleted"))
        lists.invalidate("jobs")
        assert process(cache).load("jobs", Scan("a")) == ["a"]

    def test_a_cache_that_fails_during_the_scan_costs_nothing(self, cache: DictCache, time: FakeTime) -> None:
        def collect() -> list[str]:
            cache.refuses = True
            return ["a"]

        lists = process(cache)
        assert lists.load("jobs", collect) == ["a"]
        cache.refuses = False
        time.now += 5
        assert lists.load("jobs", Scan("b")) == ["b"]
        assert time.slept == [], "its lease was taken back"

    def test_a_cache_that_fails_while_waiting_ends_the_waiting(self, cache: DictCache, time: FakeTime) -> None:
        with stuck_scan(process(cache)):
            time.during_sleep = lambda: setattr(cache, "refuses", True)
            assert process(cache).load("jobs", Scan("a")) == ["a"]
            assert len(time.slept) == 1
            cache.refuses = False

    def test_an_error_of_the_scan_is_not_shown_as_one_of_the_cache(self, cache: DictCache) -> None:
        def failing() -> list[str]:
            raise OSError("no network")

        cache.refuses = True
        with pytest.raises(OSError, match="no network") as caught:
            process(cache).load("jobs", failing)
        assert caught.value.__context__ is None


def test_both_caches_of_a_kit_share_what_they_know_of_the_cache(cache: DictCache, time: FakeTime) -> None:
    guard = GuardedCache(cache, clock=time)
    lists, statuses = IDListCache(guard, clock=time, sleep=time.sleep), TTLCache[str](guard)
    cache.refuses = True
    lists.load("jobs", Scan("a"))
    asked = len(cache.calls)
    assert statuses.get("a") is None
    assert len(cache.calls) == asked


def test_djangos_lazy_cache_will_do() -> None:
    """The same caches from every thread, though Django hands each thread a cache object of its own."""
    lists, statuses = IDListCache(default_cache, namespace="lazy"), TTLCache[str](default_cache, namespace="lazy")
    statuses.set("a", "value")
    lists.load("jobs", Scan("a"))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(statuses.get, "a").result(SOON) == "value"
        assert pool.submit(lists.load, "jobs", never).result(SOON) == ["a"]


@pytest.mark.parametrize("text", ["仕事", "a b", "x" * 300, "\0\n", "a:b*?[", "\ud800", ""])
def test_every_key_suits_memcached(time: FakeTime, text: str) -> None:
    cache = ListableCache(time)
    lists = IDListCache(cache, namespace=text)
    lists.load(text, Scan("a"))
    lists.invalidate(text)
    statuses = TTLCache[str](cache, namespace=text)
    statuses.set(text, "value")
    statuses.set("x" * 128, "value")
    keys = [about for _, about in cache.calls if isinstance(about, str)]
    assert len(keys) >= 8
    assert [warning for key in keys for warning in memcache_key_warnings(f":1:{key}")] == []
