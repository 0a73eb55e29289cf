"""The files that come with the site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

_DIRECTORY: Final = Path(__file__).parent / "samples"

SAMPLES: Final[dict[str, _StrPromise]] = {
    "city-temperatures-2024.csv": _("A year of a city's weather, day by day"),
    "bakery-sales-2025.csv": _("A bakery's sales in a year"),
    "bicycle-counts-2025.csv": _("Bicycles counted at three places; two weeks are missing"),
    "haushalt-energie-2023.csv": _("A household's power and gas, with semicolons and decimal commas"),
    "commuting-survey.csv": _("How 240 people get to work"),
    "apple-harvest.csv": _("300 apples, weighed and measured"),
    "river-gauge-april.csv": _("A river gauge, with a remark where a number belongs: this one fails"),
    "the-lighthouse-clock.txt": _("A short story"),
    "how-to-keep-a-sourdough.txt": _("Instructions"),
    "why-rivers-bend.txt": _("An essay with long sentences"),
    "wanderung-zum-see.txt": _("A short story in German"),
    "meeting-notes.md": _("The notes of a meeting"),
}
"""What each of them is, by its name."""

BROKEN: Final = "river-gauge-april.csv"


def read(name: str) -> bytes:
    """The file's bytes. Raises KeyError for a name that isn't in `SAMPLES`."""
    SAMPLES[name]
    return (_DIRECTORY / name).read_bytes()
