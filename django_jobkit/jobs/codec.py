"""Between a status and the bytes of its file, strict and byte-compatible with the Go services.

What a class's fields mean in JSON is the business of `fields`. Reading goes through the standard library's parser
and, where that can't vouch for the document, once more through `strictjson`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeVar

from ..exceptions import StatusNotEncodable
from . import fields, strictjson
from .status import Status

S = TypeVar("S", bound=Status)

_MAY_BE_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def encode(status: Status) -> bytes:
    """The bytes of the status file. Raises `StatusNotEncodable` if some value can't stand in one."""
    try:
        document = fields.write_object(status, type(status))
        for name, value in status.extra.items():
            if name in fields.members_of(type(status)):
                raise StatusNotEncodable(f"extra[{name!r}] has the name of a field; set the field instead.")
            document[name] = value
        if status.extra:
            strictjson.dumps(status.extra)  # as for a field of any JSON: takes only what reads back equal
        return _dumps(document).encode("utf-8")
    except UnicodeEncodeError as error:
        raise StatusNotEncodable(
            f"A text of the status isn't valid Unicode: {error.reason}.", kind="invalid_utf8"
        ) from error
    except StatusNotEncodable:
        raise
    except ValueError as error:
        raise StatusNotEncodable(f"A number of the status can't stand in JSON: {error}", kind="bad_number") from error
    except TypeError as error:
        raise StatusNotEncodable(str(error)) from error


def decode(data: bytes, status_class: type[S]) -> S:
    """The status that the bytes hold. Raises `StatusCorrupt`, whose ``kind`` says what is wrong, and nothing else.

    Members are matched by their exact names; those the class doesn't know come into ``extra``. A member that is
    absent or ``null`` leaves the field's default.
    """
    known = fields.members_of(status_class)
    found: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in _read_members(data):
        if (member := known.get(name)) is None:
            extra[name] = value
        elif value is not None:
            found[name] = member.read(value, name)
    status = fields.build(status_class, found)
    if extra:
        status.extra.update(extra)
    return status


def _read_members(data: bytes) -> Iterable[tuple[str, Any]]:
    if _MAY_BE_LONE_SURROGATE.search(data) is None:
        try:
            document = _decoder.decode(data.decode("utf-8"))
        except (ValueError, RecursionError):
            pass  # read again below, by the reader that says what is wrong, or that there is just much nesting
        else:
            if isinstance(document, dict):
                return document.items()
    return strictjson.members(data)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_float=strictjson.parse_float
)
_encoder: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def _dumps(document: dict[str, Any]) -> str:
    try:
        return _encoder.encode(document)
    except (RecursionError, TypeError):  # nested deeply, or with a number that Python can't hold
        return strictjson.dumps(document)
