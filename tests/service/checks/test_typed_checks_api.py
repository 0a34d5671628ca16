from typing import Any, get_args

import pytest

from contract.checks import SPEC_TYPES, CheckType
from service.checks import model
from service.checks.schemas import MinuteCheckWrite
from service.checks.types.registry import DEFINITIONS
from service.http.validation import NAMED_TYPES
from tests.builders.any_check import TYPES, least_body
from tests.builders.check_bodies import check_body
from tests.servers.public_api import ApiUser


@pytest.mark.parametrize("kind", TYPES)
async def test_a_check_is_the_same_whichever_path_takes_it(alice: ApiUser, kind: str) -> None:
    body = await least_body(alice, kind)
    typed = await alice.post("/v1/checks", {**body, "checkType": TYPES[kind]})
    assert typed.status == 201, typed.body
    plain = await alice.post(f"/v1/checks/{kind}", body)
    own = {"id", "created_at", "heartbeat", "pingUrl"}
    assert {key: value for key, value in typed.body.items() if key not in own} == {
        key: value for key, value in plain.body.items() if key not in own
    }
    path = f"/v1/checks/{typed.body['id']}"
    changed = await alice.put(path, {**body, "checkType": TYPES[kind], "name": "New"})
    assert (changed.status, changed.body["name"]) == (200, "New")
    assert (await alice.get(path)).body == changed.body


async def test_what_is_read_can_be_sent_back(alice: ApiUser) -> None:
    made = (await alice.post("/v1/checks", {**check_body("api"), "checkType": "API"})).body
    again = await alice.put(f"/v1/checks/{made['id']}", made)
    assert again.status == 200
    assert "x-ignored-fields" not in again.headers


async def test_a_type_that_is_missing_or_unknown_is_named(alice: ApiUser) -> None:
    for body, words in (
        (check_body("url"), '"checkType" is missing; use API, URL'),
        ({**check_body("url"), "checkType": "WEB"}, '"checkType" is WEB; use API, URL'),
        ({**check_body("url"), "checkType": {"value": "hush"}}, '"checkType" is an object; use'),
        ({**check_body("url"), "checkType": ["hush"]}, '"checkType" is an array; use API, URL'),
        ({**check_body("url"), "checkType": "\udc00hush"}, '"checkType" is a text; use API, URL'),
        ({**check_body("url"), "checkType": None}, '"checkType" is null; use API, URL'),
    ):
        answer = await alice.post("/v1/checks", body)
        assert answer.status == 400
        assert answer.body["message"].startswith(words)
        assert answer.body["validation"]["keys"] == ["checkType"]


async def test_a_wrong_field_is_named_without_its_type(alice: ApiUser) -> None:
    body = {**check_body("api", request={"method": "GET", "url": 7}), "checkType": "API"}
    answer = await alice.post("/v1/checks", body)
    assert answer.body["validation"]["keys"] == ["request.url"]


async def test_a_type_cannot_change(alice: ApiUser) -> None:
    made = (await alice.post("/v1/checks", {**check_body("url"), "checkType": "URL"})).body
    answer = await alice.put(f"/v1/checks/{made['id']}", {**check_body("tcp"), "checkType": "TCP"})
    assert answer.status == 400
    assert "The check is of type URL" in answer.body["message"]


def test_each_type_that_can_be_set_up_is_told_and_that_is_each_type() -> None:
    listed: Any = model.CheckKind
    told = NAMED_TYPES.replace(" or", ",").split(", ")
    assert told == list(get_args(listed)) == [one.kind.value for one in DEFINITIONS]
    assert set(told) == {one.value for one in CheckType}


def test_a_type_takes_a_frequency_below_a_minute_where_its_spec_says_so() -> None:
    for one in DEFINITIONS:
        takes = not issubclass(one.write, MinuteCheckWrite)
        assert takes == SPEC_TYPES[one.kind].may_run_below_a_minute, one.kind
