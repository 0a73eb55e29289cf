"""From all job IDs to the rows of one page, newest first, with the numbers that a page's navigation shows.

Pages count from 1. The arithmetic is the Go reference's (``tests/vectors/select_ids.json``), whose numbers other
clients rely on.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ..exceptions import PageLoadTimeout

T = TypeVar("T")

SortKey = Callable[[str], str]

DEFAULT_CONCURRENCY: Final = 10
_SHALLOW: Final = 1000  # up to this depth, picking the newest beats sorting them all


@dataclass(frozen=True, slots=True)
class PageMeta:
    """Where a page stands among all of them. ``start_index`` and ``end_index`` count rows from 1, 0 meaning none.

    ``prev_page`` and ``next_page`` are mere neighbours of ``page``: link to them only if ``has_prev`` or
    ``has_next``. ``per_page`` of 0 or less means one page with everything.
    """

    page: int
    per_page: int
    total: int
    total_pages: int
    has_prev: bool
    has_next: bool
    prev_page: int
    next_page: int
    start_index: int
    end_index: int

    def as_dict(self) -> dict[str, int | bool]:
        """The JSON of the page's numbers; ``start_index`` and ``end_index`` are ``from`` and ``to`` there."""
        return {
            "page": self.page,
            "per_page": self.per_page,
            "total": self.total,
            "total_pages": self.total_pages,
            "has_prev": self.has_prev,
            "has_next": self.has_next,
            "prev_page": self.prev_page,
            "next_page": self.next_page,
            "from": self.start_index,
            "to": self.end_index,
        }


def select_ids(
    job_ids: Iterable[str], page: int, per_page: int, sort_key: SortKey | None, *, newest_first: bool = True
) -> tuple[list[str], PageMeta]:
    """The IDs of one page, newest first, and the page's numbers. ``job_ids`` isn't changed.

    With ``newest_first`` False, in exactly the opposite order.

    "Newest" is the highest ``sort_key``, ties broken by the higher ID; each ID's key is computed once. `ids.sort_key`
    suits IDs with a time in them, whatever their prefixes; IDs without one come last. None compares the IDs
    themselves, which only sorts by time where all have the same prefix. A ``page`` past the end is the last page,
    one before the start the first. With ``per_page`` of 0 or less, all IDs are on one page.
    """
    job_ids = job_ids if isinstance(job_ids, Sequence) else list(job_ids)
    total = len(job_ids)
    page = max(page, 1)
    if per_page > 0:
        total_pages = -(-total // per_page)
        if total_pages:
            page = min(page, total_pages)
        start = min((page - 1) * per_page, total)
        end = min(start + per_page, total)
        first_row = start + 1
    else:
        total_pages = 1 if total else 0
        start, end, first_row = 0, total, 1

    selected = _first(job_ids, end, sort_key, newest_first)[start:]
    return selected, PageMeta(
        page=page,
        per_page=per_page,
        total=total,
        total_pages=total_pages,
        has_prev=page > 1,
        has_next=page < total_pages,
        prev_page=page - 1,
        next_page=page + 1,
        start_index=first_row if total else 0,
        end_index=first_row + len(selected) - 1 if total else 0,
    )


def _first(job_ids: Sequence[str], count: int, sort_key: SortKey | None, newest_first: bool) -> list[str]:
    pick = heapq.nlargest if newest_first else heapq.nsmallest
    if sort_key is None:
        if count <= _SHALLOW:
            return pick(count, job_ids)
        return sorted(job_ids, reverse=newest_first)[:count]
    if count <= _SHALLOW:
        # Holds the keys of `count` IDs at a time; sorting would hold those of all of them.
        keyed = pick(count, zip(map(sort_key, job_ids), job_ids, strict=True))
        return [job_id for _, job_id in keyed]
    # Sorting in reverse keeps equal keys in their order, too, which the first sort has made that of their IDs.
    return sorted(sorted(job_ids, reverse=newest_first), key=sort_key, reverse=newest_first)[:count]


def adjust_item_count(meta: PageMeta, item_count: int) -> PageMeta:
    """``meta`` for a page on which only ``item_count`` rows could be shown, so that "11–20" doesn't head 8 rows."""
    if meta.total == 0:
        return meta
    if item_count == 0:
        return replace(meta, start_index=0, end_index=0)
    if meta.per_page > 0:
        return replace(meta, end_index=meta.start_index + item_count - 1)
    return replace(meta, end_index=item_count)


def load_page(
    job_ids: Iterable[str],
    page: int,
    per_page: int,
    sort_key: SortKey | None,
    load: Callable[[str], T],
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    timeout: float | None = None,
    logger: logging.Logger | None = None,
) -> tuple[list[T], PageMeta]:
    """`select_ids`, then ``load`` for each ID, at most ``concurrency`` at a time (0 or less: the default).

    Rows keep the IDs' order. One that fails to load is left out with a warning, and the numbers are adjusted; to
    keep a row for it, return a stand-in from ``load``. After ``timeout`` seconds raises `PageLoadTimeout` instead
    of showing a page that looks empty; a ``load`` under way then can't be interrupted, but none is begun any more.
    """
    selected, meta = select_ids(job_ids, page, per_page, sort_key)
    items = load_items(selected, load, concurrency=concurrency, timeout=timeout, logger=logger)
    return items, adjust_item_count(meta, len(items))


def load_items(
    job_ids: Sequence[str],
    load: Callable[[str], T],
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    timeout: float | None = None,
    logger: logging.Logger | None = None,
) -> list[T]:
    """What ``load`` returns for each ID, in their order, as `load_page` has it for the IDs of its page."""
    logger = logger or logging.getLogger("django_jobkit.paging")
    items: list[T] = []
    for job_id, outcome in zip(job_ids, _load_all(job_ids, load, concurrency, timeout), strict=True):
        if (error := outcome.exception()) is not None:
            if not isinstance(error, Exception):
                raise error
            logger.warning("failed to load the row of job %a: %s", job_id, error, extra={"job_id": job_id})
        else:
            items.append(outcome.result())
    return items


def _load_all(
    job_ids: Sequence[str], load: Callable[[str], T], concurrency: int, timeout: float | None
) -> list[Future[T]]:
    workers = min(concurrency if concurrency > 0 else DEFAULT_CONCURRENCY, len(job_ids))
    if not workers:
        return []
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="jobkit-page")
    try:
        futures = [pool.submit(load, job_id) for job_id in job_ids]
        pending = wait(futures, timeout=timeout).not_done
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if pending:
        raise PageLoadTimeout(f"{len(pending)} of the page's {len(futures)} rows were not read in {timeout:g} s.")
    return futures
