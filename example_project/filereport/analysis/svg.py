"""A small SVG writer: shapes in, one self-contained file out, readable on light and on dark pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal
from xml.etree import ElementTree

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Colours for light and dark pages; each series' colour keeps a contrast of 3:1 or more with its page.
_STYLE: Final = """
svg { --page: #ffffff; --ink: #1f2933; --soft: #586573; --grid: #e4e8ec;
  --s0: #23718f; --s1: #b3541e; --s2: #4f772d; --s3: #7b4b94; }
@media (prefers-color-scheme: dark) {
  svg { --page: #1b2127; --ink: #e8edf2; --soft: #a3b0bd; --grid: #323b45;
    --s0: #63b5d3; --s1: #ee9b6b; --s2: #98c16c; --s3: #c49adb; }
}
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--soft); }
.page { fill: var(--page); } .heading { fill: var(--ink); font-weight: 600; font-size: 14px; }
.name { fill: var(--ink); font-weight: 600; } .grid { stroke: var(--grid); stroke-width: 1; }
.bar0 { fill: var(--s0); } .bar1 { fill: var(--s1); } .bar2 { fill: var(--s2); } .bar3 { fill: var(--s3); }
.band { fill-opacity: 0.2; } .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.line0 { stroke: var(--s0); } .line1 { stroke: var(--s1); } .line2 { stroke: var(--s2); } .line3 { stroke: var(--s3); }
"""

Point = tuple[float, float]


class Drawing:
    """An SVG image of a fixed width that scales with the page it stands in.

    ``title`` and ``description`` are what screen readers say in place of the picture. All texts are escaped.
    """

    def __init__(self, width: int, height: int, *, title: str, description: str) -> None:
        self.width = width
        self.root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {width} {height}",
                "width": str(width),
                "height": str(height),
                "role": "img",
                "aria-labelledby": "title description",
            },
        )
        self._child("title", clean(title), id="title")
        self._child("desc", clean(description), id="description")
        self._child("style", _STYLE)
        self.rect(0, 0, width, height, "page", radius=8)

    def rect(
        self, x: float, y: float, width: float, height: float, style: str, *, radius: float = 2, tip: str = ""
    ) -> None:
        """A rectangle; ``tip`` is shown when the mouse rests on it."""
        shape = self._child(
            "rect",
            x=spell(x),
            y=spell(y),
            width=spell(width),
            height=spell(height),
            rx=spell(radius),
            **{"class": style},
        )
        if tip:
            ElementTree.SubElement(shape, "title").text = clean(tip)

    def line(self, start: Point, end: Point, style: str) -> None:
        self._child(
            "path", d=f"M{spell(start[0])} {spell(start[1])}L{spell(end[0])} {spell(end[1])}", **{"class": style}
        )

    def path(self, points: Sequence[Point], style: str, *, closed: bool = False) -> None:
        """A line through the points, or the area within it."""
        steps = "L".join(f"{spell(x)} {spell(y)}" for x, y in points)
        self._child("path", d=f"M{steps}{'Z' if closed else ''}", **{"class": style})

    def text(
        self, x: float, y: float, text: str, style: str = "", *, anchor: Literal["start", "middle", "end"] = "start"
    ) -> None:
        attributes = {"x": spell(x), "y": spell(y), "text-anchor": anchor}
        self._child("text", clean(text), **attributes, **({"class": style} if style else {}))

    def render(self) -> str:
        return ElementTree.tostring(self.root, encoding="unicode") + "\n"

    def _child(self, tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
        child = ElementTree.SubElement(self.root, tag, attributes)
        child.text = text or None
        return child


def clean(text: str) -> str:
    """The text without the characters that XML has no way to write, such as most control characters."""
    return _NOT_XML.sub("\ufffd", text)


def spell(value: float) -> str:
    """A coordinate, to a tenth of a unit: finer can't be seen."""
    return f"{value:.1f}".removesuffix(".0")
