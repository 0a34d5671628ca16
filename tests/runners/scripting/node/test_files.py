"""The files of a scripted check stay in the folder of its run."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from contract.checks import BrowserSpec, Dependency
from contract.result import CheckFailed, FailureKind
from runners.scripting.node.files import script_files, write_files


def files(**changes: Any) -> dict[str, str]:
    spec = BrowserSpec(**{"script": "main", **changes})
    return {str(file.path): file.content for file in script_files(spec)}


def a_file(path: str, content: str = "x") -> tuple[Dependency, ...]:
    return (Dependency(path=path, content=content),)


def test_a_script_of_the_editor_is_called_script_js() -> None:
    assert files() == {"script.js": "main"}


def test_snippets_stand_beside_the_script_and_dependencies_at_their_paths() -> None:
    assert files(
        script_path="src/checks/home.spec.ts",
        snippets=a_file("snippets/login.js", "login"),
        dependencies=a_file("src/pages/home.ts", "home"),
    ) == {
        "src/checks/home.spec.ts": "main",
        "src/checks/snippets/login.js": "login",
        "src/pages/home.ts": "home",
    }


def test_a_path_from_the_root_is_one_in_the_folder() -> None:
    assert files(script_path="/src/a.js", dependencies=a_file("/b.js")).keys() == {
        "src/a.js",
        "b.js",
    }


@pytest.mark.parametrize(
    "path",
    ["../out.js", "a/../../out.js", "/..", ".", "/", "node_modules/x.js", "a\0b", "x" * 300],
)
def test_a_path_that_leaves_the_folder_is_refused_by_name(path: str) -> None:
    with pytest.raises(CheckFailed) as refused:
        files(dependencies=a_file(path))
    assert refused.value.failure.kind is FailureKind.SCRIPT
    assert repr(path[:200]) in refused.value.failure.message


def test_a_path_through_a_file_is_refused() -> None:
    with pytest.raises(CheckFailed, match="as if it were a folder"):
        files(dependencies=a_file("script.js/deeper.js"))


def test_files_are_written_where_they_belong(tmp_path: Path) -> None:
    spec = BrowserSpec(script="é", script_path="a/b.js", dependencies=a_file("c.js", "c"))
    write_files(script_files(spec), tmp_path)
    assert (tmp_path / PurePosixPath("a/b.js")).read_bytes() == "é".encode()
    assert (tmp_path / "c.js").read_text() == "c"
