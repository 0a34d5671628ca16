from collections.abc import Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.requests import BasicAuth, HttpRequest, KeyValue
from contract.result import FailureKind
from contract.templates import Filling, VariableError, fill, fill_request
from tests.builders.specs import a_variable, an_http_request

NOW = datetime(2026, 11, 21, 10, 5, 7, tzinfo=UTC)


def filled(text: str, variables: Mapping[str, str] | None = None, **more: Any) -> str:
    return fill(text, Filling(variables=variables or {}, now=NOW, random=Random(7)), **more)


def filled_request(request: HttpRequest, **variables: str) -> HttpRequest:
    given_ = [a_variable(key, value) for key, value in variables.items()]
    return fill_request(request, given_, now=lambda: NOW, random=Random(7))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{A}}", "x%20y%22%C3%A9"),
        ("{{{A}}}", 'x y"é'),
        ("{{ A }}-{{{ A }}}", 'x%20y%22%C3%A9-x y"é'),
        ("{{BASE}}/path", "https://host:1/p?q=1&r#f/path"),
        ('{"a":{{{N}}}}', '{"a":5}'),
        ('{"a":{{N}}}', '{"a":5}'),
        ('{"a":{"b":{{{N}}}}}', '{"a":{"b":5}}'),
        ("nothing { here }", "nothing { here }"),
        ("{{}}", "{{}}"),
        ("{{  }} {{{ }}}", "{{  }} {{{ }}}"),
        (r"\{{A}}", "{{A}}"),
        ("{{FUNNY}}", "%7B%7BA%7D%7D"),
        ("{{{FUNNY}}}", "{{A}}"),
        ("{{moment}}", "mine"),
    ],
)
def test_double_braces_encode_and_triple_ones_do_not(text: str, shown: str) -> None:
    variables = {
        "A": 'x y"é',
        "BASE": "https://host:1/p?q=1&r#f",
        "N": "5",
        "FUNNY": "{{A}}",
        "moment": "mine",
    }
    assert filled(text, variables) == shown


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(VariableError) as caught:
        filled("https://{{HOST}}/{{PATH}}", {"PATH": "x"})
    assert caught.value.failure.kind is FailureKind.SCRIPT
    assert caught.value.failure.message == "The variable HOST is not set."
    assert caught.value.failure.detail == {"variable": "HOST"}


def test_the_dice_make_numbers_and_uuids() -> None:
    one, other, number = filled("{{$UUID}} {{$UUID}} {{{$RANDOM_NUMBER}}}").split()
    assert UUID(one).version == UUID(other).version == 4
    assert one != other
    assert 0 <= int(number) <= 10_000


@pytest.mark.parametrize("helper", ["moment", "date"])
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("", "November 21, 2026"),
        (' "YYYY-MM-DD"', "2026-11-21"),
        (" 'YYYY-MM-DD'", "2026-11-21"),
        (' "yesterday"', "November 20, 2026"),
        (' "2 days ago" "YYYY-MM-DD"', "2026-11-19"),
        (' "in 3 weeks" "D.M."', "12.12."),
    ],
)
def test_dates_take_an_input_and_a_format(helper: str, arguments: str, shown: str) -> None:
    assert filled(f"{{{{{{{helper}{arguments}}}}}}}") == shown


@pytest.mark.parametrize(
    "expression", ['moment "soon" "YYYY"', 'moment "YYYY', 'date "now" "YYYY" "utc"']
)
def test_a_date_that_cannot_be_read_is_told(expression: str) -> None:
    with pytest.raises(VariableError, match="cannot be filled"):
        filled(f"{{{{{expression}}}}}")


def test_every_field_of_a_request_is_filled_as_it_needs() -> None:
    request = an_http_request(
        "https://{{HOST}}/a?b={{V}}",
        body='{"v": "{{{V}}}", "from": "{{{REQUEST_URL}}}"}',
        headers=(KeyValue(key="x-v", value="{{V}}", locked=True),),
        query_parameters=(KeyValue(key="{{V}}", value="{{V}}"), KeyValue(key="r", value="{{{V}}}")),
        basic_auth=BasicAuth(username="{{{V}}}", password="{{V}}"),
    )
    sent = filled_request(request, HOST="host", V="a b")
    assert sent.url == "https://host/a?b=a%20b"
    assert sent.body == '{"v": "a b", "from": "https://host/a?b=a%20b"}'
    assert sent.headers == (KeyValue(key="x-v", value="a%20b", locked=True),)
    assert [pair.key for pair in sent.query_parameters] == ["a b", "r"]
    assert [pair.value for pair in sent.query_parameters] == ["a b", "a b"]
    assert sent.basic_auth == BasicAuth(username="a b", password="a%20b")


@pytest.mark.parametrize(
    "request_",
    [
        an_http_request("http://h/{{V}}"),
        an_http_request(body="{{V}}"),
        an_http_request(headers=(KeyValue(key="a", value=""), KeyValue(key="b", value="{{V}}"))),
        an_http_request(headers=(KeyValue(key="{{V}}", value=""),)),
        an_http_request(query_parameters=(KeyValue(key="{{V}}", value=""),)),
        an_http_request(
            query_parameters=(KeyValue(key="a", value=""), KeyValue(key="b", value="{{V}}"))
        ),
        an_http_request(basic_auth=BasicAuth(username="{{V}}")),
        an_http_request(basic_auth=BasicAuth(password="{{V}}")),
    ],
)
def test_one_place_anywhere_is_found(request_: HttpRequest) -> None:
    with pytest.raises(VariableError):
        filled_request(request_)
    assert "{{" not in str(filled_request(request_, V="x"))


def test_a_request_without_places_stays_the_same_object() -> None:
    request = an_http_request(basic_auth=BasicAuth(username="a", password="{b}"))
    assert filled_request(request, V="x") is request


def test_an_open_place_costs_no_more_than_its_length() -> None:
    text = "{{{" + " " * 200_000
    assert filled(text) == text


@given(st.text(), st.text())
def test_text_around_a_place_stays_as_it_is(before: str, value: str) -> None:
    before = before.replace("{", "").replace("\\", "")
    assert filled(f"{before}{{{{{{V}}}}}}", {"V": value}) == before + value
