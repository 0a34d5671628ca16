"""Debian's packages are installed with whatever rights there are, or the command is named."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.installation.debian import (
    CHROMIUM,
    MissingPackagesError,
    install,
    main,
    missing_packages,
)

Programs = Callable[..., Path]
APT = 'echo "$@" >>asked'
COMMAND = "apt-get update && apt-get install -y --no-install-recommends curl netbase"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Makes the programs that a user without rights has; gives the file of what apt was asked."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env").symlink_to("/usr/bin/env")

    def make(**lines: str) -> Path:
        for name, text in lines.items():
            file = tmp_path / name.replace("_", "-")
            file.write_text(f"#!/bin/sh\n{text}\n")
            file.chmod(0o755)
        return tmp_path / "asked"

    return make


def test_root_asks_apt_itself(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = programs(apt_get=APT)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    install(["curl", "netbase"])
    assert asked.read_text().splitlines() == [
        "update",
        "install -y --no-install-recommends curl netbase",
    ]


def test_a_user_whom_sudo_lets_asks_apt_with_it(programs: Programs) -> None:
    asked = programs(apt_get=APT, sudo='[ "$1" = -n ] && shift; [ "$1" = true ] || "$@"')
    install(["curl"])
    assert asked.read_text().startswith("update\n")


@pytest.mark.parametrize("sudo", [{}, {"sudo": "exit 1"}], ids=["no sudo", "sudo refuses"])
def test_a_user_without_rights_is_told_the_one_command(
    programs: Programs, sudo: dict[str, str]
) -> None:
    asked = programs(apt_get=APT, **sudo)
    with pytest.raises(MissingPackagesError) as told:
        install(["curl", "netbase"])
    sentence = "missing: curl netbase. An administrator runs once, as root: "
    assert str(told.value) == sentence + COMMAND
    assert not asked.exists()


def test_what_apt_says_is_shown_beside_the_command(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(apt_get="echo no route to host; exit 100")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(MissingPackagesError) as told:
        install(["curl", "netbase"])
    assert str(told.value).startswith("no route to host\nfailed: apt-get update. ")
    assert str(told.value).endswith(COMMAND)


def test_an_apt_that_does_not_end_is_stopped_and_named(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs(apt_get="exec /bin/sleep 60")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("runners.installation.debian._LIMIT_S", 0.2)
    assert main(["--needed", "curl"]) == 1
    (_, line) = capsys.readouterr().err.splitlines()
    assert "'apt-get', 'update'" in line
    assert "timed out after 0.2" in line


def test_nothing_missing_asks_nobody(programs: Programs) -> None:
    asked = programs(apt_get=APT, sudo="touch asked")
    install([])
    assert not asked.exists()


@pytest.mark.parametrize(("words", "code"), [(["--needed"], 1), (["--useful"], 0)])
def test_only_what_is_needed_stops_the_set_up(
    programs: Programs, words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    programs(apt_get=APT)
    assert main([*words, "curl", "netbase"]) == code
    assert COMMAND in capsys.readouterr().err


def test_chromium_is_missing_where_no_program_of_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMIUM_PATH", str(tmp_path / "chromium"))
    assert CHROMIUM in missing_packages(tmp_path)
    (tmp_path / "chromium").touch(mode=0o755)
    assert CHROMIUM not in missing_packages(tmp_path)
