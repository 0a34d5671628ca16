"""Each Playwright of a suite finds our programs where it would have put its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from runners.scripting.playwright.chromium import make_registry, resolve_package

BROWSERS = [
    {"name": "chromium", "revision": "1187", "revisionOverrides": {"mac12": "1100"}},
    {"name": "chromium-headless-shell", "revision": "1187"},
    {"name": "firefox", "revision": "1490"},
    {"name": "webkit", "revision": "2203"},
    {"name": "ffmpeg", "revision": "1013"},
]


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Path]:
    for name in ("shell", "encoder"):
        (tmp_path / name).write_text("")
    return {"browser": tmp_path / "shell", "ffmpeg": tmp_path / "encoder"}


def a_package(folder: Path, name: str, **files: Any) -> Path:
    place = folder / "node_modules" / name
    place.mkdir(parents=True)
    (place / "package.json").write_text("{}")
    for stem, content in files.items():
        (place / f"{stem}.json").write_text(json.dumps(content))
    return place


def a_project(folder: Path, browsers: Any = BROWSERS) -> Path:
    a_package(folder, "playwright-core", browsers={"browsers": browsers})
    a_package(folder, "@playwright/test")
    a_package(folder, "playwright")
    return folder


def test_the_browser_lies_in_both_layouts_and_the_encoder_beside_it(
    tmp_path: Path, programs: dict[str, Path]
) -> None:
    made = tmp_path / "registry"
    make_registry(made, a_project(tmp_path / "project"), **programs)
    shell = made / "chromium_headless_shell-1187"
    for place in (
        shell / "chrome-linux/headless_shell",
        shell / "chrome-headless-shell-linux64/chrome-headless-shell",
        made / "chromium-1187/chrome-linux/chrome",
        made / "chromium-1100/chrome-linux64/chrome",
    ):
        assert place.resolve() == programs["browser"]
    assert (made / "ffmpeg-1013/ffmpeg-linux").resolve() == programs["ffmpeg"]
    assert (shell / "INSTALLATION_COMPLETE").exists()


def test_browsers_that_we_have_not_are_not_pretended(
    tmp_path: Path, programs: dict[str, Path]
) -> None:
    made = tmp_path / "registry"
    make_registry(made, a_project(tmp_path / "project"), browser=programs["browser"], ffmpeg=None)
    assert {path.name.split("-")[0] for path in made.iterdir()} == {
        "chromium",
        "chromium_headless_shell",
    }


def test_every_playwright_of_a_suite_is_served(tmp_path: Path, programs: dict[str, Path]) -> None:
    project = a_project(tmp_path / "project")
    older = [{"name": "ffmpeg", "revision": "1009"}]
    inner = project / "node_modules/@playwright/test"
    a_package(inner, "playwright")
    a_package(inner / "node_modules/playwright", "playwright-core", browsers={"browsers": older})
    make_registry(tmp_path / "registry", project, **programs)
    assert {"ffmpeg-1009", "ffmpeg-1013"} <= {one.name for one in (tmp_path / "registry").iterdir()}


@pytest.mark.parametrize(
    "browsers",
    [
        None,
        "odd",
        [1, "x"],
        [{"name": "chromium"}],
        [{"name": ["chromium"], "revision": "1"}],
        [{"name": "chromium", "revision": "../../evil"}],
        [{"name": "ffmpeg", "revision": "1", "revisionOverrides": {"x": "a/b"}}],
    ],
)
def test_what_a_suite_lists_wrongly_leads_nowhere(
    tmp_path: Path, programs: dict[str, Path], browsers: Any
) -> None:
    made = tmp_path / "registry"
    make_registry(made, a_project(tmp_path / "project", browsers), **programs)
    assert {path.name for path in made.iterdir()} <= {"ffmpeg-1"}


def test_a_package_is_found_upwards_and_at_its_real_place(tmp_path: Path) -> None:
    real = a_package(tmp_path / "kept", "x")
    (tmp_path / "suite/node_modules").mkdir(parents=True)
    (tmp_path / "suite/node_modules/x").symlink_to(real)
    (tmp_path / "suite/deep/er").mkdir(parents=True)
    assert resolve_package("x", tmp_path / "suite/deep/er") == real
    assert resolve_package("y", tmp_path / "suite") is None
