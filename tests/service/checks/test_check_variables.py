"""`environmentVariables` of checks, as the API takes, keeps and shows them."""

from typing import Any

import pytest
from sqlalchemy import func, select, update

from service.accounts.model import Role
from service.audit import audit
from service.db.tables.checks import check_
from service.db.tables.job_inputs import variable
from service.vault.encryption import Vault
from service.vault.texts import HIDDEN
from tests.builders.check_bodies import check_body, script_body
from tests.servers.public_api import ApiUser, PublicApi

SECRET = "s3cr3t-of-nobody-else"
WITH = ("api", "url", "browser", "multistep")
WITHOUT = ("tcp", "dns", "icmp", "heartbeat")
URL = {"key": "URL", "value": "http://a", "locked": True, "secret": False}
TOKEN = {"key": "TOKEN", "value": SECRET, "locked": False, "secret": True}


def body_of(kind: str, *variables: dict[str, Any], **fields: Any) -> dict[str, Any]:
    make = script_body if kind in ("browser", "multistep") else check_body
    return make(kind, environmentVariables=list(variables), **fields)


async def made(user: ApiUser, kind: str, *variables: dict[str, Any]) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", body_of(kind, *variables))
    assert answer.status == 201, answer.body
    return dict(answer.body)


@pytest.mark.parametrize("kind", WITH)
async def test_a_checks_variables_are_shown_in_order_and_its_secrets_empty(
    alice: ApiUser, kind: str
) -> None:
    check = await made(alice, kind, URL, TOKEN)
    assert check["environmentVariables"] == [URL, {**TOKEN, "value": ""}]
    assert (await alice.get(f"/v1/checks/{check['id']}")).body == check
    assert (await alice.get("/v1/checks")).body == [check]


@pytest.mark.parametrize("none", [[], None])
async def test_a_check_without_variables_shows_an_empty_list(alice: ApiUser, none: Any) -> None:
    answer = await alice.post("/v1/checks/api", check_body("api", environmentVariables=none))
    assert answer.body["environmentVariables"] == []


@pytest.mark.parametrize("kind", WITHOUT)
async def test_types_that_have_no_place_for_them_refuse_them(alice: ApiUser, kind: str) -> None:
    answer = await alice.post(f"/v1/checks/{kind}", body_of(kind, URL))
    assert answer.status == 400
    assert answer.body["message"] == (
        '"environmentVariables" would not be used: checks of this type do not support them;'
        " omit them."
    )
    check = await made(alice, kind)
    assert "environmentVariables" not in check


async def test_what_was_read_can_be_sent_back_and_the_secret_stays(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await made(alice, "api", URL, TOKEN)
    again = await alice.put(f"/v1/checks/api/{check['id']}", {**check, "name": "Other"})
    assert again.status == 200, again.body
    assert again.body["environmentVariables"] == check["environmentVariables"]
    row = await api.database.read(
        lambda c: c.execute(select(variable).where(variable.c.key == "TOKEN")).one()
    )
    place = ("variable", row.account_id, "check", check["id"], "TOKEN", "secret")
    assert api.backend.vault.decrypt(row.value, place) == SECRET


async def test_variables_that_cannot_be_read_any_more_can_be_kept_and_replaced(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await made(alice, "api", URL, TOKEN)
    path, lost = f"/v1/checks/{check['id']}", Vault([bytes(32)]).encrypt("lost", ("variable",))
    await api.database.write(lambda c: c.execute(update(variable).values(value=lost)))
    unreadable = await alice.get(path)
    assert unreadable.status == 500
    assert (
        f"The stored value of the variable URL of check {check['id']}"
        in (unreadable.body["message"])
    )
    again = {**check, "activated": False}
    assert (await alice.put(f"/v1/checks/api/{check['id']}", again)).status == 200
    token = select(variable.c.value).where(variable.c.key == "TOKEN")
    assert await api.database.read(lambda c: c.execute(token).scalar_one()) == lost
    replaced = await alice.put(f"/v1/checks/api/{check['id']}", body_of("api", URL, TOKEN))
    assert replaced.body["environmentVariables"] == check["environmentVariables"]
    assert (await alice.get(path)).body == replaced.body


async def test_what_is_left_out_goes(api: PublicApi, alice: ApiUser) -> None:
    check = await made(alice, "api", URL, TOKEN)
    body = body_of("api", {"key": "NEW", "value": "1"})
    changed = await alice.put(f"/v1/checks/api/{check['id']}", body)
    assert [one["key"] for one in changed.body["environmentVariables"]] == ["NEW"]
    await alice.delete(f"/v1/checks/{check['id']}")
    count = select(func.count()).select_from(variable)
    assert await api.database.read(lambda c: c.execute(count).scalar_one()) == 0


async def test_a_new_secret_needs_a_value(alice: ApiUser) -> None:
    body = body_of("api", URL, {**TOKEN, "value": ""})
    answer = await alice.post("/v1/checks/api", body)
    assert answer.status == 400
    assert answer.body["message"] == (
        '"environmentVariables[1].value" is empty; a secret needs a value.'
    )
    assert (await alice.get("/v1/checks")).body == []


async def test_a_check_has_fifty_variables_at_most(alice: ApiUser) -> None:
    fifty = [{"key": f"K{number}", "value": "v"} for number in range(50)]
    assert len((await made(alice, "api", *fifty))["environmentVariables"]) == 50
    answer = await alice.post("/v1/checks/api", body_of("api", *fifty, URL))
    assert answer.status == 400
    assert answer.body["message"] == '"environmentVariables" has 51 items; use at most 50.'


async def test_their_sizes_count_together(alice: ApiUser) -> None:
    large = [{"key": f"K{number}", "value": "v" * 128_000} for number in range(4)]
    room = 512 * 1024 - 4 * 128_002
    await made(alice, "url", *large, {"key": "L", "value": "v" * (room - 1)})
    answer = await alice.post(
        "/v1/checks/url", body_of("url", *large, {"key": "L", "value": "v" * room})
    )
    assert answer.status == 400
    assert "These variables would have 524289 bytes together" in answer.body["message"]


async def test_one_key_twice_is_told(alice: ApiUser) -> None:
    answer = await alice.post("/v1/checks/api", body_of("api", URL, TOKEN, URL))
    assert answer.status == 400
    assert answer.body["message"] == ('"environmentVariables" has URL twice; use each key once.')


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"value": "x"}, '"environmentVariables[0].key" is missing.'),
        ({"key": "a b", "value": "x"}, '"environmentVariables[0].key" must consist of'),
        ({"key": "A"}, '"environmentVariables[0].value" is missing.'),
        ({"key": "A", "value": 482913}, '"environmentVariables[0].value" must be a string.'),
    ],
)
async def test_a_wrong_one_is_named(alice: ApiUser, wrong: dict[str, Any], said: str) -> None:
    answer = await alice.post("/v1/checks/api", body_of("api", wrong))
    assert answer.status == 400
    assert answer.body["message"].startswith(said)


async def test_the_check_itself_holds_nothing_of_them(api: PublicApi, alice: ApiUser) -> None:
    await made(alice, "browser", URL, TOKEN)
    row = await api.database.read(lambda c: c.execute(select(check_)).one())
    assert SECRET not in str(row)
    assert "environmentVariables" not in row.doc


async def test_what_is_locked_is_for_those_who_may_write(api: PublicApi, alice: ApiUser) -> None:
    pair = {"key": "authorization", "value": "l0cked", "locked": True}
    open_pair = {"key": "accept", "value": "text/html", "locked": False}
    body = body_of("api", URL)
    body["request"] |= {"headers": [pair, open_pair], "queryParameters": [pair]}
    check = (await alice.post("/v1/checks/api", body)).body
    assert check["request"]["headers"] == [pair, open_pair]
    bob = await api.colleague("Bob", role=Role.READ_ONLY)
    hidden = {**pair, "value": HIDDEN}
    read = (await bob.get(f"/v1/checks/{check['id']}")).body
    assert (await bob.get("/v1/checks")).body == [read]
    assert read["request"]["headers"] == [hidden, open_pair]
    assert read["request"]["queryParameters"] == [hidden]
    assert read["environmentVariables"] == [{**URL, "value": HIDDEN}]
    assert (await alice.get(f"/v1/checks/{check['id']}")).body == check


async def test_passwords_and_ping_addresses_are_for_those_who_may_write(
    api: PublicApi, alice: ApiUser
) -> None:
    body = body_of("api")
    body["request"] |= {
        "url": "http://shop:s3same@shop.test/a@b",
        "basicAuth": {"username": "shop", "password": "s3same"},
    }
    check = (await alice.post("/v1/checks/api", body)).body
    beat = (await alice.post("/v1/checks/heartbeat", check_body("heartbeat"))).body
    token = beat["heartbeat"]["pingToken"]
    bob = await api.colleague("Bob", role=Role.READ_ONLY)
    seen = [
        (await bob.get(f"/v1/checks/{check['id']}")).body,
        (await bob.get(f"/v1/checks/{check['id']}?applyGroupSettings=true")).body,
        (await bob.get(f"/v1/checks/{beat['id']}")).body,
        (await bob.get("/v1/checks")).body,
    ]
    assert "s3same" not in str(seen)
    assert token not in str(seen)
    assert seen[0]["request"]["url"] == f"http://{HIDDEN}@shop.test/a@b"
    assert seen[0]["request"]["basicAuth"] == {"username": "shop", "password": HIDDEN}
    assert (seen[2]["pingUrl"], seen[2]["heartbeat"]["pingUrl"]) == ("", "")
    assert (await alice.get(f"/v1/checks/{check['id']}")).body == check
    assert (await alice.get(f"/v1/checks/{beat['id']}")).body["pingUrl"].endswith(token)


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        ({"basicAuth": {"username": "u", "password": 987654}}, "request.basicAuth.password"),
        ({"headers": [{"key": "a", "value": 987654}]}, "request.headers[0].value"),
    ],
)
async def test_a_refusal_repeats_no_number_that_may_be_a_password(
    alice: ApiUser, request_: dict[str, Any], key: str
) -> None:
    body = body_of("api")
    body["request"] |= request_
    answer = await alice.post("/v1/checks/api", body)
    assert (answer.status, answer.body["validation"]["keys"]) == (400, [key])
    assert answer.body["message"] == f'"{key}" must be a string.'


async def test_another_value_of_a_secret_is_noted_as_a_change(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await made(alice, "api", TOKEN)
    path = f"/v1/checks/api/{check['id']}"
    await alice.put(path, check)
    await alice.put(path, {**check, "environmentVariables": [{**TOKEN, "value": "another"}]})
    same, other = reversed(await api.database.read(lambda c: audit.list_newest(c, limit=2)))
    assert (same.fields, other.fields) == ((), ("environmentVariables",))


PASSWORD = {"username": "shop", "password": SECRET}


async def a_check_with_a_password(user: ApiUser, **request: Any) -> dict[str, Any]:
    body = check_body("api")
    body["request"] |= {"basicAuth": PASSWORD, **request}
    answer = await user.post("/v1/checks/api", body)
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def test_another_password_is_noted_as_a_change_and_the_same_one_is_not(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check_with_a_password(alice)
    path = f"/v1/checks/api/{check['id']}"
    await alice.put(path, check)
    other = {**check["request"], "basicAuth": {**PASSWORD, "password": "another"}}
    await alice.put(path, {**check, "request": other})
    first, second = reversed(await api.database.read(lambda c: audit.list_newest(c, limit=2)))
    assert (first.fields, second.fields) == ((), ("request",))


async def test_a_check_whose_password_cannot_be_read_any_more_can_be_set_up_anew(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check_with_a_password(alice)
    path, lost = f"/v1/checks/{check['id']}", Vault([bytes(32)]).encrypt("lost", ("check",))
    await api.database.write(lambda c: c.execute(update(check_).values(secrets=lost)))
    unreadable = await alice.get(path)
    assert unreadable.status == 500
    assert unreadable.body["message"].startswith(
        f"The stored secrets of the check {check['id']} cannot be read: "
    )
    bob = await api.colleague("Bob", role=Role.READ_ONLY)
    assert (await bob.get(path)).body["request"]["basicAuth"] == {**PASSWORD, "password": HIDDEN}
    assert (await alice.put(f"/v1/checks/api/{check['id']}", check)).status == 200
    [entry] = await api.database.read(lambda c: audit.list_newest(c, limit=1))
    assert entry.fields == ("request",)
    assert (await alice.get(path)).body["request"] == check["request"]


async def test_nobody_finds_a_check_by_the_password_in_its_url(alice: ApiUser) -> None:
    check = await a_check_with_a_password(alice, url=f"https://shop:{SECRET}@shop.test/orders")
    found = [
        (await alice.get(f"/v1/checks?apiCheckUrlFilterPattern={part}")).body
        for part in (SECRET, "shop.test/orders")
    ]
    assert found == [[], [check]]


async def test_what_is_not_read_with_its_group_is_shown_as_it_was_written(
    api: PublicApi, alice: ApiUser
) -> None:
    """The same fields of a check and its group are two secrets."""
    given = {"headers": [{"key": "x-group", "value": "group's", "locked": True}]}
    group = (await alice.post("/v1/check-groups", {"name": "G", "apiCheckDefaults": given})).body
    own = {"key": "x-own", "value": SECRET, "locked": True}
    body = check_body("api", groupId=group["id"])
    body["request"] |= {"headers": [own]}
    check = (await alice.post("/v1/checks/api", body)).body
    path = f"/v1/checks/{check['id']}"
    assert (await alice.get(path)).body["request"]["headers"] == [own]
    runs = (await alice.get(f"{path}?applyGroupSettings=true")).body
    assert runs["request"]["headers"] == [own, *given["headers"]]
    assert (await alice.get(f"/v1/check-groups/{group['id']}/checks")).body == [runs]
