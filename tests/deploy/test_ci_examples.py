"""The CI examples are files of their systems, pinned, and run commands that exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from picket.cli import cli

FOLDER = Path(__file__).parents[2] / "deploy/ci"
FILES = sorted(FOLDER.glob("*.yaml"))
PIN = re.compile(r"[\w./-]+@[0-9a-f]{40}")


def read(path: Path) -> Any:
    """The document; `on` is a text for GitHub, and true for YAML 1.1."""
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def values(document: Any, name: str) -> Iterator[Any]:
    """Whatever stands under this name, however deep."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == name:
                yield value
            yield from values(value, name)
    elif isinstance(document, list):
        for one in document:
            yield from values(one, name)


def commands(path: Path) -> list[list[str]]:
    """The words of each command of `picket`."""
    document = read(path)
    scripts = [*values(document, "run"), *values(document, "script")]
    lines = [
        line
        for script in scripts
        for part in (script if isinstance(script, list) else [script])
        for line in str(part).splitlines()
    ]
    return [
        shlex.split(line.partition("|")[0])[1:]
        for line in lines
        if line.strip().startswith("picket ")
    ]


def test_there_is_one_for_each_system() -> None:
    assert [path.name for path in FILES] == ["github.yaml", "gitlab.yaml"]


@pytest.mark.parametrize("path", FILES, ids=lambda one: one.stem)
def test_the_commands_and_their_options_exist(path: Path) -> None:
    found = commands(path)
    assert [words[0] for words in found] == ["apply", "test", "apply"]
    for name, *arguments in found:
        command = cli.commands[name]
        with click.Context(command, info_name=name) as context:
            command.parse_args(context, arguments)
            assert context.params["paths"] == (Path("checks"),)


@pytest.mark.parametrize("path", FILES, ids=lambda one: one.stem)
def test_a_merge_request_changes_nothing_and_the_main_branch_is_deployed(path: Path) -> None:
    plan, preview, deploy = commands(path)
    assert "--dry-run" in plan
    assert "--dry-run" not in deploy
    assert "--junit" in preview


def test_actions_are_pinned_by_their_commits() -> None:
    used = list(values(read(FOLDER / "github.yaml"), "uses"))
    assert len(used) == 5
    assert [one for one in used if not PIN.fullmatch(one)] == []


def test_the_workflow_may_write_nothing_but_its_comment() -> None:
    document = read(FOLDER / "github.yaml")
    assert document["permissions"] == {"contents": "read"}
    own = {name: job.get("permissions") for name, job in document["jobs"].items()}
    assert own == {
        "plan": {"contents": "read", "pull-requests": "write"},
        "preview": None,
        "deploy": None,
    }


@pytest.mark.parametrize("path", FILES, ids=lambda one: one.stem)
def test_no_secret_is_printed_or_given_to_a_command_as_an_argument(path: Path) -> None:
    text = "\n".join(" ".join(words) for words in commands(path))
    assert "secrets." not in text
    assert "API_KEY" not in text
    scripts = [str(one) for name in ("run", "script") for one in values(read(path), name)]
    assert not [one for one in scripts if "secrets." in one or "API_KEY" in one or "set -x" in one]


@pytest.mark.parametrize("path", FILES, ids=lambda one: one.stem)
def test_secrets_go_to_the_steps_that_need_them_alone(path: Path) -> None:
    document = read(path)
    top = str({key: value for key, value in document.items() if key != "jobs"})
    assert "secrets." not in top
