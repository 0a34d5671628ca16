"""What is there of unfinished traces becomes one archive, and leads to nobody else's files."""

import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from runners.kit.trace_remains import is_remains, is_whole, pack_remains, remains_below, remains_in
from runners.kit.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def put(workspace: Workspace, path: str, content: bytes = b"{}\n") -> Path:
    file = workspace.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def packed(workspace: Workspace) -> dict[str, bytes]:
    output, target = workspace.folder / "out", workspace.folder / "trace.zip"
    if not pack_remains(workspace, remains_in(output), target):
        return {}
    assert is_whole(target)
    with ZipFile(target) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_events_of_all_places_stand_beside_what_they_show(workspace: Workspace) -> None:
    traces = "out/.playwright-artifacts-0/traces"
    put(workspace, f"{traces}/one.trace", b'{"a":1}\n')
    put(workspace, f"{traces}/one.network", b'{"b":1}\n')
    put(workspace, f"{traces}/resources/1f.html", b"<p>")
    put(workspace, "out/.traces/two.trace", b'{"c":1}\n')
    assert packed(workspace) == {
        "0-trace.trace": b'{"c":1}\n',
        "1-trace.trace": b'{"a":1}\n',
        "1-trace.network": b'{"b":1}\n',
        "resources/1f.html": b"<p>",
    }


def test_a_line_that_was_half_written_is_left_out(workspace: Workspace) -> None:
    put(workspace, "out/.traces/one.trace", b'{"a":1}\n{"b"')
    assert packed(workspace) == {"0-trace.trace": b'{"a":1}\n'}


def test_links_lead_nowhere(workspace: Workspace, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret\n")
    place = put(workspace, "out/.traces/one.trace").parent
    (place / "soft.trace").symlink_to(secret)
    os.link(secret, place / "hard.trace")
    assert b"secret\n" not in packed(workspace).values()
    (place / "resources").symlink_to("/etc")
    (workspace.folder / "trace.zip").unlink()
    assert packed(workspace) == {}


def test_without_events_there_is_no_archive(workspace: Workspace) -> None:
    put(workspace, "out/.traces/resources/1f.html")
    assert packed(workspace) == {}


def test_a_suites_traces_are_found_wherever_it_puts_them(workspace: Workspace) -> None:
    found = put(workspace, "shop/e2e/results/.playwright-artifacts-3/traces/one.trace").parent
    put(workspace, "shop/node_modules/x/.playwright-artifacts-0/traces/one.trace")
    assert list(remains_below(workspace.folder / "shop")) == [found]
    assert is_remains(found)


def test_an_archive_that_was_cut_off_is_not_whole(workspace: Workspace) -> None:
    assert not is_whole(put(workspace, "cut.zip", b"PK\x03\x04"))
