"""What a badge says of a result; pure."""

import math
from collections.abc import Iterable
from typing import Final

from service.badges.picture import Badge
from service.results.model import RunStatus, Standing

_SAID: Final = {
    RunStatus.PASSED: ("passing", "#2a8a3e"),
    RunStatus.DEGRADED: ("degraded", "#b06f00"),
    RunStatus.FAILED: ("failing", "#c4342b"),
    RunStatus.TIMED_OUT: ("failing", "#c4342b"),
    RunStatus.MISSED: ("no result", "#777"),
    RunStatus.ERROR: ("no result", "#777"),
}

_WORST_LAST: Final = (
    *(RunStatus.PASSED, RunStatus.MISSED, RunStatus.ERROR, RunStatus.DEGRADED),
    *(RunStatus.TIMED_OUT, RunStatus.FAILED),
)


def badge(name: str, newest: Standing | None, *, with_time: bool) -> Badge:
    """Of a check with this name; None: it has no result yet."""
    if newest is None:
        return Badge(label=name, message="no result", colour="#777")
    message, colour = _SAID[newest.status]
    if with_time and newest.response_time_ms is not None:
        message += f" {math.floor(newest.response_time_ms)} ms"
    return Badge(label=name, message=message, colour=colour)


def worst(newest: Iterable[Standing]) -> Standing | None:
    """The result that a group is judged by. None: none of its checks has one."""
    return max(newest, key=lambda one: _WORST_LAST.index(one.status), default=None)
