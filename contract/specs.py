"""What a Spec says of its type, and the fields that several Specs share.

A new check type says here and in its Spec what it is; everybody else reads it from there.
"""

from typing import ClassVar

import msgspec

from contract.assertions import Assertion, Comparison, Source
from contract.wire import Wire


class Spec(Wire, frozen=True, kw_only=True):
    """Facts that hold for all checks of a type."""

    noun: ClassVar[str]
    """What people call such a check, as in "DNS monitor"."""
    sources: ClassVar[frozenset[Source]] = frozenset()
    """What its assertions may compare. Empty: it takes no assertions."""
    comparisons: ClassVar[frozenset[Comparison] | None] = None
    """The comparisons of its assertions. None: all that their sources take."""
    is_run_by_agents: ClassVar[bool] = True
    """Whether there is a runner for it; runs of the others are recorded as missed."""
    may_run_below_a_minute: ClassVar[bool] = False
    """Whether its frequency may be 0, with seconds between runs."""
    is_main: ClassVar[bool] = False
    """Whether each run takes a slot of the main lane."""
    needs_node: ClassVar[bool] = False
    """Whether it is code, which needs a Node runtime."""
    needs_browser: ClassVar[bool] = False
    """Whether it needs a browser too."""


class RequestSpec(Spec, frozen=True, kw_only=True):
    """A check that sends one request and may assert on what comes back."""

    passes_unreachable: ClassVar[bool] = False
    """Whether a target that refuses or does not answer passes with `should_fail`."""

    request: Wire
    assertions: tuple[Assertion, ...] = ()
    should_fail: bool = False


class TimedSpec(RequestSpec, frozen=True, kw_only=True):
    """A check with limits on its response time; each type has bounds and defaults of its own."""

    degraded_after_ms: float | None = msgspec.field(default=None, name="degradedResponseTime")
    failed_after_ms: float | None = msgspec.field(default=None, name="maxResponseTime")


class ScriptSpec(Spec, frozen=True, kw_only=True):
    """A check that is code."""

    is_main = True
    needs_node = True
