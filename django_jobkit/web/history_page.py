"""The rows of the history, as lines of a page and as items of JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext_lazy as _

from ..jobs import codec, ids
from ..jobs.history import HistoryRow, Page
from ..jobs.status import Status
from .display import Progress, member, progress_of, title_of
from .durations import Duration, duration_of
from .links import Links

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

PROBLEMS: Final[dict[str, _StrPromise]] = {
    "missing": _("No status recorded"),
    "unreadable": _("Can’t be read just now"),
    "corrupt": _("Damaged record"),
    "invalid": _("Not a job ID"),
}


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One line of the history's table. ``url`` is empty for what has no page of its own.

    ``status`` is whatever the row is made of: a status, or what the site's own `LOAD` returns, of which the template
    shows the members that it knows. It is None where there is a ``problem``, which ``problem_text`` tells people.
    """

    job_id: str
    status: Any
    url: str
    delete_url: str
    problem: str
    problem_text: str | _StrPromise
    doubt: str
    duration: Duration | None = None
    selectable: bool = False

    @property
    def title(self) -> str:
        return title_of(self.job_id, self.status)

    @property
    def progress(self) -> Progress | None:
        return progress_of(self.status)

    @property
    def state(self) -> str:
        return str(member(self.status, "state") or "")

    @property
    def command(self) -> str:
        return str(member(self.status, "command") or "")


def lines_of(
    items: Iterable[Any],
    links: Links,
    *,
    may_delete: Callable[[str, Status | None], bool],
    doubt: Callable[[Status], str],
    now: datetime,
) -> list[HistoryLine]:
    """The table's lines. Those ``may_delete`` says yes to can be selected; one that can't be read has a link for it.

    ``doubt`` tells whether an unfinished job looks lost, as `staleness` does.
    """

    def line_of(item: Any) -> HistoryLine:
        job_id = member(item, "job_id") or ""
        valid = ids.is_valid(job_id)
        problem = item.problem if isinstance(item, HistoryRow) else ""
        status = item.status if isinstance(item, HistoryRow) else item
        deletable = valid and may_delete(job_id, status if isinstance(status, Status) else None)
        delete_url = links.to_job("delete", job_id) if deletable and problem in ("missing", "corrupt") else ""
        return HistoryLine(
            job_id=job_id,
            status=status,
            url=links.to_job("detail", job_id) if valid and problem != "missing" else "",
            delete_url=delete_url,
            problem=problem,
            problem_text=PROBLEMS.get(problem, problem),
            doubt=doubt(status) if isinstance(status, Status) else "",
            duration=duration_of(status, now),
            selectable=deletable,
        )

    return [line_of(item) for item in items]


def json_of(page: Page, search_limit: int, *, sees_all: bool = False) -> bytes:
    """``items`` and the ten numbers of the page; where files had to be read to find the items, also ``searched``.

    That says within how many jobs they were looked for (``limit``), and whether those were all (``complete``); for
    somebody who ``sees_all`` of them, also how many were ``looked_at`` of how many (``of``).

    An item is the job's stored fields, ``{"job_id": …, "problem": …}`` where they can't be read, or the JSON of what
    the site's own `LOAD` returns.
    """
    about: dict[str, Any] = page.meta.as_dict()
    if page.searched is not None:
        numbers = page.searched._asdict() if sees_all else {}  # they count others' jobs, too
        about["searched"] = {"limit": search_limit, "complete": page.searched.complete, **numbers}
    rest = json.dumps(about).encode()
    return b'{"items": [' + b", ".join(map(_json_of_item, page.items)) + b"], " + rest[1:]


def _json_of_item(item: Any) -> bytes:
    status = item.status if isinstance(item, HistoryRow) else item
    if isinstance(status, Status):
        return codec.encode(status)
    if isinstance(item, HistoryRow):
        item = {"job_id": item.job_id, "problem": item.problem}
    elif dataclasses.is_dataclass(item) and not isinstance(item, type):
        item = dataclasses.asdict(item)
    return json.dumps(item, cls=DjangoJSONEncoder, ensure_ascii=False).encode()
