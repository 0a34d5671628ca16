"""Traces: secrets go from events that only together tell them, and events stay JSON."""

from pathlib import Path
from typing import Any

import pytest

from redaction.policy import HIDDEN
from redaction.trace.snapshots import TypedPrefixes
from redaction.trace.typed import Automaton
from tests.builders.archives import (
    OTHER_PAGE,
    PAGE,
    PICTURE,
    a_zip,
    events_of,
    hidden,
    hidden_bytes,
    lines,
    read_members,
)

SECRET = "Zq7w-Kp2"


def key(number: int, char: str, **changes: Any) -> dict[str, Any]:
    """An event of a key that is pressed."""
    usual = {"type": "before", "callId": f"call@{number}", "method": "keyboardPress"}
    return {**usual, "params": {"key": char}, **changes}


def a_snapshot(html: Any, *, page: str = PAGE) -> dict[str, Any]:
    return {"type": "frame-snapshot", "snapshot": {"pageId": page, "html": html}}


def a_frame(page: str) -> dict[str, Any]:
    return {"type": "screencast-frame", "pageId": page, "file": f"screencast/{page}-1.jpeg"}


def cleaned(folder: Path, *events: dict[str, Any], secret: str = SECRET) -> list[Any]:
    """The events of a trace, once it is clean."""
    archive = a_zip({"0-trace.trace": lines(*events)})
    return events_of(read_members(hidden_bytes(folder, archive, secret))["0-trace.trace"])


def test_keys_that_spell_a_secret_go(tmp_path: Path) -> None:
    typed = [key(at, char) for at, char in enumerate(f"a{SECRET}b")]
    left = [one["params"]["key"] for one in cleaned(tmp_path, *typed)]
    assert left == ["a", *[HIDDEN] * len(SECRET), "b"]


def test_keys_that_spell_no_secret_stay(tmp_path: Path) -> None:
    typed = [key(at, char) for at, char in enumerate(f"{SECRET[:-1]}x")]
    assert cleaned(tmp_path, *typed) == typed


def test_keys_go_that_spell_the_beginning_of_a_secret_that_was_typed(tmp_path: Path) -> None:
    """Its run was ended before the last one."""
    archive = a_zip({"0-trace.trace": lines(*(key(at, c) for at, c in enumerate(SECRET[:-1])))})
    left = hidden(tmp_path, archive, SECRET, typed=(SECRET,))
    (content,) = read_members(left.file.path.read_bytes()).values()
    assert {one["params"]["key"] for one in events_of(content)} == {HIDDEN}
    assert left.shows_secret


def test_numbers_go_that_are_the_beginning_of_a_secret_that_was_typed(tmp_path: Path) -> None:
    archive = a_zip({"resources/a.json": b'{"code": 4839201, "at": 1700000000000}'})
    clean = hidden(tmp_path, archive, "48392017", typed=("48392017",)).file.path.read_bytes()
    (content,) = read_members(clean).values()
    assert content == b'{"code": 0, "at": 1700000000000}'


def test_pieces_of_text_and_keys_spell_together(tmp_path: Path) -> None:
    insert = {"method": "keyboardInsertText", "params": {"text": SECRET[1:-1]}}
    typed = [key(1, SECRET[0]), key(2, "", **insert), key(3, SECRET[-1])]
    left = [one["params"] for one in cleaned(tmp_path, *typed)]
    assert left == [{"key": HIDDEN}, {"text": HIDDEN}, {"key": HIDDEN}]


def test_what_else_is_said_of_a_key_goes(tmp_path: Path) -> None:
    typed = [key(at, char, title=f'Press "{char}"') for at, char in enumerate(SECRET)]
    said = {"type": "log", "callId": "call@0", "message": f'press("{SECRET[0]}")'}
    left = cleaned(tmp_path, *typed, said)
    assert {one["title"] for one in left[:-1]} == {f'Press "{HIDDEN}"'}
    assert left[-1]["message"] == f'press("{HIDDEN}")'


def test_how_a_typed_secret_grew_in_a_field_goes(tmp_path: Path) -> None:
    def field(value: str) -> dict[str, Any]:
        return a_snapshot(["INPUT", {"__playwright_value_": value, "id": "i"}])

    typed = [
        event
        for at, char in enumerate(SECRET)
        for event in (key(at, char), field(SECRET[: at + 1]), field(f"a {SECRET[: at + 1]}"))
    ]
    left = [one for one in cleaned(tmp_path, *typed) if one["type"] == "frame-snapshot"]
    values = [one["snapshot"]["html"][1]["__playwright_value_"] for one in left]
    assert values[::2] == [HIDDEN] * len(SECRET)
    assert not any(SECRET[:3] in value for value in values)


def boxes(*letters: str, name: str = "__playwright_value_") -> dict[str, Any]:
    """A page with a field for each letter."""
    return a_snapshot(["BODY", {}, *(["INPUT", {name: one, "id": "i"}] for one in letters)])


@pytest.mark.parametrize("name", ["__playwright_value_", "value"])
@pytest.mark.parametrize("is_at_once", [True, False])
def test_letters_go_of_a_secret_that_has_a_field_for_each(
    tmp_path: Path, name: str, *, is_at_once: bool
) -> None:
    """A snapshot tells all fields, or those alone that changed since the one before."""
    secret = 'Zq7"-\u00fcp2'
    letters = [secret] if is_at_once else [*secret]
    events = [boxes("x", "", name=name), *(boxes(*some, name=name) for some in letters)]
    left = cleaned(tmp_path, *events, boxes("yy", name=name), secret=secret)
    values = [one[1][name] for event in left for one in event["snapshot"]["html"][2:]]
    assert values.pop(1) == ""
    assert values.pop() == "yy"
    assert values == [HIDDEN] * (1 + len(secret))


def test_letters_go_while_the_fields_fill_and_all_are_told_each_time(tmp_path: Path) -> None:
    grown = [boxes(*SECRET[: at + 1]) for at in range(len(SECRET))]
    left = cleaned(tmp_path, *grown)
    values = [
        one[1]["__playwright_value_"] for event in left for one in event["snapshot"]["html"][2:]
    ]
    assert {*values} == {HIDDEN}


def test_letters_go_that_are_filled_in_one_by_one(tmp_path: Path) -> None:
    fill: dict[str, Any] = {"method": "fill"}
    filled = [
        key(at, "", **fill, title=f'Fill "{char}"') | {"params": {"selector": "i", "value": char}}
        for at, char in enumerate(f"a{SECRET}b")
    ]
    left = cleaned(tmp_path, *filled)
    assert [one["params"]["value"] for one in left] == ["a", *[HIDDEN] * len(SECRET), "b"]
    assert {one["title"] for one in left[1:-1]} == {f'Fill "{HIDDEN}"'}


def test_letters_go_of_the_beginning_of_a_typed_secret_too(tmp_path: Path) -> None:
    archive = a_zip({"0-trace.trace": lines(boxes(*SECRET[:5], ""), boxes("ab", "c"))})
    left = hidden(tmp_path, archive, SECRET, typed=(SECRET,)).file.path.read_bytes()
    first, second = events_of(read_members(left)["0-trace.trace"])
    assert [one[1]["__playwright_value_"] for one in first["snapshot"]["html"][2:]] == [
        *[HIDDEN] * 5,
        "",
    ]
    assert second == boxes("ab", HIDDEN)


def test_how_a_very_long_secret_grew_in_a_field_goes(tmp_path: Path) -> None:
    secret = "".join(f"{at:x}-" for at in range(0x400, 0x500))
    sizes = (3, 4, 102, 103, 104, 105, 300, 700, len(secret) - 1)
    events = [a_snapshot(["P", {}, secret[:size]]) for size in sizes]
    archive = a_zip({"0-trace.trace": lines(*events)})
    left = hidden(tmp_path, archive, secret, typed=(secret,)).file.path.read_bytes()
    told = events_of(read_members(left)["0-trace.trace"])
    assert [one["snapshot"]["html"][2] for one in told] == [HIDDEN] * len(sizes)


@pytest.mark.parametrize("kind", ["stdout", "stderr"])
def test_output_that_comes_in_parts_goes(tmp_path: Path, kind: str) -> None:
    parts = [{"type": kind, "text": text} for text in ("a", SECRET[:3], SECRET[3:], "b")]
    assert [one["text"] for one in cleaned(tmp_path, *parts)] == ["a", HIDDEN, HIDDEN, "b"]


def test_messages_of_a_web_socket_that_come_in_parts_go(tmp_path: Path) -> None:
    parts = [{"type": "receive", "opcode": 1, "data": text} for text in (SECRET[:3], SECRET[3:])]
    archive = a_zip({f"resources/{'a' * 32}.jsonl": lines(*parts)})
    (content,) = read_members(hidden_bytes(tmp_path, archive, SECRET)).values()
    assert [one["data"] for one in events_of(content)] == [HIDDEN, HIDDEN]


@pytest.mark.parametrize(
    "html",
    [
        ["BODY", {}, ["B", {}, SECRET[:4]], ["I", {"class": "a"}, SECRET[4:]]],
        ["BODY", {}, SECRET[:4], SECRET[4:]],
        ["BODY", {}, ["B", {}, SECRET[:4], ["I", SECRET[4:]]]],
        ["BODY", {}, *[["SPAN", {"style": "left: 1em"}, char] for char in SECRET]],
        ["BODY", {}, f"before {SECRET[:2]}", ["B", {}, f"{SECRET[2:]} after"]],
        ["BODY", {}, SECRET[:4], [[1, 5]], SECRET[4:]],
        ["BODY", {}, ["B", {}, SECRET[:4], [[2, 7]]], [[1, 5]], ["I", {}, [[1, 2]], SECRET[4:]]],
        ["BODY", {}, SECRET[:4], "", ["WBR", {}], "\n \t", SECRET[4:]],
    ],
)
def test_a_secret_that_is_split_over_elements_of_a_page_goes(tmp_path: Path, html: Any) -> None:
    (left,) = cleaned(tmp_path, a_snapshot(html))
    text = "".join(_texts(left["snapshot"]["html"]))
    assert SECRET[2:] not in text
    assert SECRET[:2] not in text
    assert HIDDEN in text


def _texts(node: Any) -> list[str]:
    if isinstance(node, str):
        return [node]
    return [text for child in node[1:] if not isinstance(child, dict) for text in _texts(child)]


def test_a_secret_that_is_split_over_elements_of_html_goes(tmp_path: Path) -> None:
    html = f"<p><b>{SECRET[:4]}</b> <i>{SECRET[4:]}</i></p>".encode()
    (left,) = read_members(hidden_bytes(tmp_path, a_zip({"a.html": html}), SECRET)).values()
    assert left == f"<p><b>{HIDDEN}</b> <i>{HIDDEN}</i></p>".encode()


def test_a_number_that_is_a_secret_leaves_json_as_it_is(tmp_path: Path) -> None:
    event = {"type": "event", "pin": 73914682, "list": [1, 73914682], "text": "is 73914682"}
    (left,) = cleaned(tmp_path, event, secret="73914682")
    assert left == {"type": "event", "pin": 0, "list": [1, 0], "text": f"is {HIDDEN}"}


@pytest.mark.parametrize(
    "html",
    [
        ["BODY", {}, SECRET],
        ["BODY", {}, SECRET[:4], ["B", {}, SECRET[4:]]],
        ["BODY", {}, SECRET[:4], [[1, 5]], SECRET[4:]],
    ],
)
def test_pictures_of_a_page_that_had_a_secret_go(tmp_path: Path, html: Any) -> None:
    frames = [a_frame(PAGE), a_frame(OTHER_PAGE)]
    events = lines(a_snapshot(html), *frames)
    pictures = {one["file"]: PICTURE for one in frames}
    found = hidden(tmp_path, a_zip({"0-trace.trace": events, **pictures}), SECRET)
    left = read_members(found.file.path.read_bytes())
    assert found.shows_secret
    assert found.left_out == ("1 x film strip frame of a page that showed a secret in its content",)
    assert set(left) == {"0-trace.trace", frames[1]["file"]}
    assert events_of(left["0-trace.trace"])[1:] == frames[1:]


NAMES = {SECRET: "the value of TOKEN"}
FILLED = {"type": "before", "callId": "1", "method": "fill", "startTime": 1.0, "pageId": PAGE}


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (a_snapshot(["BODY", {}, SECRET]), "the value of TOKEN in its content"),
        (a_snapshot(["BODY", {}, SECRET[:4], ["B", {}, SECRET[4:]]]), "a secret in its content"),
        (
            {"type": "console", "text": SECRET, "time": 1.0, "pageId": PAGE},
            "the value of TOKEN on its console",
        ),
        (
            FILLED | {"params": {"selector": "#a", "value": SECRET}},
            "the value of TOKEN in an input of the script",
        ),
    ],
)
def test_the_reason_of_a_missing_frame_names_the_secret_and_where_it_was(
    tmp_path: Path, event: dict[str, Any], named: str
) -> None:
    frames = [a_frame(PAGE), a_frame(OTHER_PAGE)]
    other = a_snapshot(["BODY", {}, "text"])
    members = {"0-trace.trace": lines(event, other, *frames), frames[0]["file"]: PICTURE}
    found = hidden(tmp_path, a_zip(members), SECRET, names=NAMES)
    assert found.left_out == (f"1 x film strip frame of a page that showed {named}",)


def test_a_value_of_a_header_is_named_after_its_header(tmp_path: Path) -> None:
    frame = a_frame(PAGE)
    call = {"snapshot": {"headers": [{"name": "Authorization", "value": f"Bearer {SECRET}"}]}}
    members = {
        "0-trace.trace": lines(a_snapshot(["BODY", {}, f"token: {SECRET}"]), frame),
        "0-trace.network": lines({"type": "resource-snapshot", **call}),
        frame["file"]: PICTURE,
    }
    found = hidden(tmp_path, a_zip(members))
    named = "a value of the header Authorization in its content"
    assert found.left_out == (f"1 x film strip frame of a page that showed {named}",)


def test_pictures_go_with_a_secret_that_has_a_field_for_each_letter(tmp_path: Path) -> None:
    """Which page's fields spelled it is not remembered."""
    frame = a_frame(PAGE)
    members = {"0-trace.trace": lines(boxes(*SECRET), frame), frame["file"]: PICTURE}
    found = hidden(tmp_path, a_zip(members), SECRET)
    assert found.shows_secret
    assert set(read_members(found.file.path.read_bytes())) == {"0-trace.trace"}


def test_pictures_go_that_show_what_no_mask_knew_in_several_elements(tmp_path: Path) -> None:
    html = ["BODY", {}, SECRET[:4], ["B", {}, SECRET[4:]]]
    archive = a_zip({"0-trace.trace": lines(a_snapshot(html))})
    assert hidden(tmp_path, archive, SECRET, out_of_sight=(SECRET,)).shows_found
    assert not hidden(tmp_path, archive, SECRET).shows_found


def test_pictures_stay_where_no_page_had_a_secret(tmp_path: Path) -> None:
    frames = [a_frame(PAGE), a_frame(OTHER_PAGE)]
    members = {
        "0-trace.trace": lines(a_snapshot(["BODY", {}, "text"]), *frames),
        **{one["file"]: PICTURE for one in frames},
    }
    found = hidden(tmp_path, a_zip(members), SECRET)
    assert not found.shows_secret
    assert read_members(found.file.path.read_bytes()) == members


@pytest.mark.parametrize("named", ["sha1", "file"])
def test_screenshots_that_a_test_attached_go_with_a_page_that_had_a_secret(
    tmp_path: Path, named: str
) -> None:
    folder = "attachments/" if named == "file" else ""
    picture = {"name": "a {b}", "contentType": "image/png", named: f"{folder}{'a' * 40}"}
    text = {"name": "b", "contentType": "text/plain", named: f"{folder}{'b' * 40}"}
    members = {
        "0-trace.trace": lines(a_snapshot(["BODY", {}, SECRET])),
        "test.trace": lines({"type": "after", "callId": "1", "attachments": [text, picture, text]}),
        f"{folder or 'resources/'}{'a' * 40}": PICTURE,
        f"{folder or 'resources/'}{'b' * 40}": b"text",
        "resources/site.png": PICTURE,
    }
    left = read_members(hidden_bytes(tmp_path, a_zip(members), SECRET))
    assert events_of(left["test.trace"])[0]["attachments"] == [text, text]
    assert set(members) - set(left) == {f"{folder or 'resources/'}{'a' * 40}"}


def test_what_is_looked_for_is_made_ready_once_however_many_members_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each of thousands it took minutes."""
    made = []
    for whose in (Automaton, TypedPrefixes):
        make = whose.__init__
        monkeypatch.setattr(whose, "__init__", lambda *given, make=make: made.append(make(*given)))
    members = {f"{number}-trace.trace": lines(key(number, "a")) for number in range(20)}
    hidden(tmp_path, a_zip(members), SECRET, typed=(SECRET,))
    assert len(made) == 3


def test_keys_and_pictures_go_together(tmp_path: Path) -> None:
    typed = [key(at, char) for at, char in enumerate(SECRET)]
    assert [one["type"] for one in cleaned(tmp_path, *typed, a_frame(PAGE))] == ["before"] * 8


def test_a_line_that_is_longer_than_memory_allows_is_cleaned_too(tmp_path: Path) -> None:
    event = {"type": "event", "text": "x" * (9 << 20) + SECRET}
    (left,) = cleaned(tmp_path, event)
    assert left["text"].endswith("x" + HIDDEN)


def test_a_long_line_full_of_texts_takes_no_longer_than_it_is(tmp_path: Path) -> None:
    """Were each text looked for from the line's beginning, this would take minutes."""
    said = {"type": "console", "args": [{"text": "some text"}] * 300_000, "end": SECRET}
    (left,) = cleaned(tmp_path, said)
    assert left["end"] == HIDDEN


def test_secrets_go_however_many_one_block_of_events_holds(tmp_path: Path) -> None:
    said = [{"type": "log", "message": f"{at} {SECRET}"} for at in range(500)]
    left = [one["message"] for one in cleaned(tmp_path, *said)]
    assert left == [f"{at} {HIDDEN}" for at in range(500)]


def test_a_secret_goes_from_events_that_change_for_other_reasons(tmp_path: Path) -> None:
    header = {"type": "log", "message": "  cookie: session=of-somebody"}
    said = {"type": "log", "message": f"it is {SECRET} and of-somebody"}
    left = [one["message"] for one in cleaned(tmp_path, header, said, header)]
    assert left[1] == f"it is {HIDDEN} and {HIDDEN}"
    assert HIDDEN in left[0]
    assert left[0] == left[2]


def test_a_cookie_of_the_network_log_goes_from_events(tmp_path: Path) -> None:
    cookie = {"name": "Cookie", "value": "session=of-somebody"}
    request = {"type": "resource-snapshot", "snapshot": {"headers": [cookie]}}
    said = {"type": "log", "message": "they echo of-somebody"}
    archive = a_zip({"0-trace.trace": lines(said), "0-trace.network": lines(request)})
    members = read_members(hidden_bytes(tmp_path, archive, SECRET))
    assert events_of(members["0-trace.trace"])[0]["message"] == f"they echo {HIDDEN}"
    assert b"of-somebody" not in members["0-trace.network"]
