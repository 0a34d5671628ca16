"""The wire format: frozen values as camelCase JSON; unknown fields are ignored."""

from typing import Annotated, Final, TypeVar

import msgspec

VERSION: Final = 1
"""The version of the wire format; it grows when a field changes its meaning, not for new fields."""

Milliseconds = Annotated[float, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]

MessageT = TypeVar("MessageT")


def wire_name(field: str) -> str:
    """Return a field's name on the wire: camelCase, with `_s` spelt out as in `leaseSeconds`."""
    first, *rest = field.removesuffix("_s").split("_")
    seconds = "Seconds" if field.endswith("_s") else ""
    return first + "".join(word.capitalize() for word in rest) + seconds


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename=wire_name):
    """A frozen value, snake_case here and camelCase on the wire; unknown fields are ignored."""


class UnreadableMessageError(ValueError):
    """A message does not match its type; the text names the path of the wrong field."""


def encode(message: msgspec.Struct) -> bytes:
    """Encode the message as JSON in UTF-8."""
    return msgspec.json.encode(message)


def decode(body: bytes | str, kind: type[MessageT]) -> MessageT:
    """Decode a message of the given type.

    Raises:
        UnreadableMessageError: with the path of the wrong field, as in `$.jobs[0].fence`.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise UnreadableMessageError(str(problem)) from problem
