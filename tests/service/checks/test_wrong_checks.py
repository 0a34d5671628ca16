"""Checks that are refused, each with a sentence that names the field."""

from typing import Any

import pytest

from tests.builders.check_bodies import LEAST, check_body, with_request
from tests.builders.made_checks import made
from tests.servers.public_api import ApiUser


@pytest.mark.parametrize("kind", [kind for kind in LEAST if kind != "heartbeat"])
async def test_another_check_needs_a_location(alice: ApiUser, kind: str) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", LEAST[kind])
    assert answer.status == 400
    assert answer.body["message"] == "You have to set at least one `location` or `privateLocation`"
    assert answer.body["validation"]["keys"] == ["locations", "privateLocations"]


@pytest.mark.parametrize("kind", [kind for kind in LEAST if kind != "heartbeat"])
async def test_a_check_needs_a_location_only_while_it_is_activated(
    alice: ApiUser, kind: str
) -> None:
    paused = await alice.post(f"/v1/checks/{kind}", {**LEAST[kind], "activated": False})
    assert paused.status == 201, paused.body
    path = f"/v1/checks/{kind}/{paused.body['id']}"
    refused = await alice.put(path, {"activated": True})
    assert refused.status == 400
    assert refused.body["message"] == "You have to set at least one `location` or `privateLocation`"
    started = await alice.put(path, {"activated": True, "privateLocations": ["default"]})
    assert (started.status, started.body["activated"]) == (200, True)
    stopped = await alice.put(path, {"activated": False, "privateLocations": []})
    assert (stopped.status, stopped.body["privateLocations"]) == (200, [])


async def test_a_private_location_among_the_regions_is_told_where_it_belongs(
    alice: ApiUser,
) -> None:
    refused = await alice.post("/v1/checks/url", {**LEAST["url"], "locations": ["default"]})
    assert refused.status == 400
    assert refused.body["message"].startswith(
        '"locations[0]" is default, which is not a region; a private location belongs in'
        ' "privateLocations", and the regions are us-east-1, '
    )
    assert refused.body["validation"] == {"source": "payload", "keys": ["locations[0]"]}


async def test_a_number_in_quotes_is_told_to_lose_them(alice: ApiUser) -> None:
    refused = await alice.post("/v1/checks/url", check_body("url", frequency="5"))
    assert refused.body["message"] == (
        '"frequency" is "5"; use a number, without quotes: one of 1, 2, 5, 10, 15, 30, 60,'
        " 120, 180, 360, 720, 1440."
    )


async def test_an_unknown_private_location_is_named_by_its_place(alice: ApiUser) -> None:
    body = check_body("url", privateLocations=["default", "attic"])
    answer = await alice.post("/v1/checks/url", body)
    assert answer.status == 400
    assert answer.body["validation"]["keys"] == ["privateLocations[1]"]
    assert "there are default" in answer.body["message"]


async def test_all_wrong_fields_are_told_at_once(alice: ApiUser) -> None:
    body = check_body("icmp", frequency=3, request={"hostname": "", "pingCount": 0})
    answer = await alice.post("/v1/checks/icmp", body)
    assert answer.body["validation"]["keys"] == [
        "frequency",
        "request.hostname",
        "request.pingCount",
    ]
    assert answer.body["message"] == (
        '"frequency" is 3; use one of 1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440.'
        ' "request.hostname" must not be empty. "request.pingCount" is 0; use at least 1.'
    )


@pytest.mark.parametrize("kind", LEAST)
async def test_frequency_0_is_offered_to_the_types_that_may_have_it(
    alice: ApiUser, kind: str
) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", check_body(kind, frequency=3))
    zero = "0, " if kind in {"api", "tcp"} else ""
    assert answer.body["message"] == (
        f'"frequency" is 3; use one of {zero}1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440.'
    )


@pytest.mark.parametrize("kind", [kind for kind in LEAST if kind not in {"api", "tcp"}])
async def test_frequency_0_of_another_type_is_refused_with_the_reason(
    alice: ApiUser, kind: str
) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", check_body(kind, frequency=0))
    assert answer.body["validation"]["keys"] == ["frequency"]
    assert answer.body["message"] == (
        '"frequency" is 0, which only API and TCP checks may have; use 1 or more.'
    )


async def test_a_wrong_secret_is_not_repeated(alice: ApiUser) -> None:
    auth = {"username": "u", "password": ["hunter2"]}
    answer = await alice.post("/v1/checks/api", with_request("api", basicAuth=auth))
    assert answer.status == 400
    assert "hunter2" not in str(answer.body)


@pytest.mark.parametrize(
    ("field", "given", "mend"),
    [
        (
            "basicAuth",
            {"username": "u", "password": "hunter2"},
            "a URL check sends no credentials; put them into the url, or use an API check",
        ),
        *(
            (field, given, "a URL check only requests its url; use an API check")
            for field, given in (
                ("headers", [{"key": "a", "value": "hunter2"}]),
                ("queryParameters", [{"key": "a", "value": "hunter2"}]),
                ("body", "hunter2"),
            )
        ),
    ],
)
async def test_what_a_url_check_would_not_send_is_refused(
    alice: ApiUser, field: str, given: Any, mend: str
) -> None:
    """It would look at something else than was meant, and find it up or down."""
    refused = await alice.post("/v1/checks/url", with_request("url", **{field: given}))
    assert refused.status == 400
    assert refused.body["message"] == f'"request.{field}" would not be sent: {mend}.'
    assert refused.body["validation"]["keys"] == [f"request.{field}"]
    nothing = {"username": "", "password": ""} if field == "basicAuth" else type(given)()
    for empty in (nothing, None):
        await made(alice, "url", request={"url": "http://shop.test/", field: empty})


async def test_a_wrong_field_of_a_change_is_named_as_in_a_new_check(alice: ApiUser) -> None:
    check = await made(alice, "url")
    for path in (f"/v1/checks/url/{check['id']}", f"/v1/checks/{check['id']}"):
        answer = await alice.put(path, {"request": {"url": 7}})
        assert (answer.status, answer.body["message"]) == (
            400,
            '"request.url" is 7; use a string.',
        )
        assert answer.body["validation"]["keys"] == ["request.url"]
        assert (await alice.put(path, [])).status == 400


async def test_a_put_to_another_type_is_told_where_to_go(alice: ApiUser) -> None:
    check = await made(alice, "url")
    answer = await alice.put(f"/v1/checks/tcp/{check['id']}", check_body("tcp"))
    assert answer.status == 400
    assert f"/v1/checks/url/{check['id']}" in answer.body["message"]
