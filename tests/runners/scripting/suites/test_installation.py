"""What is installed for a suite, and when two suites may share it."""

import json
from pathlib import Path
from typing import Any

import pytest

from runners.scripting.suites import package_manager as of_installation
from runners.scripting.suites.package_manager import (
    Installation,
    UnknownManagerError,
    compute_key,
    plan_installation,
)

PACKAGES = "packages or patches of its own"
FILES = "its settings name further files"


def a_suite(root: Path, manifest: Any = None, **files: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "package.json").write_text(json.dumps(manifest or {}))
    (root / "package-lock.json").write_text("{}")
    for name, content in files.items():
        (root / name).write_text(content)
    return root


def key(root: Path, command: str = "", engine: str = "24.19.0") -> str:
    return compute_key(plan_installation(root, root, command), root, root, engine)


def found(root: Path, within: str = "", command: str = "") -> Installation:
    return plan_installation(root, root / within, command)


def test_a_suite_without_a_lock_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    with pytest.raises(UnknownManagerError, match=r"no lock file .*; commit the one"):
        found(tmp_path)


def test_the_nearest_lock_file_upwards_counts(tmp_path: Path) -> None:
    a_suite(tmp_path)
    (tmp_path / "packages/e2e").mkdir(parents=True)
    assert found(tmp_path, "packages/e2e").folder == tmp_path
    a_suite(tmp_path / "packages/e2e")
    assert found(tmp_path, "packages/e2e").folder == tmp_path / "packages/e2e"


@pytest.mark.parametrize("content", ["{", "[]", '"x"'])
def test_a_manifest_that_is_none_is_refused_with_a_sentence(tmp_path: Path, content: str) -> None:
    a_suite(tmp_path)
    (tmp_path / "package.json").write_text(content)
    with pytest.raises(UnknownManagerError, match=r"package\.json is no JSON"):
        found(tmp_path)


@pytest.mark.parametrize("name", ["package.json", "package-lock.json"])
def test_what_is_nested_too_deeply_is_refused_with_a_sentence(tmp_path: Path, name: str) -> None:
    a_suite(tmp_path)
    (tmp_path / name).write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(UnknownManagerError, match=rf"{name} is nested too deeply"):
        found(tmp_path)


@pytest.mark.parametrize("content", ["", "lockfileVersion: 3", "[]", "\0", "{"])
def test_a_lock_file_of_npm_that_is_no_json_is_refused(tmp_path: Path, content: str) -> None:
    a_suite(tmp_path)
    (tmp_path / "package-lock.json").write_text(content)
    with pytest.raises(UnknownManagerError, match=r"package-lock\.json is no JSON"):
        found(tmp_path)


def test_a_lock_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_installation, "_LARGEST_BYTES", 10)
    a_suite(tmp_path, **{"package-lock.json": '{"name": "suite"}'})
    with pytest.raises(UnknownManagerError, match=r"package-lock\.json has more than 10 bytes"):
        found(tmp_path)


@pytest.mark.parametrize("name", ["package.json", "package-lock.json", ".npmrc", ".yarn/releases"])
def test_a_folder_or_a_circle_of_links_in_place_of_a_file_is_none(
    tmp_path: Path, name: str
) -> None:
    for kind in ("folder", "circle"):
        root = a_suite(tmp_path / kind)
        (root / name).unlink(missing_ok=True)
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).mkdir() if kind == "folder" else (root / name).symlink_to(root / name)
        if name.startswith("package"):
            with pytest.raises(UnknownManagerError, match=r"no (lock file|package\.json)"):
                found(root)
        else:
            assert name not in found(root).inputs


def test_a_lock_file_without_a_manifest_is_refused(tmp_path: Path) -> None:
    a_suite(tmp_path)
    (tmp_path / "package.json").unlink()
    with pytest.raises(UnknownManagerError, match=r"no package\.json"):
        found(tmp_path)


def test_equal_suites_share_a_key_whatever_their_tests(tmp_path: Path) -> None:
    one, other = a_suite(tmp_path / "one"), a_suite(tmp_path / "other")
    (other / "a.spec.ts").write_text("test")
    assert key(one) == key(other)


@pytest.mark.parametrize(
    "changed",
    [
        {"package.json": '{"dependencies": {"a": "1"}}'},
        {"package-lock.json": '{"lockfileVersion": 3}'},
        {".npmrc": "registry=https://npm.example"},
        {".yarnrc.yml": "nodeLinker: pnp"},
        {"bunfig.toml": "[install]"},
    ],
)
def test_whatever_an_installation_reads_changes_its_key(
    tmp_path: Path, changed: dict[str, str]
) -> None:
    a_suite(tmp_path)
    before = key(tmp_path)
    a_suite(tmp_path, **{k: v for k, v in changed.items() if k != "package.json"})
    if "package.json" in changed:
        (tmp_path / "package.json").write_text(changed["package.json"])
    assert key(tmp_path) != before


def test_command_and_engine_change_the_key(tmp_path: Path) -> None:
    a_suite(tmp_path)
    assert len({key(tmp_path), key(tmp_path, "npm install"), key(tmp_path, engine="22.20.0")}) == 3


def test_packages_of_an_earlier_start_of_the_machine_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, start = a_suite(tmp_path / "suite"), tmp_path / "boot_id"
    before = key(root)
    assert key(root) == before
    monkeypatch.setattr(of_installation, "_START", start)
    without = key(root)
    start.write_text("6b5e\n")
    assert len({before, without, key(root)}) == 3


def test_the_working_directory_changes_the_key(tmp_path: Path) -> None:
    a_suite(tmp_path)
    (tmp_path / "e2e").mkdir()
    one, other = found(tmp_path), found(tmp_path, "e2e")
    assert compute_key(one, tmp_path, tmp_path, "24") != compute_key(
        other, tmp_path, tmp_path / "e2e", "24"
    )


def test_yarns_own_files_are_given_to_the_installation(tmp_path: Path) -> None:
    a_suite(tmp_path)
    (tmp_path / ".yarn/releases").mkdir(parents=True)
    (tmp_path / ".yarn/releases/yarn-4.cjs").write_text("")
    assert ".yarn/releases/yarn-4.cjs" in found(tmp_path).inputs


@pytest.mark.parametrize(
    ("manifest", "files", "command", "because"),
    [
        ({}, {}, "", None),
        ({}, {}, "npm ci --legacy-peer-deps", None),
        ({}, {}, "npm ci && npm run build", "more than install"),
        ({"scripts": {"postinstall": "patch-package"}}, {}, "", "scripts that run on install"),
        ({"workspaces": ["packages/*"]}, {}, "", PACKAGES),
        ({"dependencies": {"a": "file:./a"}}, {}, "", PACKAGES),
        ({}, {"pnpm-workspace.yaml": "packages:\n  - e2e\n"}, "", PACKAGES),
        ({}, {"pnpm-workspace.yaml": "onlyBuiltDependencies: []\n"}, "", None),
        ({}, {"pnpm-workspace.yaml": "patchedDependencies:\n  a: patches/a.patch\n"}, "", PACKAGES),
        ({}, {"pnpm-workspace.yaml": "overrides:\n  a: 'file:./a'\n"}, "", PACKAGES),
        ({}, {".npmrc": "registry=https://x.test\n//x.test/:cafile=./ca.pem\n"}, "", FILES),
        ({}, {".npmrc": "; cafile=./ca.pem\nstrict-ssl=true\n"}, "", None),
        ({}, {".yarnrc.yml": "httpsCaFilePath: ./ca.pem\n"}, "", FILES),
        ({}, {"bunfig.toml": '[install]\ncafile = "ca.pem"\n'}, "", FILES),
    ],
)
def test_what_reaches_beyond_node_modules_is_installed_in_place(
    tmp_path: Path, manifest: Any, files: dict[str, str], command: str, because: str | None
) -> None:
    a_suite(tmp_path, manifest, **files)
    said = found(tmp_path, command=command).in_place_because
    assert said is None if because is None else because in (said or "")
