"""JSON without second chances: one reading per document, faults named, nesting bounded by a number.

The standard library's parser is fast and takes nearly every document. It stops at Python's recursion limit, takes
lone surrogates and ``NaN``, and lets the last of two members of one name win; `codec` hands what it can't vouch for
to `members`, which reads again, slower and without recursion, and says what is wrong in the words of the Go
reference (``tests/vectors/README.md``): the first fault from the left decides.
"""

from __future__ import annotations

import json.encoder
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ..exceptions import StatusCorrupt

MAX_DEPTH: Final = 10_000
"""Levels of nesting a document may have, the outer object included: the Go reference's limit."""


@dataclass(frozen=True, slots=True)
class RawNumber:
    """A number of a document that no Python number holds (``1e999999``), kept to be written back as it was."""

    text: str


def parse_float(text: str) -> float | RawNumber:
    value = float(text)
    return RawNumber(text) if value in (float("inf"), float("-inf")) else value


def members(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the outer object's members as they are read; ``null`` has none.

    Raises `StatusCorrupt` where the first fault stands, after yielding the members before it, so that a caller
    who checks each member meets all faults in the document's order.
    """
    reader = _Reader(data.decode("utf-8", "surrogateescape"))
    if reader.peek() != "{":
        if reader.value(depth=0) is not None:
            raise StatusCorrupt("The document is no JSON object.", kind="wrong_type")
        reader.end()
        return
    reader.pos += 1
    seen: dict[str, None] = {}
    if reader.peek() == "}":
        reader.pos += 1
    else:
        while True:
            name = reader.name(seen)
            seen[name] = None
            yield name, reader.value(depth=1)
            if reader.separator("}"):
                break
    reader.end()


_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<real>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_NUMBER_START = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?[0-9]*)?)?|[eE][+-]?[0-9]*)?)?")
_NUMBER_CHARACTERS = re.compile(r"[-+.eE0-9]*")
_SPACE = re.compile(r"[ \t\r\n]*")
_HEX = re.compile(r"[0-9a-fA-F]*")
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS: Final = {"true": True, "false": False, "null": None}


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text  # bytes that aren't UTF-8 stand in it as U+DC80 to U+DCFF
        self.pos = 0

    def fault(self, kind: str) -> NoReturn:
        raise StatusCorrupt(f"The document is not valid JSON at character {self.pos}: {kind}.", kind=kind)

    def peek(self) -> str:
        self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]  # matches always
        if self.pos == len(self.text):
            self.fault("truncated")
        return self.text[self.pos]

    def end(self) -> None:
        self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]
        if self.pos != len(self.text):
            self.fault("trailing_data")

    def name(self, seen: dict[str, Any]) -> str:
        if self.peek() != '"':
            self.fault("not_json")
        name = self.string()
        if name in seen:
            self.fault("duplicate_key")
        if self.peek() != ":":
            self.fault("not_json")
        self.pos += 1
        return name

    def separator(self, closer: str) -> bool:
        """Step over what follows a value in a container; whether that ended it."""
        found = self.peek()
        if found not in (",", closer):
            self.fault("not_json")
        self.pos += 1
        return found == closer

    def value(self, depth: int) -> Any:
        """Read one value, ``depth`` containers being open around it."""
        open_: list[tuple[Any, str]] = []  # the containers begun within this value, each with the name to fill next
        while True:
            opener = self.peek()
            if opener in "{[":
                if depth + len(open_) >= MAX_DEPTH:
                    self.fault("too_deep")
                self.pos += 1
                value: Any = {} if opener == "{" else []
                closer = "}" if opener == "{" else "]"
                if self.peek() != closer:
                    open_.append((value, self.name(value) if opener == "{" else ""))
                    continue
                self.pos += 1
            elif opener == '"':
                value = self.string()
            elif opener in "-0123456789":
                value = self.number(at_end_is_cut=depth + len(open_) > 0)
            else:
                value = self.literal()
            while open_:
                container, name = open_[-1]
                if isinstance(container, dict):
                    container[name] = value
                    if not self.separator("}"):
                        open_[-1] = (container, self.name(container))
                        break
                else:
                    container.append(value)
                    if not self.separator("]"):
                        break
                value = open_.pop()[0]
            else:
                return value

    def literal(self) -> Any:
        for word, value in _LITERALS.items():
            if self.text.startswith(word, self.pos):
                self.pos += len(word)
                return value
            if word.startswith(self.text[self.pos : self.pos + len(word)]):
                self.fault("truncated")
        return self.fault("not_json")

    def number(self, at_end_is_cut: bool) -> Any:
        run = _NUMBER_CHARACTERS.match(self.text, self.pos).group()  # type: ignore[union-attr]
        at_end = self.pos + len(run) == len(self.text)
        match = _NUMBER.fullmatch(run)
        if match is None or (at_end and at_end_is_cut):
            self.fault("truncated" if at_end and _NUMBER_START.fullmatch(run) else "not_json")
        self.pos += len(run)
        if match["real"]:
            return parse_float(run)
        try:
            return int(run)
        except ValueError:  # more digits than Python converts by default
            return RawNumber(run)

    def string(self) -> str:
        self.pos += 1
        pieces: list[str] = []
        while True:
            piece = _PLAIN.match(self.text, self.pos).group()  # type: ignore[union-attr]
            pieces.append(piece)
            self.pos += len(piece)
            if self.pos == len(self.text):
                self.fault("truncated")
            stop = self.text[self.pos]
            if stop == '"':
                self.pos += 1
                return "".join(pieces)
            if stop == "\\":
                pieces.append(self.escape())
            elif stop < " ":
                self.fault("not_json")
            else:
                self.fault("truncated" if self.cut_within_a_character() else "invalid_utf8")

    def escape(self) -> str:
        self.pos += 1
        if self.pos == len(self.text):
            self.fault("truncated")
        mark = self.text[self.pos]
        self.pos += 1
        if mark != "u":
            return _ESCAPES.get(mark) or self.fault("bad_escape")
        unit = self.hex_unit()
        if 0xDC00 <= unit <= 0xDFFF:
            self.fault("bad_escape")
        if not 0xD800 <= unit <= 0xDBFF:
            return chr(unit)
        for expected in "\\u":
            if self.pos == len(self.text):
                self.fault("truncated")
            if self.text[self.pos] != expected:
                self.fault("bad_escape")
            self.pos += 1
        low = self.hex_unit()
        if not 0xDC00 <= low <= 0xDFFF:
            self.fault("bad_escape")
        return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))

    def hex_unit(self) -> int:
        digits = _HEX.match(self.text, self.pos, self.pos + 4).group()  # type: ignore[union-attr]
        if len(digits) < 4:
            self.fault("truncated" if self.pos + len(digits) == len(self.text) else "bad_escape")
        self.pos += 4
        return int(digits, 16)

    def cut_within_a_character(self) -> bool:
        if len(self.text) - self.pos > 3:
            return False
        try:
            self.text[self.pos :].encode("utf-8", "surrogateescape").decode("utf-8")
        except UnicodeDecodeError as error:
            return error.start == 0 and error.reason == "unexpected end of data"
        return False


_quote = json.encoder.encode_basestring


def dumps(value: Any) -> str:
    """Compact JSON of ``value`` as the standard library writes it, whatever its depth, `RawNumber` included.

    Takes what reading JSON gives: dict with text names, list, text, numbers, bool, None. Raises TypeError for
    anything else and ValueError for NaN and infinities, since those would not read back.
    """
    pieces: list[str] = []
    open_: list[tuple[Iterator[Any], str]] = [(iter((value,)), "")]
    first = True
    while open_:
        rest, closer = open_[-1]
        for item in rest:
            if not first:
                pieces.append(",")
            first = False
            if closer == "}":
                name, item = item
                if not isinstance(name, str):
                    raise TypeError(f"A JSON object's names are text, not {type(name).__name__}.")
                pieces.append(_quote(name) + ":")
            if isinstance(item, dict | list):
                is_object = isinstance(item, dict)
                pieces.append("{" if is_object else "[")
                open_.append((iter(item.items() if isinstance(item, dict) else item), "}" if is_object else "]"))
                first = True
                break
            pieces.append(_scalar(item))
        else:
            pieces.append(closer)
            open_.pop()
            first = False
    return "".join(pieces)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, RawNumber):
        return value.text
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value, allow_nan=False)
    raise TypeError(f"{type(value).__name__} is no JSON; use text, numbers, true, false, null, lists and objects.")
