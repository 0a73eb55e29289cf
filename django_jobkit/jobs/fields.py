"""What a dataclass's fields mean in JSON, worked out once per class from its annotations."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import operator
import types
import typing
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from ..exceptions import StatusCorrupt, StatusNotEncodable
from . import rfc3339, strictjson
from .status import OMIT, State

T = TypeVar("T")

_INT64: Final = range(-(2**63), 2**63)
_STATES: Final = {state.value: state for state in State}

Read = Callable[[Any, str], Any]  # (JSON value, where) -> the field's value; raises StatusCorrupt
Write = Callable[[Any, str], Any]  # (the field's value, where) -> JSON value; raises StatusNotEncodable


class _Type(NamedTuple):
    read: Read
    write: Write
    none: Any  # the JSON of None, where the field has to be written
    zero: Any  # the field's value where it has no default
    is_zero: Callable[[Any], bool]  # what the rule "zero" leaves out


class _Member(NamedTuple):
    read: Read
    write: Write
    none: Any
    zero: Any
    is_zero: Callable[[Any], bool]
    omit: str


_known: dict[type[Any], dict[str, _Member]] = {}


def members_of(owner: type[Any]) -> dict[str, _Member]:
    """The members of a dataclass's JSON object by name, in order. Raises TypeError for a field no file can hold."""
    if (found := _known.get(owner)) is None:
        hints = typing.get_type_hints(owner)
        found = _known[owner] = {
            field.name: _Member(
                *_type_of(hints[field.name], f"{owner.__qualname__}.{field.name}"),
                omit=field.metadata.get(OMIT, "never"),
            )
            for field in dataclasses.fields(owner)
        }
    return found


def write_object(value: Any, owner: type[Any]) -> dict[str, Any]:
    """The JSON object of a dataclass, what its fields' rules omit left out. Raises `StatusNotEncodable`."""
    document: dict[str, Any] = {}
    for name, member in members_of(owner).items():
        part = getattr(value, name)
        if member.omit == "zero" and member.is_zero(part):
            continue
        written = member.none if part is None else member.write(part, name)
        if member.omit == "empty" and written in (None, "", {}, []):
            continue
        document[name] = written
    return document


def build(owner: type[T], fields: dict[str, Any]) -> T:
    """An instance from the fields that were read; the others have their defaults, or their type's zero value."""
    for field in dataclasses.fields(typing.cast("Any", owner)):
        if field.name not in fields and field.init and field.default is field.default_factory is dataclasses.MISSING:
            fields[field.name] = members_of(owner)[field.name].zero
    return owner(**fields)


# --- the types a field may have -----------------------------------------------------------------------------------


def _type_of(hint: Any, where: str) -> _Type:
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if set(arguments) == {State, str}:
            return _STATE
        inner = [part for part in arguments if part is not type(None)]
        if len(inner) == 1:
            kind = _type_of(inner[0], where)
            # A time, a list and a dict can be None anyway; of the others None is a value apart from their zero.
            return (
                kind
                if kind.is_zero in (_is_unset_time, _is_none)
                else kind._replace(none=None, zero=None, is_zero=_is_none)
            )
    if hint is list or origin is list:
        return _list_of(_type_of(arguments[0] if arguments else Any, where))
    if hint is dict or (origin is dict and arguments[0] is str):
        return _dict_of(_type_of(arguments[1] if arguments else Any, where))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _nested(hint)
    raise TypeError(
        f"{where}: a status file can't hold {hint!r}. Use str, int, float, bool, bytes, datetime, Any, list[...], "
        f"dict[str, ...], a dataclass, or one of these | None."
    )


def _reads(*accepted: type) -> Read:
    def read(value: Any, where: str) -> Any:
        if type(value) not in accepted:
            _wrong_type(value, where)
        return value

    return read


def _writes(*accepted: type) -> Write:
    def write(value: Any, where: str) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise StatusNotEncodable(f"{where} is {accepted[0].__name__}, not {type(value).__name__}.")
        return value

    return write


def _wrong_type(value: Any, where: str) -> NoReturn:
    raise StatusCorrupt(f"{where} holds JSON of another kind ({type(value).__name__}).", kind="wrong_type")


def _read_int(value: Any, where: str) -> int:
    if isinstance(value, strictjson.RawNumber) and value.text.lstrip("-").isdigit():
        raise StatusCorrupt(f"{where} is past 64 bits.", kind="out_of_range")
    if isinstance(value, float | strictjson.RawNumber):
        raise StatusCorrupt(f"{where} is no integer.", kind="not_an_integer")
    if type(value) is not int:
        _wrong_type(value, where)
    if value not in _INT64:
        raise StatusCorrupt(f"{where} is past 64 bits.", kind="out_of_range")
    return value


def _write_int(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise StatusNotEncodable(f"{where} is int, not {type(value).__name__}.")
    if value not in _INT64:
        raise StatusNotEncodable(f"{where} is past 64 bits.", kind="bad_number")
    return int(value)


def _read_float(value: Any, where: str) -> float:
    if isinstance(value, strictjson.RawNumber):
        raise StatusCorrupt(f"{where} is past what a double holds.", kind="out_of_range")
    if type(value) not in (int, float):
        _wrong_type(value, where)
    try:
        return float(value)
    except OverflowError:
        raise StatusCorrupt(f"{where} is past what a double holds.", kind="out_of_range") from None


def _write_float(value: Any, where: str) -> float:
    try:
        return float(_writes(float, int)(value, where))
    except OverflowError:
        raise StatusNotEncodable(f"{where} is past what a double holds.", kind="bad_number") from None


def _read_time(value: Any, where: str) -> datetime | None:
    if not isinstance(value, str):
        _wrong_type(value, where)
    try:
        return rfc3339.parse(value)
    except ValueError as error:
        raise StatusCorrupt(f"{where}: {error}.", kind="bad_time") from error


def _write_time(value: Any, where: str) -> str:
    if not isinstance(value, datetime):
        raise StatusNotEncodable(f"{where} is datetime, not {type(value).__name__}.")
    try:
        return rfc3339.render(value)
    except ValueError as error:
        raise StatusNotEncodable(f"{where}: {error}.", kind="bad_time") from error


def _read_bytes(value: Any, where: str) -> bytes:
    if not isinstance(value, str):
        _wrong_type(value, where)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise StatusCorrupt(f"{where} is not base64.", kind="wrong_type") from error


def _write_bytes(value: Any, where: str) -> str:
    return base64.b64encode(_writes(bytes)(value, where)).decode("ascii")


def _is_none(value: Any) -> bool:
    return value is None


def _is_unset_time(value: Any) -> bool:
    return value is None or (isinstance(value, datetime) and value.tzinfo is not None and rfc3339.is_zero(value))


def _write_any(value: Any, _where: str) -> Any:
    strictjson.dumps(value)  # the standard library would write tuples and numbers as names, which read back unequal
    return value


_SCALARS: Final[dict[Any, _Type]] = {
    str: _Type(_reads(str), _writes(str), "", "", operator.not_),
    bool: _Type(_reads(bool), _writes(bool), False, False, operator.not_),
    int: _Type(_read_int, _write_int, 0, 0, operator.not_),
    float: _Type(_read_float, _write_float, 0, 0.0, operator.not_),
    bytes: _Type(_read_bytes, _write_bytes, "", b"", operator.not_),
    datetime: _Type(_read_time, _write_time, rfc3339.ZERO, None, _is_unset_time),
    Any: _Type(lambda value, where: value, _write_any, None, None, _is_none),
}
_STATE: Final = _Type(
    lambda value, where: _STATES.get(_reads(str)(value, where), value), _writes(str), "", "", operator.not_
)


def _list_of(item: _Type) -> _Type:
    return _Type(
        lambda value, where: [_or_zero(item, part, where) for part in _reads(list)(value, where)],
        lambda value, where: [
            item.none if part is None else item.write(part, where) for part in _writes(list)(value, where)
        ],
        [],
        None,
        _is_none,
    )


def _dict_of(item: _Type) -> _Type:
    return _Type(
        lambda value, where: {
            name: _or_zero(item, part, f"{where}.{name}") for name, part in _reads(dict)(value, where).items()
        },
        lambda value, where: {
            _writes(str)(name, f"a name in {where}"): item.none if part is None else item.write(part, where)
            for name, part in _writes(dict)(value, where).items()
        },
        {},
        None,
        _is_none,
    )


def _or_zero(item: _Type, value: Any, where: str) -> Any:
    return item.zero if value is None else item.read(value, where)


def _nested(owner: type[Any]) -> _Type:
    # The members are looked up when they are needed: a class may nest itself.
    def read(value: Any, where: str) -> Any:
        members = members_of(owner)
        fields = {
            name: members[name].read(part, f"{where}.{name}")
            for name, part in _reads(dict)(value, where).items()
            if name in members and part is not None
        }
        return build(owner, fields)

    def write(value: Any, where: str) -> Any:
        return write_object(_writes(owner)(value, where), owner)

    def is_zero(value: Any) -> bool:
        members = members_of(owner)
        return value is None or all(members[name].is_zero(getattr(value, name)) for name in members)

    return _Type(read, write, None, None, is_zero)
