"""What a suite was doing when its time was up, as a sentence. Pure."""

from typing import Final

from contract.result import Failure, FailureKind
from runners.kit.secrets.cut_texts import cut
from runners.kit.suites.facts import SuiteFacts
from runners.kit.suites.names import named, sentence
from runners.kit.suites.stop_facts import AtStop, Hang
from runners.kit.time_words import duration, stopped_early

_MESSAGE_CHARS: Final = 2000
_BUSY: Final = ": is there a loop without an end, or a call that blocks?"
_LEAST_INSTALLATION_S: Final = 1.0


def out_of_time(
    facts: SuiteFacts, *, limit_s: float, stopped_after_s: float, installed_s: float
) -> Failure:
    """The failure of a suite that had to be stopped.

    `limit_s`: as it was set up. `stopped_after_s`: since the run began. `installed_s`: what its
    packages took of that.
    """
    hang = next(iter(_hangs(facts.at_stop)), None)
    packages = ""
    if installed_s >= _LEAST_INSTALLATION_S:
        packages = f" Its packages took {duration(installed_s)} of that."
    message = f"The suite {stopped_early(stopped_after_s, limit_s)}: {_doing(facts)}"
    where = None if hang is None else hang.step_where or hang.last_where
    return Failure(
        kind=FailureKind.TIMEOUT,
        message=f"{cut(message, _MESSAGE_CHARS)}{packages}",
        detail={"code": "ETIMEDOUT", "where": where, "limitSeconds": limit_s},
    )


def _hangs(seen: AtStop) -> list[Hang]:
    return [seen.hangs[test] for test in seen.tests if test in seen.hangs]


def _doing(facts: SuiteFacts) -> str:
    seen = facts.at_stop
    running = list(seen.tests.items())
    if running:
        test, about = running[0]
        return sentence(
            f"{named(about)} {_in_test(seen, seen.hangs.get(test))}{_others(len(running))}"
        )
    if not seen.is_prepared:
        return _before_tests(seen)
    if seen.is_in_teardown and seen.prepares.teardown:
        return f"it was still in its global teardown ({seen.prepares.teardown})."
    ran = list(facts.tests.values())
    if not ran:
        return "it was about to begin its first test."
    last = f"no test was under way after {named(ran[-1])}"
    return f"{last}: is a worker's fixture, a server or the global teardown still open?"


def _in_test(seen: AtStop, hang: Hang | None) -> str:
    """What a test did, behind its name."""
    if hang is None:
        return (
            "was under way, and the test runner was busy itself"
            if not seen.awake
            else ("was under way")
        )
    is_awake = hang.worker in seen.awake
    after = f" after “{hang.last}”{_at(hang.last_where)}" if hang.last else ""
    if hang.step is None:
        return f"was in no step{after}" if is_awake else f"was busy{after}{_BUSY}"
    around = f", in “{hang.inside}”" if hang.inside else ""
    step = f"in “{hang.step}”{_at(hang.step_where)}{around}"
    return f"was {step}" if is_awake else f"was busy {step}{',' if after else ''}{after}{_BUSY}"


def _others(running: int) -> str:
    if running == 1:
        return ""
    more = running - 1
    return f" ({more} more {'test was' if more == 1 else 'tests were'} under way)"


def _at(where: str | None) -> str:
    return f" ({where})" if where else ""


def _before_tests(seen: AtStop) -> str:
    servers, setup = seen.prepares.servers, seen.prepares.setup
    server = f"its web server ({', '.join(servers)})"
    in_setup = f"its global setup ({setup})"
    if setup and (seen.is_in_setup or not servers):
        return f"it was still in {in_setup}."
    if servers and setup:
        return f"it was still waiting for {server}, or in {in_setup}."
    if servers:
        return f"it was still waiting for {server}."
    return "Playwright Test had not begun, or was still loading its tests."
