"""What stands in a form, and what it means."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.checks.types.api import ApiCheckWrite
from service.groups.schemas import GroupV2Write
from service.web.forms.field_schema import ABSENT, Field, Kind, Option, read_fields, walk
from service.web.forms.form_state import Parser, Sent, blank_row, collect, express

_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"))
_LINES = Field(name="tags", kind=Kind.LINES, is_text=True)
_API = read_fields(ApiCheckWrite)


def parse(field: Field, state: Any, stored: Any = ABSENT) -> Any:
    return Parser().parse(field, state, stored)


def field_of(path: str) -> Field:
    return dict(walk(_API))[path]


@given(st.lists(_TEXTS, min_size=1))
def test_lines_mean_what_they_were_written_for(values: list[str]) -> None:
    assert parse(_LINES, express(_LINES, values)) == values


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53))
def test_numbers_mean_what_they_were_written_for(value: float) -> None:
    number = Field(name="n", kind=Kind.NUMBER)
    assert parse(number, express(number, value)) == value


@given(st.recursive(st.none() | st.booleans() | _TEXTS, st.lists))
def test_json_means_what_it_was_written_for(value: Any) -> None:
    anything = Field(name="any", kind=Kind.JSON, is_nullable=True, is_required=True)
    assert parse(anything, express(anything, value)) == value


def test_every_field_of_a_check_and_a_group_has_a_form_of_its_own() -> None:
    free = {"browserCheckDefaults", "playwrightConfig"}
    for model in (ApiCheckWrite, GroupV2Write):
        found = [path for path, one in walk(read_fields(model)) if one.kind is Kind.JSON]
        assert set(found) <= free


@pytest.mark.parametrize(
    ("path", "state", "value"),
    [
        ("name", "", ""),
        ("description", "", None),
        ("request.body", "", ""),
        ("maxResponseTime", "", None),
        ("maxResponseTime", " 12.5 ", 12.5),
        ("maxResponseTime", "soon", "soon"),
        ("groupId", "7", 7),
        ("runtimeId", "2025.04", "2025.04"),
        ("frequency", "5", 5),
        ("activated", "false", False),
        ("useGlobalAlertSettings", "", None),
        ("tags", "a\n\n b ", ["a", "b"]),
        ("locations", ("us-east-1", "eu-west-1"), ["us-east-1", "eu-west-1"]),
        ("retryStrategy", {"#shape": "0", "of": {}}, None),
        ("retryStrategy", {"#shape": "1", "of": {"type": "FIXED"}}, {"type": "FIXED"}),
    ],
)
def test_a_field_means_a_value(path: str, state: Any, value: Any) -> None:
    changed = {"description": "before", "maxResponseTime": 1, "activated": True}
    stored = changed.get(path, {"type": "LINEAR"} if path == "retryStrategy" else "before")
    assert parse(field_of(path), state, stored if path != "retryStrategy" else ABSENT) == value


def test_a_default_that_stays_is_not_sent() -> None:
    assert parse(field_of("muted"), "false") is ABSENT
    retries = field_of("retryStrategy")
    assert parse(retries, express(retries, ABSENT)) is ABSENT


def test_a_required_field_is_sent_even_when_it_is_empty() -> None:
    assert parse(field_of("name"), "") == ""
    assert parse(field_of("environmentVariables[].value"), "") == ""


def test_a_box_that_is_not_ticked_says_no_and_is_not_missing() -> None:
    incident = field_of("triggerIncident")
    (shape,) = (str(at) for at, one in enumerate(incident.shapes) if one.field)
    blank = [("i#shape", shape), ("i.name", ""), ("i.notifySubscribers", "false")]
    for stored in (ABSENT, None):
        body = parse(incident, collect(incident, Sent(blank), "i"), stored)
        assert (body["notifySubscribers"], body["name"]) == (False, "")


def test_a_field_that_the_form_does_not_have_keeps_its_value() -> None:
    sent = Sent([("name", "New")])
    state = collect(_API, sent, "")
    assert parse(_API, state, {"name": "Old", "muted": True, "ofLater": 1}) == {
        "name": "New",
        "muted": True,
        "ofLater": 1,
    }


def test_rows_that_were_taken_out_are_gone_and_others_keep_what_no_field_shows() -> None:
    stored = [{"key": "a", "value": "1", "ofLater": 1}, {"key": "b", "value": "2", "ofLater": 2}]
    headers = field_of("request.headers")
    sent = Sent([("h", ""), ("h[1].key", "b"), ("h[1].value", "2"), ("h[7].key", "c")])
    assert parse(headers, collect(headers, sent, "h"), stored) == [stored[1], {"key": "c"}]


def test_rows_in_which_nothing_stands_are_passed_over() -> None:
    headers = field_of("request.headers")
    blank = [("h[0].key", ""), ("h[0].value", ""), ("h[0].locked", "false")]
    assert collect(headers, Sent([("h", ""), *blank]), "h") == []


def test_a_choice_that_is_no_option_any_more_is_kept() -> None:
    slugs = replace(_LINES, kind=Kind.CHOICES, options=(Option("b", "B"), Option("a", "A")))
    assert parse(slugs, ("a", "b", "gone"), ["gone", "a"]) == ["gone", "a", "b"]


def test_text_that_is_no_json_is_told_with_its_field() -> None:
    parser = Parser()
    config = Field(name="config", kind=Kind.JSON)
    parser.parse(config, "{", ABSENT, "config")
    (problem,) = parser.unreadable
    assert problem.path == "config"
    assert "not JSON" in problem.sentence


def test_a_new_row_says_yes_to_what_has_to_be_said() -> None:
    switch = Field(name="activated", kind=Kind.CHECKBOX, is_required=True)
    other = Field(name="locked", kind=Kind.CHECKBOX)
    rows = Field(name="subscriptions", kind=Kind.ROWS, fields=(switch, other))
    assert blank_row(rows) == {"activated": "true", "locked": "false"}
