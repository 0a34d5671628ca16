"""What this agent can run on its machine, and why it cannot run the rest."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import structlog

from agent.api_client.errors import KeyRefusedError, VersionRefusedError
from agent.api_client.hello import Handshake, platform_name, runtimes, served_slots
from agent.api_client.retry import Backoff
from agent.jobs.dispatcher import Dispatcher
from agent.jobs.faults import MachineFault
from agent.self_test import (
    API_WITH_SCRIPTS,
    Trial,
    TypeChecked,
    boot_check,
    find_missing,
    summarize,
)
from agent.wiring import AgentContext
from contract.agent_api import Hello, UnavailableType
from contract.checks import MAIN_LANE_TYPES, SPEC_TYPES, CheckSpec, CheckType, Lane
from contract.release import RELEASE
from runners.runner import Runner
from runners.scripting.harness import NEEDS_EXTRA
from sandbox.errors import HostError

_LONGEST_RECHECK_S: Final = 3600.0
_FIRST_RECHECK_S: Final = 10.0
"""How soon a type that was withdrawn is tried again; twice as long after each failure."""
_NO_PLACE_REMEDY: Final = "free the named resource; the agent tries again automatically"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What this agent has been found to run or not; what is in neither part is not tried yet."""

    working: frozenset[Trial] = frozenset()
    unavailable: tuple[UnavailableType, ...] = ()

    @property
    def check_types(self) -> tuple[CheckType, ...]:
        """The types whose jobs are claimed."""
        types = {one.check_type for one in self.working if not one.with_scripts}
        return tuple(kind for kind in SPEC_TYPES if kind in types)

    def updated(self, found: "Abilities") -> "Abilities":
        """These abilities, with those that a later check found in their place.

        A cause that differs in its figures only stays as it was reported.
        """
        tried = found.working | {_find_trial(one) for one in found.unavailable}
        still = (one for one in self.unavailable if _find_trial(one) not in tried)
        known = {one.key: one for one in self.unavailable}
        again = (known.get(one.key, one) for one in found.unavailable)
        ordered = sorted((*still, *again), key=lambda one: one.what)
        return Abilities(working=self.working - tried | found.working, unavailable=tuple(ordered))


def _find_trial(one: UnavailableType) -> Trial:
    return Trial(check_type=one.type, with_scripts=one.only_with_scripts)


async def first_abilities(context: AgentContext) -> Abilities:
    """Try what needs no Node, which is quick; of the rest, what has no use trying.

    Raises:
        OSError: there is no descriptor or port for the boot check.
    """
    trials = _list_trials(context)
    quick = {one for one in trials if not _needs_node(one)}
    missing = find_missing(trials - quick, context.harness, context.scripts_problem)
    return _add_found(Abilities(), (*await _try(context, quick), *missing))


async def learn(
    known: Abilities, context: AgentContext, handshake: Handshake, dispatcher: Dispatcher
) -> None:
    """Find out what else runs here, which takes seconds, and offer it then.

    Checks without scripts do not wait for a browser's first start. What fails is tried again: a
    machine that was busy then, or is put right later, must not cost the agent a type for its life.
    A type whose runs break on this machine is withdrawn until its check passes again.
    """
    trials, fault = _list_trials(context), None
    untried, wait_s = {one for one in trials if _needs_node(one)}, context.options.pace.recheck_s
    while True:
        if fault is not None:
            found, wait_s = _add_found(known, (_withdraw(fault),)), _first_recheck_s(context)
        else:
            found = _add_found(known, await _try_if_possible(context, untried))
        context.lifecycle.withdrawn(one.sentence for one in found.unavailable)
        if found != known:
            await _offer(found, context, handshake, dispatcher)
        known = found
        untried = trials - known.working
        fault = await _next_fault(dispatcher, known, wait_s if untried else None)
        wait_s = min(wait_s * 2, _LONGEST_RECHECK_S)


async def _next_fault(
    dispatcher: Dispatcher, known: Abilities, wait_s: float | None
) -> MachineFault | None:
    """The next fault of a type that is offered. None: there was none in time."""
    loop = asyncio.get_running_loop()
    ends_at = None if wait_s is None else loop.time() + wait_s
    while True:
        left_s = None if ends_at is None else max(0.0, ends_at - loop.time())
        fault = await dispatcher.faults.next(left_s)
        if fault is None or fault.trial in known.working:
            return fault


def _withdraw(fault: MachineFault) -> TypeChecked:
    problem, trial = fault.problem, fault.trial
    cause, remedy = summarize(str(problem)) or type(problem).__name__, _NO_PLACE_REMEDY
    if isinstance(problem, HostError):
        cause, remedy = problem.cause, problem.remedy
    why = UnavailableType(
        type=trial.check_type,
        cause=f"its runs broke on this machine: {cause}",
        remedy=remedy,
        only_with_scripts=trial.with_scripts,
    )
    return TypeChecked(trial=trial, unavailable=why)


def _first_recheck_s(context: AgentContext) -> float:
    return min(context.options.pace.recheck_s, _FIRST_RECHECK_S)


def build_hello(context: AgentContext, abilities: Abilities) -> Hello:
    """What this agent says of itself."""
    settings, types = context.settings, abilities.check_types
    slots = {Lane.UPTIME: settings.uptime_concurrency, Lane.MAIN: settings.job_concurrency}
    with_scripts = API_WITH_SCRIPTS in abilities.working
    return Hello(
        agent_id=context.agent_id,
        version=RELEASE,
        platform=platform_name(),
        runtimes=runtimes(None if context.harness is None else context.harness.runtimes),
        check_types=types,
        unavailable=abilities.unavailable,
        slots=served_slots(slots, types, with_scripts=with_scripts),
    )


def _list_trials(context: AgentContext) -> set[Trial]:
    """Everything that this agent has a runner for."""
    specs = {runner.spec for runner in context.options.runners}
    types = {kind for kind, spec in SPEC_TYPES.items() if spec in specs}
    own = {Trial(check_type=kind) for kind in types}
    return own | ({API_WITH_SCRIPTS} if CheckType.API in types else set())


def _needs_node(trial: Trial) -> bool:
    return trial.with_scripts or trial.check_type in MAIN_LANE_TYPES


async def _try(context: AgentContext, trials: Iterable[Trial]) -> tuple[TypeChecked, ...]:
    wanted = tuple(trials)
    harness, problem = context.harness, context.scripts_problem
    if not context.options.checks_itself:
        missing = find_missing(wanted, harness, problem)
        lost = {one.trial for one in missing}
        here = (TypeChecked(trial=one, unavailable=None) for one in wanted if one not in lost)
        return (*here, *missing)
    runners = {runner.spec: runner for runner in context.options.runners}

    def runner_for(spec: CheckSpec) -> Runner[Any]:
        return runners[type(spec)]

    return await boot_check(wanted, runner_for=runner_for, harness=harness, problem=problem)


async def _try_if_possible(
    context: AgentContext, trials: Iterable[Trial]
) -> tuple[TypeChecked, ...]:
    wanted = tuple(trials)
    try:
        return await _try(context, wanted)
    except OSError as problem:  # no descriptor or port for the boot check: the others go on
        cause = f"the boot check cannot start: {summarize(str(problem))}"
        return tuple(
            TypeChecked(
                trial=trial,
                unavailable=UnavailableType(
                    type=trial.check_type,
                    cause=cause,
                    remedy=_NO_PLACE_REMEDY,
                    only_with_scripts=trial.with_scripts,
                ),
            )
            for trial in wanted
        )


def _add_found(known: Abilities, checked: Iterable[TypeChecked]) -> Abilities:
    """Add what was found, and log what is new of it."""
    before, lost = {one.key for one in known.unavailable}, set[UnavailableType]()
    working = set[Trial]()
    for one in checked:
        if one.unavailable is None:
            working.add(one.trial)
            if one.trial in map(_find_trial, known.unavailable):
                log.info("boot.type_available", type=one.trial.check_type.value)
            continue
        lost.add(one.unavailable)
        if one.unavailable.key not in before:
            _log_unavailable(one.unavailable, one.crash)
    return known.updated(Abilities(working=frozenset(working), unavailable=tuple(lost)))


async def _offer(
    found: Abilities, context: AgentContext, handshake: Handshake, dispatcher: Dispatcher
) -> None:
    hello, served = build_hello(context, found), handshake.slots()
    handshake.learn(hello)
    # Claims name the types too: none of them waits for what becomes of one hello.
    for on, slots in hello.slots.items():
        if slots and not served[on]:
            dispatcher.serve(on, slots)
    with suppress(KeyRefusedError, VersionRefusedError):  # claims meet it too, and try on
        backoff = Backoff(context.options.pace, context.client.outage)
        await handshake.first_hello(backoff, until=context.lifecycle.draining)


def _log_unavailable(one: UnavailableType, crash: Exception | None) -> None:
    if crash is not None:
        log.error("boot.check_crashed", type=one.type.value, checks=one.what, exc_info=crash)
    level = logging.INFO if one.remedy == NEEDS_EXTRA else logging.WARNING
    log.log(
        level,
        "boot.type_unavailable",
        type=one.type.value,
        checks=one.what,
        because=one.sentence,
    )
