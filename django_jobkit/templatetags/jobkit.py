"""``{% load jobkit %}``: the pieces that the kit's pages are made of, for any page of a site.

Each tag renders a template of its name below ``django_jobkit/``, which a site may override.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import template
from django.template import Context
from django.template.defaultfilters import stringfilter
from django.utils.translation import gettext as _

from ..jobs.paging import PageMeta
from ..web import display, page_query
from ..web import live as live_jobs

if TYPE_CHECKING:
    from django.http import QueryDict

register = template.Library()


@register.inclusion_tag("django_jobkit/page_meta.html", takes_context=True)
def page_meta(context: Context, meta: PageMeta) -> dict[str, Any]:
    """``{% page_meta meta %}``: links to the first, previous, nearby, next and last page, and "11–20 of 57".

    Links keep the request's other query parameters; without a ``request`` in the context they are just ``?page=N``.
    """
    request = getattr(context, "request", None) or context.get("request")
    return navigation(meta, request.GET if request is not None else None)


def navigation(meta: PageMeta, query: QueryDict | None) -> dict[str, Any]:
    """What the template shows: ``meta``, ``pages`` as (number, URL), and the URLs ``first``, ``previous``, ``next``
    and ``last``, each empty where there is nowhere to go."""

    def to(page: int, there: bool) -> str:
        return page_query.with_page(query, page) if there else ""

    return {
        "meta": meta,
        "pages": [(page, to(page, True)) for page in page_query.nearby(meta.page, meta.total_pages)],
        "first": to(1, meta.has_prev),
        "previous": to(meta.prev_page, meta.has_prev),
        "next": to(meta.next_page, meta.has_next),
        "last": to(meta.total_pages, meta.has_next),
    }


@register.inclusion_tag("django_jobkit/job_state.html")
def job_state(status: object) -> dict[str, Any]:
    """``{% job_state status %}``: a badge with the state; one that the kit doesn't know is shown as the word it is."""
    state = str(display.member(status, "state") or "")
    known = state in display.STATES
    return {
        "state": state,
        "kind": state if known else "other",
        "label": display.STATES[state] if known else display.cut(state, 40) or _("Unknown"),
    }


@register.inclusion_tag("django_jobkit/job_progress.html")
def job_progress(status: object, live: object = False) -> dict[str, Any]:
    """``{% job_progress status %}``: a progress bar with its numbers and its message; nothing if there is none.

    With ``live=True`` what there is none of is there and hidden, for the script to show.
    """
    return {"progress": display.progress_of(status), "live": bool(live)}


@register.inclusion_tag("django_jobkit/job_time.html")
def job_time(value: object) -> dict[str, Any]:
    """``{% job_time status.queued_at %}``: a ``<time>`` in the current time zone; a dash for None."""
    known = isinstance(value, datetime) and value.tzinfo is not None
    return {"time": display.shown_time(value) if known else None, "value": value}  # type: ignore[arg-type]


@register.inclusion_tag("django_jobkit/job_live.html", takes_context=True)
def job_live(context: Context, job_id: str, kit: str = "default", namespace: str = "") -> dict[str, Any]:
    """``{% job_live job_id %}``: title, state, progress and error of a job, which `jobkit_script` keeps up to date.

    Nothing for people who may not see the job, as the kit's access object says, and without a ``request`` in the
    context. ``kit`` is the alias, ``namespace`` that of its URLs: by default ``jobkit``, or the alias of another kit.
    """
    request = getattr(context, "request", None) or context.get("request")
    return live_jobs.job_on_page(request, job_id, kit, namespace)


@register.inclusion_tag("django_jobkit/script.html", takes_context=True)
def jobkit_script(context: Context, style: bool = True) -> dict[str, Any]:
    """``{% jobkit_script %}``, once on a page: the script that keeps its jobs up to date, and the style sheet.

    Both carry the nonce of Django's Content-Security-Policy where there is one. ``style=False``: the script only.
    """
    return {"texts": live_jobs.script_texts(), "style": style, "csp_nonce": context.get("csp_nonce")}


@register.filter
@stringfilter
def visible(text: str) -> str:
    """``{{ title|visible }}``: control characters and text-direction overrides shown instead of obeyed."""
    return display.visible(text)


@register.filter
@stringfilter
def cut(text: str, limit: int) -> str:
    """``{{ title|cut:200 }}``: the beginning of a long text."""
    return display.cut(text, limit)
