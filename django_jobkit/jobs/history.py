"""Looking back: the jobs under a prefix, newest first, a page at a time.

The list of IDs comes from `IDListCache`, the rows from `TTLCache` and, where they aren't there, from the storage.
What is cached of a status is its file's text, so that a new version of the site's class reads old entries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from ..exceptions import InvalidJobID, NoTimestamp, StatusCorrupt, StatusNotFound, StatusUnavailable
from . import codec, ids
from .caching import IDListCache, TTLCache
from .filters import Filters
from .listing import iterate
from .paging import DEFAULT_CONCURRENCY, PageMeta, SortKey, adjust_item_count, load_items, select_ids
from .status import Status
from .store import StatusStore

UNFINISHED_TTL: Final = 5.0
"""Seconds for which the row of a job that may still change is kept: others than this site may write it."""

SEARCH_LIMIT: Final = 500
"""How many jobs' files are read, at most, for a filter on what only they tell."""

logger = logging.getLogger("django_jobkit.history")


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A job in the history. ``status`` is None where it couldn't be read; ``problem`` then says why.

    ``missing``: the job has a directory but no status, as when it died before the first was saved. ``unreadable``:
    the storage failed; reload later. ``corrupt``: the file isn't a status. ``invalid``: the directory's name is no
    job ID, so that the job has no page.
    """

    job_id: str
    status: Status | None
    problem: str = ""

    @property
    def created_at(self) -> datetime | None:
        """When the job was made, as its ID tells, in UTC."""
        try:
            return ids.created_at(self.job_id)
        except NoTimestamp:
            return None


class _Page(NamedTuple):
    items: list[Any]
    meta: PageMeta


class Page(_Page):
    """One page of the history: its rows, and where it stands. Unpacks into ``items, meta``.

    ``searched`` is None, or where files had to be read to find the rows: how many of how many jobs were looked at.
    """

    searched: Searched | None = None


class Searched(NamedTuple):
    """How many jobs a filter looked at, the newest (or oldest) first, of those that their IDs let through."""

    looked_at: int
    of: int

    @property
    def complete(self) -> bool:
        """Whether there were no more to look at."""
        return self.looked_at == self.of


class JobHistory:
    """The history of the jobs that ``store`` records under ``prefix``.

    ``load(job_id)`` replaces what a row is made of: whatever it returns is the row (and is cached, so let it be what
    the cache can hold), None leaves the job out, and so does an error, with a warning. The page's numbers follow.
    ``timeout`` bounds in seconds the reading of a page's rows; ``keep`` leaves jobs out of the whole history by ID.
    Safe to share between threads.
    """

    def __init__(
        self,
        store: StatusStore[Any],
        prefix: str,
        *,
        ids_cache: IDListCache | None = None,
        metadata_cache: TTLCache[Any] | None = None,
        sort_key: SortKey | None = ids.sort_key,
        load: Callable[[str], Any] | None = None,
        keep: Callable[[str], bool] | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        timeout: float | None = None,
        unfinished_ttl: float = UNFINISHED_TTL,
        search_limit: int = SEARCH_LIMIT,
    ) -> None:
        self.store = store
        self.prefix = prefix.strip().strip("/")
        self.ids_cache = ids_cache or IDListCache(None)
        self.metadata_cache: TTLCache[Any] = metadata_cache or TTLCache(None)
        self.sort_key = sort_key
        self.load = load
        self.keep = keep
        self.concurrency = concurrency
        self.timeout = timeout
        self.unfinished_ttl = unfinished_ttl
        self.search_limit = search_limit

    def ids(self) -> list[str]:
        """All job IDs, in no order; a fresh list. Raises `StorageUnavailable` when they can't be listed."""
        return self.ids_cache.load(
            self.prefix, lambda: iterate(self.store.storage, self.prefix, keep=self.keep), timeout=self.timeout
        )

    def page(self, number: int, per_page: int, **filters: Any) -> Page:
        """Page ``number`` (from 1; one past the end is the last) of ``per_page`` rows (0 or less: all of them).

        ``filters`` are those of `Filters`, and ``newest_first``. What IDs tell is looked for in the whole history;
        where files have to be read, among the first ``search_limit`` jobs, and the page says so in ``searched``.

        A job whose status can't be read has a row that says why. Raises `StorageUnavailable` when the jobs can't be
        listed and `PageLoadTimeout` when the rows don't come in time: neither is ever shown as an empty page.
        """
        wanted = Filters(**filters)
        all_ids = self.ids()
        job_ids = wanted.by_id(all_ids)
        if wanted.need_files:
            page = self._search(wanted, job_ids, number, per_page)
            if wanted.owner is not None:
                # How many jobs IDs let through are others' numbers: by asking for each second, one could count them.
                page.searched = Searched(min(len(all_ids), self.search_limit), len(all_ids))
            return page
        selected, meta = select_ids(job_ids, number, per_page, self.sort_key, newest_first=wanted.newest_first)
        rows = self.rows(selected)
        return Page(rows, adjust_item_count(meta, len(rows)))

    def _search(self, wanted: Filters, job_ids: list[str], number: int, per_page: int) -> Page:
        candidates, _ = select_ids(job_ids, 1, self.search_limit, self.sort_key, newest_first=wanted.newest_first)
        found = wanted.by_file(self._rows(candidates))
        rows = dict(found)
        # They are in order already: numbers that count down are the keys that keep them so.
        place = {job_id: f"{len(found) - index:012}" for index, job_id in enumerate(rows)}
        selected, meta = select_ids(list(rows), number, per_page, place.__getitem__)
        page = Page([rows[job_id] for job_id in selected], meta)
        page.searched = Searched(len(candidates), len(job_ids))
        return page

    def latest(self, n: int) -> list[Any]:
        """The rows of the ``n`` newest jobs. Raises as `page` does."""
        return self.page(1, n).items if n > 0 else []

    def rows(self, job_ids: Sequence[str]) -> list[Any]:
        """The rows of these jobs, in this order, without those that `load` leaves out."""
        return [row for _, row in self._rows(job_ids)]

    def _rows(self, job_ids: Sequence[str]) -> list[tuple[str, Any]]:
        cached = self.metadata_cache.get_many(job_ids)
        rows = {job_id: self._from_cache(job_id, cached[job_id]) for job_id in job_ids if job_id in cached}
        wanted = [job_id for job_id in job_ids if rows.get(job_id) is None]
        # Each comes with its ID: those that fail to load are missing from the answer.
        fresh = dict(
            load_items(
                wanted,
                lambda job_id: (job_id, self._load(job_id)),
                concurrency=self.concurrency,
                timeout=self.timeout,
                logger=logger,
            )
        )
        self._keep(fresh)
        found = ((job_id, rows.get(job_id) or fresh.get(job_id)) for job_id in job_ids)
        return [(job_id, row.value) for job_id, row in found if row is not None and row.value is not None]

    def delete(self, job_id: str) -> int:
        """Delete the job's whole directory, then forget it in both caches; the number of files deleted.

        0 means that there was none. Raises `InvalidJobID`, and `StorageUnavailable` when files may be left.
        """
        job_id = ids.sanitize(job_id)
        try:
            count = self.store.storage.delete_tree(f"{self.prefix}/{job_id}")
        finally:  # even a delete that broke off has removed something; and never before the storage is written
            self.ids_cache.invalidate(self.prefix)
            self.metadata_cache.delete(job_id)
        self.store.deleted(job_id)
        return count

    # --- rows and their cache -----------------------------------------------------------------------------------

    def _load(self, job_id: str) -> _Row:
        if self.load is not None:
            return _Row(self.load(job_id))
        try:
            return _Row(HistoryRow(job_id, self.store.get(job_id)))
        except StatusNotFound:
            return _Row(HistoryRow(job_id, None, "missing"))
        except InvalidJobID:
            return _Row(HistoryRow(job_id, None, "invalid"))
        except StatusCorrupt as error:
            logger.warning("job %a: %s", job_id, error, extra={"job_id": job_id})
            return _Row(HistoryRow(job_id, None, "corrupt"))
        except StatusUnavailable as error:
            logger.warning("job %a: %s", job_id, error, extra={"job_id": job_id})
            return _Row(HistoryRow(job_id, None, "unreadable"))

    def _from_cache(self, job_id: str, entry: Any) -> _Row | None:
        """The row of a cache entry, or None if it can't be used."""
        if self.load is not None:
            return _Row(entry["row"]) if isinstance(entry, dict) and "row" in entry else None
        try:
            return _Row(HistoryRow(job_id, self.store.decode(job_id, entry.encode())))
        except (StatusCorrupt, AttributeError, TypeError):  # some other version's entry
            return None

    def _keep(self, fresh: dict[str, _Row]) -> None:
        finished: dict[str, Any] = {}
        unfinished: dict[str, Any] = {}
        for job_id, row in fresh.items():
            if self.load is not None:
                finished[job_id] = {"row": row.value}
            elif (status := row.value.status) is not None:
                (finished if status.is_terminal else unfinished)[job_id] = codec.encode(status).decode()
        if finished:
            self.metadata_cache.set_many(finished)
        if unfinished:
            self.metadata_cache.set_many(unfinished, self.unfinished_ttl)


class _Row(NamedTuple):
    """A row, apart from there being none: ``value`` is None where `JobHistory.load` leaves the job out."""

    value: Any
