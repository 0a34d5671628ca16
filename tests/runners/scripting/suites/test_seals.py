"""A seal tells every change of what is kept."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.scripting.suites.package_cache import Digests, digest_folder


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    package = tmp_path / "entry/node_modules/@scope/one"
    package.mkdir(parents=True)
    (package / "index.js").write_text("one")
    (package / "cli.js").symlink_to("index.js")
    return tmp_path / "entry"


def test_equal_packages_have_equal_seals(tmp_path: Path, entry: Path) -> None:
    before = digest_folder(entry / "node_modules")
    entry.rename(tmp_path / "other")
    assert digest_folder(tmp_path / "other/node_modules") == before


@pytest.mark.parametrize(
    "change",
    [
        lambda one: (one / "index.js").write_text("two"),
        lambda one: (one / "index.js").chmod(0o755),
        lambda one: (one / "index.js").unlink(),
        lambda one: (one / "index.mjs").touch(),
        lambda one: (one / "folder").mkdir(),
        lambda one: os.mkfifo(one / "pipe"),
        lambda one: ((one / "cli.js").unlink(), (one / "cli.js").symlink_to("/else")),
        lambda one: one.rename(one.with_name("two")),
    ],
)
def test_every_change_is_found(entry: Path, change: Callable[[Path], object]) -> None:
    seals, modules = Digests(), entry / "node_modules"
    seals.note(entry, digest_folder(modules))
    assert seals.is_intact(entry, modules)
    change(modules / "@scope/one")
    assert not seals.is_intact(entry, modules)


def test_what_was_never_noted_is_not_whole(entry: Path) -> None:
    assert not Digests().is_intact(entry, entry / "node_modules")


def test_another_process_finds_an_entry_whole_only_by_a_seal_on_disk(entry: Path) -> None:
    modules = entry / "node_modules"
    Digests().note(entry, digest_folder(modules))
    assert not Digests(on_disk=True).is_intact(entry, modules)
    Digests(on_disk=True).note(entry, digest_folder(modules))
    assert Digests(on_disk=True).is_intact(entry, modules)
    assert not Digests().is_intact(entry, modules)
    (modules / "@scope/one/index.js").write_text("two")
    assert not Digests(on_disk=True).is_intact(entry, modules)
