"""Searches texts for secrets that are left."""

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from contract.result import Outcome
from redaction.clean import ScanLimits
from redaction.scanner.decoding import Layers
from redaction.scanner.needles import Needles

_USUAL: Final = ScanLimits()


class TextScan:
    """Searches many small texts for the same secrets."""

    def __init__(self, secrets: Iterable[str], *, limits: ScanLimits = _USUAL) -> None:
        self._needles = Needles(secrets)
        self._limits = limits
        self._layers = Layers(self._needles, limits, self._holds)

    def finds(self, text: bytes) -> bool:
        """Whether one of the secrets is in the text.

        Raises:
            UnscannableError: one could be in it and not be found.
        """
        return bool(self._needles) and self._layers.hold(text, 0)

    def finds_in_log(self, outcome: Outcome) -> bool:
        """Whether lines of the log are together a secret of several lines.

        Raises:
            UnscannableError: one could be in it and not be found.
        """
        if not self._needles.has_lines or len(outcome.log) < 2:
            return False
        printed = "\n".join(line.message for line in outcome.log)
        return self.finds(printed.encode("utf-8", "surrogatepass"))

    def _holds(self, body: bytes, depth: int) -> bool:
        # Only now: what opens archives is a megabyte that most agents never need.
        from redaction.scanner.scan import make_context  # noqa: PLC0415

        return make_context(self._needles, self._limits).holds(body, depth)


_APART: Final = "\n\x01\n"
_CLOSED: Final = (
    inspect.LiteralType, inspect.EnumType, inspect.IntType, inspect.FloatType, inspect.BoolType,
    inspect.NoneType, inspect.DateTimeType,
)  # fmt: skip


def collect_text(outcome: Outcome) -> bytes:
    """All texts of an outcome that somebody else may have written, joined."""
    return _APART.join(_texts(outcome)).encode("utf-8", "surrogatepass")


def _texts(value: Any) -> Iterator[str]:
    match value:
        case None | bool() | Enum():
            return
        case msgspec.Struct():
            for name in _open_fields(type(value)):
                yield from _texts(getattr(value, name))
        case dict():
            for key, item in value.items():
                yield from _texts(key)
                yield from _texts(item)
        case tuple() | list():
            for item in value:
                yield from _texts(item)
        case _:
            yield str(value)


@lru_cache(maxsize=256)
def _open_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    known = inspect.type_info(kind)
    fields = known.fields if isinstance(known, inspect.StructType) else ()
    return tuple(field.name for field in fields if not _is_closed(field.type))


def _is_closed(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return all(map(_is_closed, kind.types))
    return isinstance(kind, _CLOSED)
