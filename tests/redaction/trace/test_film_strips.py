"""Which frames of a film strip stay: those from before a fill, and dots for a password."""

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


def keys(at_ms: float, text: str, *, call: str = "call@7") -> Event:
    """A call that types letter by letter."""
    params = {"selector": "#p", "text": text}
    return fill(at_ms, call=call, method="type", params=params)


def key(at_ms: float, letter: str, *, call: str) -> Event:
    return fill(at_ms, call=call, method="keyboardPress", params={"key": letter})


def key_by_key(kind: str) -> list[Event]:
    """A secret that is typed with a call for each letter, and the field after each of them."""
    return [
        event
        for at, letter in enumerate(SECRET, start=1)
        for event in (
            key(1500 + at, letter, call=f"call@{at}"),
            snapshot(1500 + at, field(kind, SECRET[:at]), call=f"call@{at}"),
        )
    ]


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


def test_a_password_that_is_typed_keeps_its_film_strip(tmp_path: Path) -> None:
    at_once = keys(1500, SECRET), snapshot(1600, field("password"))
    assert kept(tmp_path, *at_once, typed=(SECRET,)) == ALL
    begun = keys(1500, SECRET[:8]), snapshot(1510, field("password", SECRET[:8]))
    rest = keys(1520, SECRET[8:], call="call@8"), snapshot(1600, field("password"), call="call@8")
    assert kept(tmp_path, *begun, *rest, typed=(SECRET,)) == ALL
    assert kept(tmp_path, *key_by_key("password"), typed=(SECRET,)) == ALL


def test_a_secret_that_is_typed_into_a_text_field_loses_all_frames(tmp_path: Path) -> None:
    at_once = keys(1500, SECRET), snapshot(1600, field("text"))
    assert kept(tmp_path, *at_once, typed=(SECRET,)) == []
    assert kept(tmp_path, *key_by_key("text"), typed=(SECRET,)) == []


@pytest.mark.parametrize(
    "shown",
    [field("text", SECRET[:5]), ["P", {}, f"It is {SECRET[:5].upper()}"], ["P", {}, SECRET]],
)
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_typed_secret_that_begins_anywhere_else_loses_all_frames(
    tmp_path: Path, shown: list[Any], phase: str
) -> None:
    typing = keys(1500, SECRET), snapshot(1600, field("password"))
    elsewhere = snapshot(2600, shown, call="call@9", phase=phase, page=OTHER_PAGE)
    assert kept(tmp_path, *typing, elsewhere, typed=(SECRET,)) == []
    assert kept(tmp_path, elsewhere, *typing, typed=(SECRET,)) == []


def test_typed_letters_that_no_snapshot_follows_may_be_readable(tmp_path: Path) -> None:
    typing = keys(1500, SECRET), snapshot(1600, field("password"))
    assert kept(tmp_path, key(1400, "Z", call="call@6"), *typing, typed=(SECRET,)) == []
    assert kept(tmp_path, *typing, key(1700, "Enter", call="call@8"), typed=(SECRET,)) == ALL
    before = snapshot(1600, field("password"), phase="before")
    assert kept(tmp_path, keys(1500, SECRET), before, typed=(SECRET,)) == []


def test_a_typed_secret_that_no_password_field_has_may_be_readable(tmp_path: Path) -> None:
    longer = keys(1500, SECRET), snapshot(1600, field("password", f"{OTHER}{SECRET}"))
    assert kept(tmp_path, *longer, typed=(SECRET,)) == []
    of_both = keys(1500, SECRET), snapshot(1600, field("password"))
    assert kept(tmp_path, *of_both, typed=(SECRET, OTHER)) == []
    assert kept(tmp_path, snapshot(1600, field("password")), typed=(SECRET,)) == []


def test_typing_calls_of_the_same_name_prove_nothing(tmp_path: Path) -> None:
    typing = keys(1500, SECRET), snapshot(1600, field("password"))
    assert kept(tmp_path, keys(1400, "tea"), *typing, typed=(SECRET,)) == []


def test_a_typed_secret_that_the_run_did_not_report_may_be_anywhere(tmp_path: Path) -> None:
    assert kept(tmp_path, *key_by_key("password")) == []
