"""What is passed on to a machine, and what is not."""

from pathlib import Path

import pytest

from tests.machines.surroundings import lend, look_around, mirror_of

DEB822 = """Types: deb
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
"""


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("{file}", "/mnt/surroundings{file}"),
        ("cafile={file}", "cafile=/mnt/surroundings{file}"),
        ("{file} https://index.test{file}", "/mnt/surroundings{file} https://index.test{file}"),
        ("/nowhere/at/all", "/nowhere/at/all"),
        ("nodedir=/usr", "nodedir=/usr"),
    ],
)
def test_a_path_that_is_here_leads_to_its_mount(tmp_path: Path, text: str, inside: str) -> None:
    file = tmp_path / "roots.pem"
    file.touch()
    mounts: dict[Path, Path] = {}
    assert lend(text.format(file=file), mounts) == inside.format(file=file)
    expected = {file: Path(f"/mnt/surroundings{file}")} if "{file}" in text else {}
    assert mounts == expected


def test_a_local_package_index_comes_with_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "simple").mkdir()
    mounts: dict[Path, Path] = {}
    lend(f"file://{tmp_path}/simple", mounts)
    assert mounts == {tmp_path: Path(f"/mnt/surroundings{tmp_path}")}


def test_settings_of_registries_are_passed_on_and_folders_to_write_to_are_not(
    tmp_path: Path,
) -> None:
    around = {
        "PIP_INDEX_URL": "https://index.test/simple",
        "https_proxy": "http://proxy.test:3128",
        "npm_config_registry": "https://npm.test",
        "UV_CACHE_DIR": "/var/cache/uv",
        "API_KEY": "pl_1",
        "CI": "true",
    }
    passed = look_around(around, tmp_path).environ
    assert set(passed) == {"PIP_INDEX_URL", "https_proxy", "npm_config_registry"}


def test_settings_at_home_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text("fund=false\n")
    assert look_around({}, tmp_path).home_files == {".npmrc": "fund=false\n"}


@pytest.mark.parametrize(
    ("text", "release", "mirror"),
    [
        (DEB822, "bookworm", "http://mirror.test/debian"),
        (DEB822, "trixie", None),
        (
            "deb [arch=amd64] http://old.test/debian trixie main\n",
            "trixie",
            "http://old.test/debian",
        ),
        ("# deb http://old.test/debian trixie main\n", "trixie", None),
    ],
)
def test_the_mirror_is_the_one_that_apt_uses_here(
    text: str, release: str, mirror: str | None
) -> None:
    assert mirror_of([text], release) == mirror
