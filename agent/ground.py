"""What every part of one agent stands on."""

from dataclasses import dataclass, field
from typing import Any

from agent.backoff import Pace
from agent.client import ServiceClient
from agent.lifecycle import Lifecycle
from agent.metrics import Metrics
from agent.settings import Settings
from runners.kit.harness import Harness
from runners.kit.runner import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Makeup:
    """What an agent is made of besides its settings; tests and benchmarks bring their own."""

    runners: tuple[Runner[Any], ...]
    pace: Pace = field(default_factory=Pace)
    checks_itself: bool = True
    """Whether a type must pass the boot check before its jobs are claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Made once per process, before anything else."""

    agent_id: str
    settings: Settings
    makeup: Makeup
    client: ServiceClient
    lifecycle: Lifecycle
    metrics: Metrics
    harness: Harness | None = None
    """What scripts run with. None: no script runs here."""
    scripts_problem: tuple[str, str] | None = None
    """Why none does, and the remedy. None: there is a harness, or no runtime."""
