"""Tells whether code that V8 compiled ahead is whole, and of the libraries that are there.

V8 looks at its own version and at lengths only; `code_cache.cjs` writes and reads the file.
"""

import zlib
from pathlib import Path
from typing import Final

import msgspec

_OF_ANOTHER_VERSION: Final = "it is damaged, or was made by another version of Picket"


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """What the index says of one library's file."""

    begin_byte: int
    """Of its code, behind the index."""
    length_bytes: int
    source_crc32: int
    """Of the text that the code was made of."""


def fault_of(cache: Path, modules: Path) -> str | None:
    """Why runs must not use it; None: they may. It reads the file and all that it is of.

    `modules`: the folder of the libraries that runs load.
    """
    try:
        index = _index_of(cache.read_bytes())
    except OSError as problem:
        return f"it cannot be read: {problem.strerror}"
    except msgspec.DecodeError:
        return _OF_ANOTHER_VERSION
    faults = (_fault_of_source(Path(name), modules, entry) for name, entry in index.items())
    return next((fault for fault in faults if fault is not None), None)


def _index_of(content: bytes) -> dict[str, _Entry]:
    checksum, _, rest = content.partition(b"\n")
    if checksum != str(zlib.crc32(rest)).encode():
        raise msgspec.DecodeError(_OF_ANOTHER_VERSION)
    return msgspec.json.decode(rest.partition(b"\n")[0], type=dict[str, _Entry])


def _fault_of_source(source: Path, modules: Path, entry: _Entry) -> str | None:
    if not source.is_relative_to(modules):
        return f"it is of {source}, outside {modules}"
    try:
        is_the_same = zlib.crc32(source.read_bytes()) == entry.source_crc32
    except OSError:
        is_the_same = False
    return None if is_the_same else f"{source} has changed since"
