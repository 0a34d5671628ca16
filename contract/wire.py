"""How the language is written down: frozen values, camelCase JSON, tolerant of new fields."""

from typing import Annotated, Final, TypeVar

import msgspec

VERSION: Final = 1
"""Grows when a field changes its meaning; a new field alone leaves it as it is."""

Milliseconds = Annotated[float, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]

MessageT = TypeVar("MessageT")


def wire_name(field: str) -> str:
    """The wire's spelling of a field: camelCase, with `_s` spelt out as in `leaseSeconds`."""
    first, *rest = field.removesuffix("_s").split("_")
    seconds = "Seconds" if field.endswith("_s") else ""
    return first + "".join(word.capitalize() for word in rest) + seconds


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename=wire_name):
    """A frozen value that is snake_case here and camelCase on the wire; unknown fields pass."""


class UnreadableMessageError(ValueError):
    """A message does not fit the language; the text names the path of the wrong field."""


def encode(message: msgspec.Struct) -> bytes:
    """The message as JSON in UTF-8."""
    return msgspec.json.encode(message)


def decode(body: bytes | str, kind: type[MessageT]) -> MessageT:
    """Read one message of the given kind.

    Raises:
        UnreadableMessageError: with the path of the wrong field, as in `$.jobs[0].fence`.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UnreadableMessageError(str(problem)) from problem
