"""The files that may set an option are found without running any of them."""

import os
from pathlib import Path

import pytest

from runners.scripting.suites.project import read_option_texts


def suite(root: Path, **files: str) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def texts(
    root: Path, command: str = "", arguments: tuple[str, ...] | None = ()
) -> tuple[tuple[str, ...], bool]:
    return read_option_texts(root, root, command, arguments)


def test_the_configuration_and_what_it_imports_are_read(tmp_path: Path) -> None:
    suite(
        tmp_path,
        **{
            "playwright.config.ts": "import base from './config/base';\nimport 'node:fs';",
            "config/base.ts": "import { x } from '../shared.js'",
            "shared.ts": "retries: 3",
        },
    )
    found, is_complete = texts(tmp_path)
    assert is_complete
    assert "retries: 3" in found


def test_a_configuration_from_a_package_is_not_all_that_could_be_read(tmp_path: Path) -> None:
    suite(tmp_path, **{"playwright.config.js": "require('@acme/playwright-config')"})
    assert texts(tmp_path)[1] is False


def test_a_named_configuration_is_taken(tmp_path: Path) -> None:
    suite(tmp_path, **{"playwright.config.ts": "one", "e2e/other.config.ts": "other"})
    found, _ = texts(tmp_path, arguments=("--config", "e2e/other.config.ts"))
    assert "other" in found
    assert "one" not in found


def test_a_configuration_outside_of_the_suite_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.ts").write_text("secret")
    root = suite(tmp_path / "suite", **{"playwright.config.ts": "import '../secret'"})
    found, is_complete = texts(root)
    assert "secret" not in found
    assert not is_complete


def test_circles_of_imports_end(tmp_path: Path) -> None:
    suite(tmp_path, **{"playwright.config.ts": "import './a'", "a.ts": "import './a'"})
    assert texts(tmp_path)[1] is True


def test_a_suite_without_a_configuration_leaves_all_open(tmp_path: Path) -> None:
    assert texts(tmp_path, "npx playwright test") == (("npx playwright test",), True)


def test_for_another_command_the_scripts_of_the_manifest_count(tmp_path: Path) -> None:
    suite(tmp_path, **{"package.json": '{"scripts": {"e2e": "playwright test -j 1"}}'})
    assert texts(tmp_path, "npm run e2e", None) == (("npm run e2e", "playwright test -j 1"), True)
    suite(tmp_path, **{"package.json": "{"})
    assert texts(tmp_path, "make e2e", None)[1] is False


@pytest.mark.parametrize("content", ["[" * 100_000, "", "[]", '{"scripts": []}'])
def test_a_manifest_that_is_none_leaves_all_open(tmp_path: Path, content: str) -> None:
    suite(tmp_path, **{"package.json": content})
    assert texts(tmp_path, "make e2e", None) == (("make e2e",), False)


def test_names_that_no_disk_takes_are_files_that_are_not_there(tmp_path: Path) -> None:
    suite(tmp_path, **{"playwright.config.ts": f"import './{'x' * 300}'; import './a\0b'"})
    assert texts(tmp_path)[1] is False
    assert texts(tmp_path, arguments=("--config", "x" * 300))[0] == ("",)


def test_what_is_no_plain_file_may_set_anything(tmp_path: Path) -> None:
    suite(tmp_path, **{"playwright.config.ts": "import './folder'; import './pipe'"})
    (tmp_path / "folder.ts").mkdir()
    os.mkfifo(tmp_path / "pipe.ts")
    assert texts(tmp_path)[1] is False


def test_a_configuration_that_is_too_large_may_set_anything(tmp_path: Path) -> None:
    with (tmp_path / "playwright.config.ts").open("wb") as file:
        file.truncate(1024**4)
    assert texts(tmp_path) == (("",), False)
