"""Ids: UUIDs of version 7, so that rows sort by the time that stands in their id."""

import os
from collections.abc import Iterable
from typing import Final
from uuid import UUID

_RANDOM_BYTES: Final = 10
_VARIANTS: Final = {f"{number:x}": "89ab"[number & 3] for number in range(16)}


def new_id(at_ms: int) -> str:
    """A new id that carries the given time (ms since 1970)."""
    return _spelled(at_ms, os.urandom(_RANDOM_BYTES).hex())


def new_ids(at_ms: Iterable[int]) -> list[str]:
    """New ids that carry these times (ms since 1970); the system is asked for chance once."""
    times = list(at_ms)
    chance = os.urandom(_RANDOM_BYTES * len(times)).hex()
    width = 2 * _RANDOM_BYTES
    return [
        _spelled(time, chance[place * width : (place + 1) * width])
        for place, time in enumerate(times)
    ]


def least_id(at_ms: int) -> str:
    """Ids that carry an earlier time sort before it, all others not."""
    return _spelled(at_ms, "0" * 2 * _RANDOM_BYTES)


def _spelled(at_ms: int, chance: str) -> str:
    time = f"{at_ms:012x}"
    variant = _VARIANTS[chance[3]] + chance[4:7]
    return f"{time[:8]}-{time[8:]}-7{chance[:3]}-{variant}-{chance[7:19]}"


def time_of(row_id: str) -> int | None:
    """The time (ms since 1970) inside an id of ours. None: it is no id of ours."""
    try:
        found = UUID(row_id)
    except ValueError:
        return None
    return found.int >> 80 if found.version == 7 else None
