"""The history, as a page and as JSON, both with the same filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from ..access import Action
from ..jobs.history import Searched
from ..jobs.status import State, Status
from .baseviews import JSONView, PageView
from .history_filters import FilterForm, other_parameters, read_filters, with_state, without_filters
from .history_page import HistoryLine, json_of, lines_of
from .page_query import read_page
from .queue_page import queues_of
from .responses import HANDLED, json_body


class StateCount(NamedTuple):
    """How many of the rows shown are in a state, and where the jobs in it are; empty for a state of other services."""

    state: str
    number: int
    url: str


class JobHistoryView(PageView):
    """All jobs, or those that the query's filters ask for, a page at a time.

    ``?page=`` outside the range shows the first or the last page, as does one that isn't a number the first. A filter
    that makes no sense is left out, with a message beside its field.
    """

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        settings = self.kit.settings
        number, per_page = read_page(request.GET, settings.per_page, settings.max_per_page, lenient=True)
        form = FilterForm(request.GET)
        filters = form.filters()
        owner = self.owner()
        page = self.kit.history.page(number, per_page, owner=owner, **filters)
        lines = lines_of(
            page.items,
            self.links,
            may_delete=self._may_delete if self.may(Action.DELETE) else lambda job_id, status: False,
            doubt=self.doubt,
            now=datetime.now(UTC),
        )
        select_url = self.links.to_job("delete-selected", "") if any(line.selectable for line in lines) else ""
        return self.page(
            "history",
            _("Jobs"),
            rows=lines,
            meta=page.meta,
            form=form,
            filtered=form.is_active,
            oldest_first=not filters.get("newest_first", True),
            clear_url=without_filters(request.GET) if _has_filter(request.GET) else "",
            other_parameters=other_parameters(request.GET),
            commands=sorted({line.command for line in lines if line.command}),
            counts=counts_of(lines, request.GET),
            searched=searched_text(page.searched, oldest=not filters.get("newest_first", True), sees_all=owner is None),
            select_url=select_url,
            queue_url=self.links.to("queue") if owner is None and queues_of(self.kit.alias) else "",
        )

    def _may_delete(self, job_id: str, status: Status | None) -> bool:
        try:
            return self.kit.access.allows_job(self.request, Action.DELETE, job_id, status)
        except HANDLED:
            return False


class JobListAPIView(JSONView):
    """The history as JSON: ``items`` beside the page's ten numbers, and ``searched`` where files were looked into.

    ``page`` and ``per_page`` have to be numbers, and the filters what `FilterForm` takes.
    """

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        settings = self.kit.settings
        number, per_page = read_page(request.GET, settings.per_page, settings.max_per_page, lenient=False)
        filters = read_filters(request.GET)
        owner = self.owner()
        page = self.kit.history.page(number, per_page, owner=owner, **filters)
        return json_body(json_of(page, settings.search_limit, sees_all=owner is None))


def _has_filter(query: QueryDict) -> bool:
    return any(query.get(name, "").strip() for name in FilterForm.base_fields)


def counts_of(lines: Iterable[HistoryLine], query: QueryDict) -> list[StateCount]:
    """How many rows are in which state, those that the kit knows first, in the order of a job's life."""
    counted = Counter(line.state for line in lines if not line.problem)
    known = [str(state) for state in State]
    return [
        StateCount(state, counted[state], with_state(query, state) if state in known else "")
        for state in [*known, *sorted(set(counted) - set(known))]
        if counted[state]
    ]


def searched_text(searched: Searched | None, *, oldest: bool = False, sees_all: bool = True) -> str:
    """How many jobs were looked at, where that weren't all of them; how many there are, only for who sees them all."""
    if searched is None or searched.complete:
        return ""
    if not sees_all:
        text = (
            _("Only your jobs among the oldest %(looked_at)s jobs of this site are looked for.")
            if oldest
            else _("Only your jobs among the newest %(looked_at)s jobs of this site are looked for.")
        )
    elif oldest:
        text = _("Searched the oldest %(looked_at)s of %(of)s jobs.")
    else:
        text = _("Searched the newest %(looked_at)s of %(of)s jobs.")
    return text % {"looked_at": _grouped(searched.looked_at), "of": _grouped(searched.of)}


def _grouped(number: int) -> str:
    return number_format(number, use_l10n=True, force_grouping=True)
