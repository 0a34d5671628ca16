"""What is read back of the README's commands."""

from pathlib import Path

import pytest

from contract.checks import CheckType
from tests.machines.outputs import (
    commands_for_root,
    install_commands,
    problems,
    pytest_end,
    results,
    uv_command,
)

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

GOOD = "20:53:31  PASSED     TCP         Echo port      5.0 ms"
BAD = "20:53:37  ERROR      API         Stock list      -  The agents failed to execute the run."


def test_results_are_counted_by_type_and_status() -> None:
    assert results([GOOD, BAD, GOOD, "stopping…"]) == {("TCP", "PASSED"): 2, ("API", "ERROR"): 1}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([GOOD], []),
        ([GOOD, BAD], ["a result was API ERROR"]),
        ([], ["no TCP result"]),
        ([GOOD, "Traceback (most recent call last):"], ["a traceback was printed"]),
    ],
)
def test_a_run_that_lacks_a_type_or_has_an_error_is_not_good(
    lines: list[str], found: list[str]
) -> None:
    assert problems(results(lines), "\n".join(lines), wanted=[CheckType.TCP]) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ICMP checks cannot run here: raw sockets are refused", []),
        (
            GOOD.replace("TCP", "URL").replace("Echo", "ICMP"),
            ["no ICMP result, and no line says why"],
        ),
    ],
)
def test_a_type_that_needs_rights_may_be_missing_when_a_line_names_it(
    line: str, found: list[str]
) -> None:
    icmp = (CheckType.ICMP,)
    assert problems(results([line]), line, wanted=icmp, excusable=icmp) == found


def test_the_command_for_an_administrator_is_read_from_its_sentence() -> None:
    text = "setup: missing: a b. An administrator runs once, as root: apt-get update && c\nmake: 2"
    assert commands_for_root(text) == ["apt-get update && c"]


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        (
            ["...", "3 failed, 9 passed, 1 skipped in 2.10s (0:00:02)"],
            "3 failed, 9 passed, 1 skipped in 2.10s (0:00:02)",
        ),
        (["make: *** No rule to make target", ""], "make: *** No rule to make target"),
        ([], "nothing was written"),
    ],
)
def test_the_end_of_a_test_run_is_what_it_counted_or_its_last_words(
    lines: list[str], end: str
) -> None:
    assert pytest_end(lines) == end


def test_the_commands_that_install_are_those_of_the_readme() -> None:
    packages, environment, setup, up = install_commands(README)
    assert packages.endswith(" python3-venv")
    assert environment.endswith(" install '.[all]'")
    assert (setup, up) == ("/opt/picket/bin/picket setup", "/opt/picket/bin/picket up")
    assert uv_command(README) == "uv tool install '.[all]'"
