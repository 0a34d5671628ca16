"""Rows as they travel between engines, their digests, and why they cannot travel."""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

Value = None | bool | int | float | str | bytes
Row = tuple[Value, ...]
"""The values of a table's columns, in their order; JSON as its text, letter by letter."""

_INTEGER: Final = struct.Struct(">q")
_FLOAT: Final = struct.Struct(">d")
_LENGTH: Final = struct.Struct(">Q")


class MigrationError(Exception):
    """The database cannot be moved: one sentence."""


def changed_source(target: str, what: str) -> MigrationError:
    """The refusal to go on with a target whose rows are not those of the source."""
    mend = f"empty {target} and run the command again"
    return MigrationError(f"{what} differs: the source changed after it was copied; {mend}")


def interrupted(target: str, problem: Exception) -> MigrationError:
    """What a disk or a server that fails leads to."""
    return MigrationError(f"{target} failed: {problem}; run the command again to go on")


@dataclass(frozen=True, slots=True)
class TableDigest:
    """What is in a table, whichever engine keeps it."""

    rows: int
    sha256: str
    """Over all values of all rows, in the order of the primary key."""


def digest(rows: Iterable[Row]) -> TableDigest:
    """The digest of a table whose rows come in the order of its primary key."""
    seen, count = hashlib.sha256(), 0
    for row in rows:
        seen.update(b"".join(map(_encode, row)))
        count += 1
    return TableDigest(count, seen.hexdigest())


def size_of(row: Row) -> int:
    """About how many bytes a row has."""
    return sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)


def _encode(value: Value) -> bytes:
    """A value with its type and length, so that no two rows have one encoding."""
    match value:
        case None:
            return b"n"
        case bool():
            return b"t" if value else b"f"
        case int():
            return b"i" + _INTEGER.pack(value)
        case float():
            return b"d" + _FLOAT.pack(value + 0.0)  # SQLite keeps no negative zero
        case str():
            encoded = value.encode("utf-8", "surrogatepass")
            return b"s" + _LENGTH.pack(len(encoded)) + encoded
        case _:
            return b"y" + _LENGTH.pack(len(value)) + value
