"""How a program ended is said in words."""

import signal
from typing import Any

import pytest

from contract.result import LogLine
from sandbox.exit_status import ExitState, LaunchError, describe_exit
from sandbox.limits import ExceededLimit
from sandbox.memory import TooLittleMemoryError
from sandbox.program import Limits, ProgramExit

V8_GAVE_UP = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"


def ended(**what: Any) -> ProgramExit:
    end = {
        "status": 0,
        "last_name": "node",
        "was_stopped_by_us": False,
        "timed_out": False,
        "excess": None,
        "was_refused_memory": False,
        "had_oom_kills": False,
        "peak_mb": 70.4,
        "took_s": 1.0,
        "log": (),
        "any_facts": False,
        "facts_cut": False,
    }
    return describe_exit(ExitState(**(end | what)), Limits(memory_mb=100, file_mb=5))


def error(message: str) -> tuple[LogLine, ...]:
    return (LogLine(after_ms=1, level="ERROR", message=message),)


def test_an_exit_code_and_a_signal_are_told_apart() -> None:
    assert (ended(status=3 << 8).exit_code, ended(status=3 << 8).signal) == (3, None)
    assert (ended(status=15).exit_code, ended(status=15).signal) == (None, 15)


def test_a_kill_that_the_sandbox_did_not_send_is_told_apart() -> None:
    assert ended(status=9).was_killed
    assert not ended(status=15).was_killed
    assert not ended(status=9, was_stopped_by_us=True).was_killed
    large = ExceededLimit(is_memory=False, because="It left files")
    assert not ended(status=9, excess=large).was_killed


def test_a_limit_that_was_gone_over_is_named() -> None:
    told = ended(
        status=9,
        was_stopped_by_us=True,
        excess=ExceededLimit(is_memory=True, because="It was large"),
    )
    assert (told.out_of_memory, told.stopped_because) == (True, "It was large")


@pytest.mark.parametrize("status", [int(signal.SIGABRT), 1 << 8])
def test_node_that_gave_up_for_want_of_memory_is_out_of_memory(status: int) -> None:
    told = ended(status=status, log=error(V8_GAVE_UP))
    assert told.out_of_memory
    assert told.stopped_because == "It ran out of memory: it used 70 MB, and its limit is 100 MB"


def test_a_program_that_the_system_ended_for_want_of_memory_is_out_of_memory() -> None:
    told = ended(status=9, had_oom_kills=True, peak_mb=80)
    assert told.out_of_memory
    assert str(told.stopped_because).endswith("this location had no more")
    assert not ended(status=9).out_of_memory
    assert not ended(status=9, had_oom_kills=True, was_stopped_by_us=True).out_of_memory


def test_a_program_that_the_system_ended_far_below_its_limit_is_our_fault() -> None:
    with pytest.raises(TooLittleMemoryError, match="used 70 MB, and its limit is 100 MB: this loc"):
        ended(status=9, had_oom_kills=True, peak_mb=70)
    large = ExceededLimit(is_memory=False, because="It left files")
    assert ended(status=9, had_oom_kills=True, excess=large).stopped_because == "It left files"


def test_a_program_that_got_no_more_memory_is_out_of_memory_unless_it_passed() -> None:
    assert ended(status=1 << 8, was_refused_memory=True).out_of_memory
    assert not ended(was_refused_memory=True).out_of_memory
    assert not ended(status=9, was_refused_memory=True, was_stopped_by_us=True).out_of_memory


def test_processes_that_the_system_took_are_told_of_one_that_went_on() -> None:
    told = ended(status=1 << 8, had_oom_kills=True)
    assert (told.out_of_memory, told.had_oom_kills) == (False, True)


def test_a_program_that_passed_was_not_out_of_memory_whatever_it_wrote() -> None:
    assert not ended(log=error(V8_GAVE_UP)).out_of_memory


def test_a_file_that_is_too_large_is_named() -> None:
    because = ended(status=int(signal.SIGXFSZ)).stopped_because
    assert because == "It wrote a file larger than 5 MB, which is the limit"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("env", "env: 'x': No such file"),
        ("setpriv", "/usr/bin/setpriv: setresuid failed"),
    ],
)
def test_a_program_that_never_began_is_our_fault(name: str, said: str) -> None:
    with pytest.raises(LaunchError, match="could not be started"):
        ended(status=127 << 8, last_name=name, log=error(said))


def test_a_program_that_says_what_a_launcher_would_has_begun() -> None:
    told = ended(status=127 << 8, last_name="sh", log=error("env: 'ruby': No such file"))
    assert told.exit_code == 127


def test_a_program_that_told_facts_has_begun() -> None:
    assert (
        ended(status=127 << 8, last_name="env", log=error("env: x"), any_facts=True).exit_code
        == 127
    )
