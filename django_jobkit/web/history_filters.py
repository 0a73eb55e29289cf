"""Which jobs of the history a reader asks for: the form above it, and the same parameters of the JSON list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext_lazy as _

from ..jobs import ids
from .display import BIDI_CONTROLS, STATES

LONGEST_TEXT: Final = 200
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_UNWANTED: Final = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *map(ord, BIDI_CONTROLS)])
_NO_TIME: Final = _("Write a date as in 2026-08-31.")


class InvalidFilter(ValueError):
    """A parameter that filters the jobs has a value that it can't have: ``name``, and why, in ``message``."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


class _TextField(forms.CharField):
    """Any text, as nothing has to be refused; it is only compared with."""

    default_validators = []

    def to_python(self, value: Any) -> str:
        return "" if value is None else str(value).strip()


class _MomentField(forms.Field):
    """A date, which begins at midnight in the current time zone, or a time, with an offset or in that zone.

    With ``end``, the moment is the end: a date's is the next midnight.
    """

    def __init__(self, *, end: bool = False, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self.end = end

    def to_python(self, value: Any) -> datetime | None:
        text = str(value or "").strip()
        if not text:
            return None
        try:
            # The "+" of an offset, which a URL takes for a space.
            moment = self._moment(text.replace(" ", "+") if "T" in text else text)
            # Those years have four digits in every zone, as the times in IDs.
            if not datetime(1000, 1, 2, tzinfo=UTC) <= moment <= datetime(9999, 12, 30, tzinfo=UTC):
                raise ValueError
        except (ValueError, OverflowError) as error:
            raise ValidationError(_NO_TIME) from error
        return moment

    def _moment(self, text: str) -> datetime:
        found: date | datetime | None = parse_date(text) if _DATE.fullmatch(text) else parse_datetime(text)
        if found is None:
            raise ValueError(text)
        if not isinstance(found, datetime):
            found = datetime.combine(found + timedelta(days=1) if self.end else found, time())
        return found if timezone.is_aware(found) else timezone.make_aware(found)


class FilterForm(forms.Form):
    """``state command q prefix since until order``; blank ones ask for nothing."""

    use_required_attribute = False

    q = _TextField(
        label=_("Title or ID"), required=False, max_length=LONGEST_TEXT, widget=forms.TextInput({"type": "search"})
    )
    state = forms.ChoiceField(
        label=_("State"),
        required=False,
        choices=[("", _("Any")), *STATES.items()],
        error_messages={"invalid_choice": _("There is no such state.")},
    )
    command = _TextField(
        label=_("Command"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.TextInput({"autocapitalize": "none", "list": "jobkit-commands", "autocomplete": "off"}),
    )
    prefix = _TextField(  # type: ignore[assignment]  # no clash: a form takes its fields out of its class
        label=_("ID begins with"),
        required=False,
        max_length=ids.MAX_LENGTH,
        widget=forms.TextInput({"autocapitalize": "none", "autocomplete": "off"}),
    )
    since = _MomentField(label=_("From"), widget=forms.TextInput({"type": "date"}))
    until = _MomentField(label=_("To"), end=True, widget=forms.TextInput({"type": "date"}))
    order = forms.ChoiceField(
        label=_("Order"),
        required=False,
        choices=[("", _("Newest first")), ("newest", _("Newest first")), ("oldest", _("Oldest first"))],
        error_messages={"invalid_choice": _("The order is “newest” or “oldest”.")},
    )

    def __init__(self, query: QueryDict) -> None:
        query = harmless(query)
        super().__init__(query, auto_id="jobkit-filter-%s", label_suffix="")
        # People are offered one way to write the default.
        self.fields["order"].widget.choices = [("", _("Newest first")), ("oldest", _("Oldest first"))]
        for name in ("since", "until"):
            text = query.get(name, "").strip()
            if text and not _DATE.fullmatch(text):
                self.fields[name].widget.input_type = "text"  # shows what a date field would not

    def clean(self) -> dict[str, Any]:
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and since >= until:
            self.add_error("until", _("This is before the beginning."))
        return self.cleaned_data

    def filters(self) -> dict[str, Any]:
        """What is asked for, as `JobHistory.page` takes it; bad values are left out."""
        self.is_valid()
        found: Mapping[str, Any] = self.cleaned_data
        wanted = {name: found[name] for name in ("state", "command", "prefix", "since", "until") if found.get(name)}
        if found.get("q"):
            wanted["text"] = found["q"]
        if found.get("order") == "oldest":
            wanted["newest_first"] = False
        return wanted

    @property
    def is_active(self) -> bool:
        """Whether some jobs are left out: by the order, none is."""
        return any(name != "newest_first" for name in self.filters())


def harmless(query: QueryDict) -> QueryDict:
    """The query without characters that hide or turn round others: it is written into the page again."""
    found = QueryDict(mutable=True)
    for name, values in query.lists():
        found.setlist(name.translate(_UNWANTED), [value.translate(_UNWANTED) for value in values])
    return found


def read_filters(query: QueryDict) -> dict[str, Any]:
    """The filters of a request from a program. Raises `InvalidFilter` for the first bad one."""
    form = FilterForm(query)
    if not form.is_valid():
        name, problems = next(iter(form.errors.items()))
        raise InvalidFilter(name, str(problems[0]))
    return form.filters()


def without_filters(query: QueryDict) -> str:
    """``?…`` with all else that the query says, but for the page; ``?`` if that is nothing."""
    return _with(query, {})


def with_state(query: QueryDict, state: str) -> str:
    """``?…`` for the jobs in this state, the other filters kept."""
    kept = {name: str(query[name]) for name in FilterForm.base_fields if query.get(name, "").strip()}
    return _with(query, {**kept, "state": state})


def _with(query: QueryDict, filters: Mapping[str, str]) -> str:
    wanted = query.copy()
    for name in [*FilterForm.base_fields, "page"]:
        wanted.pop(name, None)
    for name, value in filters.items():
        wanted[name] = value
    return f"?{wanted.urlencode()}"


def other_parameters(query: QueryDict) -> list[tuple[str, str]]:
    """What the form has to send along: what isn't its own, but for the page, which begins anew."""
    own = {*FilterForm.base_fields, "page"}
    return [(name, value) for name, values in harmless(query).lists() if name not in own for value in values]
