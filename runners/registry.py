"""All runners: the one place where a check type is registered."""

from types import MappingProxyType
from typing import Any, Final

from contract.checks import SPEC_TYPES, CheckSpec
from runners.api import ApiRunner
from runners.browser import BrowserRunner
from runners.dns import DnsRunner
from runners.heartbeat import HeartbeatRunner
from runners.icmp import IcmpRunner
from runners.multi_step import MultiStepRunner
from runners.playwright import PlaywrightRunner
from runners.runner import Runner
from runners.tcp import TcpRunner
from runners.url import UrlRunner

RUNNERS: Final[tuple[Runner[Any], ...]] = (
    UrlRunner(),
    ApiRunner(),
    TcpRunner(),
    DnsRunner(),
    IcmpRunner(),
    HeartbeatRunner(),
    BrowserRunner(),
    MultiStepRunner(),
    PlaywrightRunner(),
)
"""Adding a check type adds a line here."""

_BY_SPEC: Final = MappingProxyType({runner.spec: runner for runner in RUNNERS})

RUNNABLE: Final = frozenset(kind for kind, spec in SPEC_TYPES.items() if spec in _BY_SPEC)
"""The check types that there is a runner for."""


class NoRunnerError(LookupError):
    """There is no runner for this spec; the job belongs to somebody else."""


def runner_for(spec: CheckSpec) -> Runner[Any]:
    """The runner that takes this spec.

    Raises:
        NoRunnerError: there is none.
    """
    runner = _BY_SPEC.get(type(spec))
    if runner is None:
        raise NoRunnerError(f"There is no runner for {type(spec).__name__}.")
    return runner
