"""Ids: UUIDs of version 7, so that rows sort by the time that stands in their id."""

import os
from uuid import UUID


def new_id(at_ms: int) -> str:
    """A new id that carries the given time (ms since 1970)."""
    tail = int.from_bytes(os.urandom(10), "big")
    value = (at_ms << 80) | tail
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def time_of(row_id: str) -> int | None:
    """The time (ms since 1970) inside an id of ours. None: it is no id of ours."""
    try:
        found = UUID(row_id)
    except ValueError:
        return None
    return found.int >> 80 if found.version == 7 else None
