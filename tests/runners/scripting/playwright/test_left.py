"""What nobody could open is not kept of a run, and its result says so."""

from pathlib import Path

import pytest

from runners.scripting.playwright.outputs import CollectedOutputs, FileNames, collect_outputs
from runners.scripting.playwright.place import make_folders
from sandbox.program import Deadline
from sandbox.workspace import Workspace

NO_TRACE = "There is no trace: the script's process ended before it had written any."


def left(
    folder: Path,
    files: dict[str, bytes],
    *,
    is_ended: bool,
    records_video: bool = False,
    within_s: float = 60,
) -> CollectedOutputs:
    workspace = Workspace(folder)
    place = make_folders(workspace.folder)
    for name, content in files.items():
        path = place.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    until = Deadline.after(within_s)
    return collect_outputs(
        place,
        workspace,
        kept_in=workspace,
        is_ended=is_ended,
        records_video=records_video,
        until=until,
        names=FileNames(),
    )


def names(found: CollectedOutputs) -> set[str]:
    return {one.name for one in found.artifacts}


def test_an_empty_video_is_left_out_and_told(tmp_path: Path) -> None:
    found = left(tmp_path, {"a.webm": b"", "b.webm": b"x"}, is_ended=True)
    assert names(found) == {"b.webm"}
    assert [note[:33] for note in found.notes] == ["The video a.webm is not kept: not"]


def test_a_trace_that_was_cut_off_is_left_out_for_what_there_is_of_it(tmp_path: Path) -> None:
    files = {"shop/trace.zip": b"PK", ".traces/one.trace": b"{}\n"}
    found = left(tmp_path, files, is_ended=False)
    assert names(found) == {"trace.zip"}
    assert found.artifacts[0].size_bytes > len(b"PK")
    assert len(found.notes) == 2


def test_parts_of_traces_that_came_to_their_end_are_nothing_to_keep(tmp_path: Path) -> None:
    files = {".traces/one.trace": b"{}\n", ".traces/screencast/page.jpeg": b"x"}
    assert left(tmp_path, files, is_ended=True) == CollectedOutputs(
        degraded_because=None, artifacts=(), notes=()
    )


def test_when_time_is_up_files_are_lost_and_what_the_script_said_is_not(tmp_path: Path) -> None:
    files = {"a.png": b"x", "../../check/degraded.json": b'{"messages": ["slow"]}'}
    found = left(tmp_path, files, is_ended=True, within_s=0)
    assert (found.artifacts, found.degraded_because) == ((), "slow")
    assert found.notes == ("Not all files are kept: the run's time was up, and 1 is missing.",)


def test_when_time_is_up_no_archive_is_looked_into(tmp_path: Path) -> None:
    found = left(tmp_path, {"a.zip": b"PK"}, is_ended=False, within_s=0)
    assert [note for note in found.notes if "a.zip" in note] == []


def test_nothing_is_told_of_a_trace_that_is_not_kept(tmp_path: Path) -> None:
    files = {".traces/one.trace": b"{}\n"}
    (note,) = left(tmp_path, files, is_ended=False, within_s=0).notes
    assert note.startswith("There is no trace: for what there is of it,")


def test_a_film_that_playwright_has_put_to_its_place_is_kept_once(tmp_path: Path) -> None:
    files = {"shop/video.webm": b"x", ".playwright-artifacts-0/page-1.webm": b"x", "a.webm": b"x"}
    found = left(tmp_path, files, is_ended=False)
    assert names(found) == {"video.webm", "a.webm"}


def test_playwrights_own_parts_are_nothing_to_keep_and_its_films_are_called_videos(
    tmp_path: Path,
) -> None:
    place = ".playwright-artifacts-0"
    files = {f"{place}/19a5d73a.zip": b"PK", f"{place}/page-ff7b8dca.webm": b"x"}
    found = left(tmp_path, files, is_ended=False)
    assert names(found) == {"video.webm"}
    assert found.notes == (NO_TRACE,)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "There is no trace and no video: "),
        ({"a.webm": b"x"}, "There is no trace: "),
        ({".traces/one.trace": b"{}\n"}, "There is no video: "),
    ],
)
def test_what_a_sudden_end_has_taken_is_told(
    tmp_path: Path, files: dict[str, bytes], told: str
) -> None:
    found = left(tmp_path, files, is_ended=False, records_video=True)
    assert found.notes[-1].startswith(told)
