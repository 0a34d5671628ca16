"""What a run tells of browsers that it starts, and whether it lost one by no doing of its own."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

_MOST: Final = 100
_LONG_MS: Final = 10_000
"""A browser is there after a few tenths of a second: the machine was too slow, and no script."""
_NO_ANSWER: Final = "It had not answered when its run was over."

_Launch = Annotated[str, Meta(max_length=40)]
_Epoch = Annotated[float, Meta(ge=0, le=1e14)]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="fact", rename="camel", gc=False):
    launch: _Launch = ""
    """The same in all that is told of one browser."""
    own: bool = False
    """The script gave options of its own, or kept its process busy, which may be why."""
    at: _Epoch = 0
    """By the calendar, in ms."""


class Launching(_Fact, frozen=True, kw_only=True, tag="launching"):
    """A browser is being started."""


class Launched(_Fact, frozen=True, kw_only=True, tag="launched"):
    """It did start."""


class LaunchFailed(_Fact, frozen=True, kw_only=True, tag="launchFailed"):
    """It did not."""

    message: Annotated[str, Meta(max_length=8_000)]
    waited_ms: Annotated[float, Meta(ge=0, le=1e9)] = 0


LaunchFact = Launching | Launched | LaunchFailed


class LostLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that did not start, for which the machine may be to blame."""

    message: str
    is_slow: bool
    """It was waited for so long that the machine is to blame, even if it would start now."""


class Launches:
    """The browsers of one run."""

    def __init__(self) -> None:
        self._open: dict[str, Launching] = {}
        self._failed: list[LaunchFailed] = []

    def take(self, fact: LaunchFact) -> None:
        """Note what was told before anybody asked the run to end."""
        match fact:
            case Launching() if len(self._open) < _MOST:
                self._open[fact.launch] = fact
            case Launched():
                self._open.pop(fact.launch, None)
            case LaunchFailed() if len(self._failed) < _MOST:
                self._open.pop(fact.launch, None)
                self._failed.append(fact)
            case _:
                pass

    def forgive(self) -> None:
        """They failed by the script's own doing: nothing was lost."""
        self._open.clear()
        self._failed.clear()

    def lost(self, *, stopped_at_ms: float | None) -> LostLaunch | None:
        """The one to be told of. None: all did start.

        `stopped_at_ms`: when the run was asked to end, while its script waited as well. None: it
        was not, or its script kept everything up.
        """
        until_ms = 0 if stopped_at_ms is None else stopped_at_ms
        of_failed = (_lost(one, one.message, one.waited_ms) for one in self._failed)
        of_open = (_lost(one, _NO_ANSWER, until_ms - one.at) for one in self._open.values())
        return min([*of_failed, *of_open], key=lambda one: not one.is_slow, default=None)


def _lost(fact: LaunchFact, message: str, waited_ms: float) -> LostLaunch:
    return LostLaunch(message=message, is_slow=waited_ms >= _LONG_MS and not fact.own)
