"""What is there of unfinished traces becomes one archive, and leads to nobody else's files."""

import os
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import pytest

from contract.agent_api import MAX_ARTIFACT_BYTES
from runners.scripting.playwright.partial_trace import (
    PackedTrace,
    choose_final_name,
    find_trace_folders,
    is_trace_folder,
    is_whole,
    list_trace_folders,
    pack_partial_traces,
)
from sandbox.program import Deadline
from sandbox.workspace import Workspace
from tests.builders.archives import a_zip


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
    if (
        pack_partial_traces(workspace, list_trace_folders(output), target, until=Deadline.after(60))
        is None
    ):
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


def test_what_is_shown_is_put_in_as_it_is(workspace: Workspace) -> None:
    put(workspace, "out/.traces/one.trace")
    put(workspace, "out/.traces/resources/1f.jpeg", b"x" * 10_000)
    assert packed(workspace)
    with ZipFile(workspace.folder / "trace.zip") as archive:
        assert archive.getinfo("resources/1f.jpeg").compress_type == ZIP_STORED


def test_when_time_is_up_no_further_part_is_put_in(workspace: Workspace) -> None:
    put(workspace, "out/.traces/one.trace")
    put(workspace, "out/.traces/resources/1f.html")
    places, target = list_trace_folders(workspace.folder / "out"), workspace.folder / "trace.zip"
    assert pack_partial_traces(workspace, places, target, until=Deadline.after(0)) == PackedTrace(2)
    assert not target.exists()
    assert not is_whole(target)


def test_what_there_is_no_room_for_is_left_out_for_what_is_smaller(workspace: Workspace) -> None:
    put(workspace, "out/.traces/one.trace")
    os.truncate(put(workspace, "out/.traces/resources/large.bin"), MAX_ARTIFACT_BYTES)
    put(workspace, "out/.traces/resources/small.bin")
    assert packed(workspace).keys() == {"0-trace.trace", "resources/small.bin"}


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
    assert list(find_trace_folders(workspace.folder / "shop")) == [found]
    assert is_trace_folder(found)


def test_the_steps_of_a_test_whose_packing_was_interrupted_are_taken(workspace: Workspace) -> None:
    artifacts = "out/.playwright-artifacts-0"
    put(workspace, f"{artifacts}/traces/one.trace")
    put(workspace, f"{artifacts}/ab.zip", a_zip({"trace.trace": b"{}", "resources/1": b"again"}))
    put(workspace, f"{artifacts}/cd.zip", a_zip({"test.trace": b'{"s":1}\n', "src/2.ts": b"src"}))
    put(workspace, f"{artifacts}/ef.zip", a_zip({"test.trace": b"late"})[:-5])
    assert packed(workspace) == {
        "0-trace.trace": b"{}\n",
        "test.trace": b'{"s":1}\n',
        "src/2.ts": b"src",
    }


def test_films_and_pictures_of_playwrights_own_get_the_names_that_it_would_have_given() -> None:
    artifacts = Path("out/.playwright-artifacts-0")
    assert choose_final_name(artifacts / "2744fcc5.png") == "screenshot.png"
    assert choose_final_name(artifacts / "page@1f.webm") == "video.webm"
    assert choose_final_name(Path("out/shop.png")) == "shop.png"
