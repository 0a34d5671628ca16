"""Where `picket` starts."""

import pytest

from picket.__main__ import main
from runners.registry import RUNNABLE


def test_without_a_verb_the_help_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Usage: picket")
    assert "up Start everything on loopback, with starter checks." in " ".join(shown.split())


def test_the_help_of_run_lists_the_types_that_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"Types: {', '.join(sorted(RUNNABLE))}." in shown


def test_an_unknown_verb_is_said_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fly"]) == 2
    assert capsys.readouterr().err == "picket: No such command 'fly'; see picket --help\n"
