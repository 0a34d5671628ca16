"""Which frames of a film strip stay: those from before the first input, and dots for a password."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders.archives import (
    OTHER_PAGE,
    PAGE,
    PICTURE,
    a_zip,
    events_of,
    hidden,
    lines,
    read_members,
)

SECRET = "Zq7w-Kp2-long"
OTHER = "T0ken-of-a-page"
TIMES = (1000, 2000, 3000)
Event = dict[str, Any]


def fill(at_ms: float, *, value: str = SECRET, call: str = "call@7", **changes: Any) -> Event:
    """What newer versions of Playwright write, which do not name the page."""
    start = {"type": "before", "callId": call, "startTime": at_ms, "class": "Frame"}
    return {**start, "method": "fill", "params": {"selector": "#p", "value": value}, **changes}


def snapshot(
    at_ms: float, *html: Any, call: str = "call@7", phase: str = "after", page: str = PAGE
) -> Event:
    found = {"callId": call, "phase": phase, "pageId": page, "html": ["HTML", {}, *html]}
    return {"type": "frame-snapshot", "snapshot": {**found, "timestamp": at_ms}}


def field(kind: str, value: str = SECRET) -> list[Any]:
    return ["INPUT", {"__playwright_value_": value, "type": kind, "name": "p"}]


def frames(page: str = PAGE) -> list[Event]:
    return [
        {"type": "screencast-frame", "pageId": page, "file": name, "timestamp": at_ms}
        for at_ms, name in zip(TIMES, names(page), strict=True)
    ]


def names(page: str = PAGE) -> list[str]:
    """Playwright names a frame after its own clock."""
    return [f"screencast/{page}-17957386{at_ms}.jpeg" for at_ms in TIMES]


def kept(folder: Path, *events: Event, page: str = PAGE, typed: tuple[str, ...] = ()) -> list[int]:
    """The times of the frames that stay, in events and files alike."""
    film = dict.fromkeys(names(page), PICTURE)
    archive = a_zip({"0-trace.trace": lines(*events, *frames(page)), **film})
    file = hidden(folder, archive, SECRET, OTHER, typed=typed).file
    clean = read_members(file.path.read_bytes())
    left = [
        one["timestamp"]
        for one in events_of(clean["0-trace.trace"])
        if one["type"] == "screencast-frame"
    ]
    files = [at_ms for at_ms, name in zip(TIMES, names(page), strict=True) if name in clean]
    assert left == files
    return left


ALL = [*TIMES]


def test_a_login_into_a_password_field_keeps_its_film_strip(tmp_path: Path) -> None:
    events = fill(1500), snapshot(1600, field("password")), snapshot(1700, ["P", {}, "Welcome"])
    assert kept(tmp_path, *events) == ALL


def test_the_events_of_older_versions_keep_it_too(tmp_path: Path) -> None:
    after = snapshot(1600, field("PassWord"))
    found = after["snapshot"]
    del found["phase"]
    found["snapshotName"] = "after@call@7"
    assert kept(tmp_path, fill(1500, pageId=PAGE), after) == ALL


def test_a_secret_in_a_text_field_keeps_the_frames_from_before_it_was_filled_in(
    tmp_path: Path,
) -> None:
    assert kept(tmp_path, fill(1500), snapshot(1600, field("text"))) == [1000]


def test_a_page_that_no_secret_was_given_to_keeps_its_frames(tmp_path: Path) -> None:
    events = fill(1500), snapshot(1600, field("text"))
    assert kept(tmp_path, *events, page=OTHER_PAGE) == ALL


def test_a_secret_that_is_shown_beside_its_password_field_is_seen(tmp_path: Path) -> None:
    shown = ["P", {}, SECRET]
    assert kept(tmp_path, fill(1500), snapshot(1600, field("password"), shown)) == [1000]


def test_a_secret_that_contains_what_was_filled_in_is_another_one(tmp_path: Path) -> None:
    longer = ["P", {}, f"{SECRET}-{OTHER}"]
    assert kept(tmp_path, fill(1500), snapshot(1600, field("text"), longer)) == []


def test_a_password_that_a_page_makes_readable_is_seen_since_it_was_filled_in(
    tmp_path: Path,
) -> None:
    events = fill(1500), snapshot(1600, field("password"))
    revealed = snapshot(2600, field("text"), call="call@9")
    assert kept(tmp_path, *events, revealed) == [1000]


def test_a_secret_that_was_there_before_an_input_of_another_loses_all_frames(
    tmp_path: Path,
) -> None:
    shown, after = ["P", {}, OTHER], snapshot(1600, field("password"))
    assert kept(tmp_path, fill(1500), snapshot(1510, shown, phase="before"), after) == []


def test_a_secret_that_was_there_before_it_was_filled_in_loses_all_frames(tmp_path: Path) -> None:
    before = snapshot(1510, ["P", {}, SECRET], phase="before")
    assert kept(tmp_path, fill(1500), before, snapshot(1600, field("text"))) == []


def test_a_secret_that_a_page_shows_in_another_form_is_not_taken_for_dots(tmp_path: Path) -> None:
    """Another one is in a password field of the same page."""
    after = snapshot(1600, ["P", {}, "Z q 7 w"], field("password", OTHER))
    assert kept(tmp_path, fill(1500), after) == [1000]


def test_a_call_of_another_process_with_the_same_id_proves_nothing(tmp_path: Path) -> None:
    readable = fill(1500), fill(2500, value=OTHER), snapshot(2600, field("password", OTHER))
    assert kept(tmp_path, *readable) == [1000]


@pytest.mark.parametrize("kind", ["password ", "passwd", "text"])
def test_only_a_password_field_shows_dots(tmp_path: Path, kind: str) -> None:
    assert kept(tmp_path, fill(1500), snapshot(1600, field(kind))) == [1000]


def test_a_fill_whose_field_no_snapshot_shows_may_be_readable(tmp_path: Path) -> None:
    assert kept(tmp_path, fill(1500), snapshot(1600, ["P", {}, "Next"])) == [1000]
    before = snapshot(1600, field("password"), phase="before")
    assert kept(tmp_path, fill(1500), before) == [1000]


@pytest.mark.parametrize("method", ["evaluateExpression", "setContent", "selectOption"])
def test_any_other_input_may_be_readable(tmp_path: Path, method: str) -> None:
    event = fill(1500, method=method)
    assert kept(tmp_path, event, snapshot(1600, field("password"))) == [1000]


def test_a_page_that_shows_a_secret_of_its_own_loses_all_frames(tmp_path: Path) -> None:
    assert kept(tmp_path, snapshot(2500, ["P", {}, SECRET])) == []
    assert kept(tmp_path, snapshot(2500, ["P", {}, SECRET]), page=OTHER_PAGE) == ALL


def test_a_snapshot_that_cannot_be_read_is_taken_to_show_what_it_has(tmp_path: Path) -> None:
    head = '{"type":"frame-snapshot","snapshot":{"callId":"call@7","phase":"after",'
    html = f'"pageId":"{PAGE}","html":' + '["DIV",{},' * 2000 + f'"{SECRET}"' + "]" * 2000
    event = (head + html + "}}\n").encode()
    archive = a_zip({"0-trace.trace": lines(fill(1500)) + event, names()[2]: PICTURE})
    assert hidden(tmp_path, archive, SECRET).shows_secret


def test_a_typed_secret_loses_all_frames_even_in_a_password_field(tmp_path: Path) -> None:
    """A page may show each letter for a moment, between two snapshots."""
    params = {"selector": "#p", "text": SECRET}
    typing = fill(1500, method="type", params=params), snapshot(1600, field("password"))
    assert kept(tmp_path, *typing, typed=(SECRET,)) == []


def test_a_snapshot_that_is_too_long_to_be_read_as_a_whole_loses_all_frames(tmp_path: Path) -> None:
    image = ["IMG", {"src": "data:image/png;base64," + "A" * (9 << 20)}]
    assert kept(tmp_path, snapshot(2500, image, ["P", {}, SECRET])) == []


def test_the_screenshots_of_calls_go_where_a_page_showed_a_secret(tmp_path: Path) -> None:
    shot = "screenshots/call@7-after.png"
    event = {"type": "screenshot", "callId": "call@7", "pageId": PAGE, "file": shot}
    for shown, left in ((SECRET, []), ("tea", [shot])):
        events = snapshot(1600, ["P", {}, shown]), event
        archive = a_zip({"0-trace.trace": lines(*events), shot: PICTURE})
        clean = read_members(hidden(tmp_path, archive, SECRET).file.path.read_bytes())
        assert [name for name in clean if name == shot] == left
        found = events_of(clean["0-trace.trace"])
        assert [one["file"] for one in found if one["type"] == "screenshot"] == left


def test_the_beginning_of_a_typed_secret_is_known_to_the_masks(tmp_path: Path) -> None:
    said = {"type": "console", "messageType": "log", "text": f"typed {SECRET[:6]}", "pageId": PAGE}
    archive = a_zip({"0-trace.trace": lines(said)})
    given: Event = {"typed": (SECRET,), "out_of_sight": (OTHER,)}
    assert not hidden(tmp_path, archive, SECRET, OTHER, **given).shows_found
    said["text"] = f"typed {OTHER}"
    archive = a_zip({"0-trace.trace": lines(said)})
    assert hidden(tmp_path, archive, SECRET, OTHER, **given).shows_found
