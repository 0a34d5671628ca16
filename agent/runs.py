"""Gives each job its runner and what that may use."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from contract.checks import CheckSpec, Lane, lane
from contract.job import Job, RunSource
from contract.result import Outcome
from runners.kit.isolation.workspace import Workspace
from runners.kit.job_environment import job_environment
from runners.kit.runner import NOTHING, Network, PingBook, RunContext, Runner

_SPARE_S: Final = 0.5
"""So long before its deadline a runner ends by itself, and says what it was waiting for."""

Execute = Callable[[Job, Runner[Any], RunContext], Coroutine[Any, Any, Outcome]]


class Runs:
    """Runs jobs with the given runners, on the process's one network."""

    def __init__(
        self,
        runners: Iterable[Runner[Any]],
        execute: Execute,
        *,
        network: Network,
        pings: PingBook,
        location_secrets: Mapping[str, str] = NOTHING,
    ) -> None:
        """`location_secrets`: what scripts may read of the agent's own environment."""
        self._by_spec: dict[type[CheckSpec], Runner[Any]] = {
            runner.spec: runner for runner in runners
        }
        self._execute = execute
        self._network = network
        self._pings = pings
        self._location_secrets = location_secrets

    def can_run(self, job: Job) -> bool:
        """Whether there is a runner for this job."""
        return type(job.spec) in self._by_spec

    def run(self, job: Job, workspace: Workspace) -> Coroutine[Any, Any, Outcome]:
        """Look once, and judge; whatever it raises is our fault, never the target's."""
        has_scripts = lane(job.spec) is not Lane.UPTIME
        ctx = RunContext(
            network=self._network,
            pings=self._pings,
            timeout_s=max(job.deadline_s - _SPARE_S, job.deadline_s * 0.9),
            limit_s=job.deadline_s,
            variables=job.variables,
            environment=job_environment(job) if has_scripts else NOTHING,
            location_secrets=self._location_secrets if has_scripts else NOTHING,
            client_certificates=job.client_certificates,
            proxy_url=job.proxy_url,
            workspace=workspace,
            keeps_files=job.run_source is not RunSource.SCHEDULER,
        )
        return self._execute(job, self._by_spec[type(job.spec)], ctx)
