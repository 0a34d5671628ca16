"""API checks: does this API answer as it should?"""

from collections.abc import Collection
from typing import Final, NoReturn

import msgspec

from contract.assertions import Source
from contract.checks import ApiSpec, is_scripted
from contract.job import Variable
from contract.requests import HttpRequest
from contract.result import CheckFailed, Failure, LogLine
from redaction.policy import secret_names
from runners.net.http.exchange import HttpExchange, HttpResponse
from runners.net.http.probe import probe
from runners.runner import Observation, RunContext
from runners.scripting.node.protocol import (
    LIMIT_BYTES,
    Done,
    ScriptJob,
    ScriptName,
    ScriptPhase,
    ScriptRequest,
    ScriptResponse,
    apply_changes,
    render,
    render_response,
    render_sent,
    replace_body,
)
from runners.scripting.node.run import ScriptRunner
from runners.scripting.node.verdict import fail_no_time, fail_too_large
from runners.timing import time_limit


class ApiRunner:
    """Requests APIs."""

    spec = ApiSpec

    async def observe(self, spec: ApiSpec, ctx: RunContext) -> Observation:
        """Send the request once, between the check's scripts if it has any.

        Raises:
            CheckFailed: of kind PROTOCOL, when the request cannot be sent as it is written.
            MissingRuntimeError: the check has scripts, and there is nothing to run them with.
        """
        sources = frozenset(assertion.source for assertion in spec.assertions)
        if is_scripted(spec):
            return await probe_with_scripts(spec, ctx, sources=sources)
        return await probe(spec.request, ctx, sources=sources)


LIMIT_S: Final = 10.0
"""How long each script may run."""
REQUEST_LIMIT_S: Final = 30.0
"""How long the request may take, with scripts around it or without."""
_LEAST_S: Final = 0.05
_GROUP_SETUP: Final = ScriptName("group-setup.js", "the group's setup script")
_GROUP_TEARDOWN: Final = ScriptName("group-teardown.js", "the group's teardown script")


async def probe_with_scripts(
    spec: ApiSpec, ctx: RunContext, *, sources: Collection[Source]
) -> Observation:
    """Run the scripts and send the request between them.

    Raises:
        MissingRuntimeError: the runtime is not there.
        NodeBrokeError, OSError: Node does not start.
    """
    harness = ctx.network.scripts()
    runtime = harness.runtimes.get(spec.runtime_id)
    async with ScriptRunner(harness, runtime, add_secret=ctx.workspace.add_secret) as runner:
        phases = _Phases(spec, ctx, runner)
        try:
            request = await phases.set_up()
            its = phases.context_of_the_request()
            seen = await probe(request, its, sources=sources, transform=phases.tear_down)
        except CheckFailed as failed:
            return Observation(failure=failed.failure, log=tuple(phases.log))
    return msgspec.structs.replace(
        seen, log=(*phases.log, *seen.log), script_failure=phases.failure
    )


class _Phases:
    """The scripts of one run, and what they pass to each other."""

    def __init__(self, spec: ApiSpec, ctx: RunContext, runner: ScriptRunner) -> None:
        self.log: list[LogLine] = []
        self.failure: Failure | None = None
        """How the first teardown script that failed did so. None: none failed."""
        self._spec, self._ctx, self._runner = spec, ctx, runner
        self._waited_s = 0.0
        """How long the request waited for the agent, which is no time of the run."""
        of_run = {**ctx.environment, "RUNTIME_VERSION": runner.runtime.id}
        self._given = {**ctx.location_secrets, **of_run}
        self._own = {one.key: one.value for one in ctx.variables}
        """The check's variables, which win over the run's own of the same name."""
        # What an operator sets takes nothing of what a check may pass.
        of_location = msgspec.json.encode(dict(ctx.location_secrets))
        self._limit_bytes = LIMIT_BYTES + len(of_location) - len("{}")
        self._env = {**self._given, **self._own}

    async def set_up(self) -> HttpRequest:
        """The request as the setup scripts leave it.

        Raises:
            CheckFailed: one of them failed.
        """
        request, spec = self._spec.request, self._spec
        own = ScriptName(spec.setup_script_path or "setup.js", "the setup script")
        for name, script in ((_GROUP_SETUP, spec.group_setup_script), (own, spec.setup_script)):
            if script is not None:
                job = self._job(name, "setup", script, request=render(request))
                done = await self._done(job)
                if done.request is not None:
                    request = apply_changes(request, done.request, file=name.file)
        return request

    def context_of_the_request(self) -> RunContext:
        """With the variables as the scripts left them; those that they were given stay theirs."""
        return msgspec.structs.replace(
            self._ctx,
            variables=tuple(
                Variable(key=key, value=value)
                for key, value in self._env.items()
                if key in self._own or self._given.get(key) != value
            ),
            timeout_s=min(REQUEST_LIMIT_S, self._left_s()),
        )

    async def tear_down(self, exchanged: HttpExchange) -> HttpExchange:
        """What the teardown scripts leave of the answer; each runs, whatever the others did."""
        spec = self._spec
        self._waited_s = exchanged.waited_s
        own = ScriptName(spec.teardown_script_path or "teardown.js", "the teardown script")
        of_group = (_GROUP_TEARDOWN, spec.group_teardown_script)
        for name, script in ((own, spec.teardown_script), of_group):
            if script is not None:
                exchanged = await self._torn_down(exchanged, name, script)
        return exchanged

    async def _torn_down(
        self, exchanged: HttpExchange, name: ScriptName, script: str
    ) -> HttpExchange:
        answer = exchanged.answer
        if answer is None or exchanged.failure is not None:
            self._warn(f"There was no whole response, so {name.words} did not run.", "teardown")
            return exchanged
        try:
            body = await self._body_after(exchanged, answer, name, script)
        except CheckFailed as failed:
            self.failure = self.failure or failed.failure
            return exchanged
        return msgspec.structs.replace(exchanged, answer=replace_body(answer, body))

    async def _body_after(
        self, exchanged: HttpExchange, answer: HttpResponse, name: ScriptName, script: str
    ) -> str:
        if answer.body_cut or answer.body_bytes > LIMIT_BYTES:
            self._fail(fail_too_large(name, "The response", answer.body_bytes), "teardown")
        response = render_response(answer, exchanged.timings)
        request = render_sent(exchanged.sent)
        job = self._job(name, "teardown", script, request=request, response=response)
        done = await self._done(job)
        return response.body if done.body is None else done.body

    def _job(
        self,
        name: ScriptName,
        phase: ScriptPhase,
        script: str,
        *,
        request: ScriptRequest,
        response: ScriptResponse | None = None,
    ) -> ScriptJob:
        if "REQUEST_URL" not in self._own:
            self._given["REQUEST_URL"] = self._env["REQUEST_URL"] = request.url
        return ScriptJob(
            file=name.file,
            words=name.words,
            phase=phase,
            script=script,
            env=self._env,
            secret_names=secret_names(self._ctx.variables),
            limit_bytes=self._limit_bytes,
            region=self._ctx.environment.get("REGION", ""),
            request=request,
            response=response,
            snippets={one.path: one.content for one in self._spec.snippets},
            modules=str(self._runner.runtime.modules),
        )

    async def _done(self, job: ScriptJob) -> Done:
        """What a script left behind.

        Raises:
            CheckFailed: it failed.
        """
        if job.passed_bytes > job.limit_bytes:
            counted = job.passed_bytes - (job.limit_bytes - LIMIT_BYTES)
            self._fail(fail_too_large(job.name, "What is passed", counted), job.phase)
        limit_s = min(LIMIT_S, self._left_s())
        if limit_s <= _LEAST_S:
            self._fail(fail_no_time(job.name), job.phase)
        limit = f"its limit of {time_limit(LIMIT_S)}"
        if limit_s < LIMIT_S:
            limit = f"the run's limit of {time_limit(self._ctx.stated_limit_s)}"
        ran = await self._runner.run(job, limit_s=limit_s, limit=limit)
        self.log += (msgspec.structs.replace(line, phase=job.phase) for line in ran.log)
        if isinstance(ran.ending, Failure):
            raise _as_exception(ran.ending)
        self._env = ran.ending.env
        return ran.ending

    def _left_s(self) -> float:
        return max(_LEAST_S, self._ctx.timeout_s + self._waited_s - self._runner.elapsed_s())

    def _warn(self, message: str, phase: ScriptPhase) -> None:
        at_ms = self._runner.elapsed_s() * 1000
        self.log.append(LogLine(after_ms=at_ms, level="WARN", message=message, phase=phase))

    def _fail(self, failure: Failure, phase: ScriptPhase) -> NoReturn:
        """Fail before there is a process.

        Raises:
            CheckFailed: with this failure.
        """
        self._warn(failure.message, phase)
        raise _as_exception(failure)


def _as_exception(failure: Failure) -> CheckFailed:
    return CheckFailed(failure.kind, failure.message, failure.detail)
