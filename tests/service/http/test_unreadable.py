from typing import Any, Final

import pytest
from sqlalchemy import text, update

from service.accounts.model import Role
from service.db.tables.checks import check_, check_group
from service.db.tables.job_inputs import variable
from service.db.tables.locations import private_location
from service.http.errors import UnreadableError
from service.http.responses import HEADER, Items
from service.vault.encryption import Vault
from service.vault.texts import HIDDEN
from tests.builders.check_bodies import with_request
from tests.servers.public_api import ApiUser, PublicApi

SECRET: Final = "s3cr3t-of-nobody"
LOST: Final = Vault([bytes(32)]).encrypt("lost", ("nowhere",))
CREDENTIALS: Final = {"username": "u", "password": SECRET}


async def made(alice: ApiUser, path: str, body: Any) -> Any:
    answer = await alice.post(path, body)
    assert answer.status == 201, answer.body
    return answer.body


async def damage(api: PublicApi, table: Any, column: str, **where: Any) -> None:
    """Of these rows, a sealed column opens no more."""
    change = update(table).filter_by(**where).values({column: LOST})
    await api.database.write(lambda c: c.execute(change))


@pytest.fixture
async def damaged(api: PublicApi, alice: ApiUser) -> dict[str, Any]:
    """Of each kind of list an item that opens, and before it one that does not, by its list."""
    groups = [
        await made(alice, "/v1/check-groups", {"name": n, "apiCheckDefaults": {"basicAuth": one}})
        for n, one in (("lost", CREDENTIALS), ("good", CREDENTIALS))
    ]
    body = with_request("api", basicAuth=CREDENTIALS, url=f"http://u:{SECRET}@shop.test/")
    members = [
        await made(alice, "/v1/checks/api", {**body, "name": name, "groupId": groups[1]["id"]})
        for name in ("lost", "good")
    ]
    for key in ("A_LOST", "GOOD"):
        await made(alice, "/v1/variables", {"key": key, "value": SECRET})
    place = {"name": "Cellar", "slugName": "cellar", "proxyUrl": f"http://u:{SECRET}@p.test:1"}
    cellar = await made(alice, "/v1/private-locations", place)
    await damage(api, check_, "secrets", id=members[0]["id"])
    await damage(api, check_group, "secrets", id=groups[0]["id"])
    await damage(api, variable, "value", key="A_LOST")
    await damage(api, private_location, "sealed_proxy_url", id=cellar["id"])
    return {
        "/v1/checks": members[0]["id"],
        "/v1/checks?applyGroupSettings=true": members[0]["id"],
        f"/v1/check-groups/{groups[1]['id']}/checks": members[0]["id"],
        "/v1/check-groups": str(groups[0]["id"]),
        "/v1/variables": "A_LOST",
        "/v1/private-locations": cellar["id"],
    }


async def test_a_list_shows_all_others_beside_an_item_that_cannot_be_read_and_names_it(
    alice: ApiUser, damaged: dict[str, Any]
) -> None:
    for path, name in damaged.items():
        answer = await alice.get(path)
        assert (answer.status, len(answer.body)) == (200, 2), path
        assert answer.headers[HEADER] == name
        [lost] = [one for one in answer.body if str(one.get("id") or one["key"]) == name]
        assert HIDDEN in str(lost)
        assert SECRET not in str(lost)
        assert SECRET in str(answer.body) or path == "/v1/private-locations"


async def test_what_a_list_shows_of_a_damaged_item_makes_no_password(
    alice: ApiUser, damaged: dict[str, Any]
) -> None:
    lost = (await alice.get("/v1/checks")).body[0]
    assert lost["request"]["url"] == f"http://{HIDDEN}@shop.test/"
    answer = await alice.put(f"/v1/checks/api/{lost['id']}", lost)
    assert answer.status == 400
    assert answer.body["message"].endswith(
        "that can no longer be read: it was encrypted with a key that this vault does not have."
        " Send the value."
    )
    mended = {**lost, "request": {**lost["request"], "url": "http://shop.test/"}}
    mended["request"]["basicAuth"] = CREDENTIALS
    assert (await alice.put(f"/v1/checks/api/{lost['id']}", mended)).status == 200
    assert HEADER not in (await alice.get("/v1/checks")).headers
    assert damaged["/v1/checks"] == lost["id"]


async def test_a_damaged_variable_of_a_check_hides_no_other_one(
    api: PublicApi, alice: ApiUser
) -> None:
    values = [{"key": "LOST", "value": SECRET}, {"key": "GOOD", "value": "good"}]
    body = with_request("api") | {"environmentVariables": values}
    check = await made(alice, "/v1/checks/api", body)
    await damage(api, variable, "value", key="LOST")
    reader = await api.colleague("Rita", role=Role.READ_ONLY)
    for user in (alice, reader):
        answer = await user.get("/v1/checks")
        assert answer.headers[HEADER] == check["id"]
        shown = [one["value"] for one in answer.body[0]["environmentVariables"]]
        assert shown == [HIDDEN, "good"]


async def test_lists_of_readers_open_no_passwords(api: PublicApi, damaged: dict[str, Any]) -> None:
    reader = await api.colleague("Rita", role=Role.READ_ONLY)
    answers = {path: await reader.get(path) for path in damaged if path != "/v1/variables"}
    assert {one.status for one in answers.values()} == {200}
    assert not any(HEADER in one.headers for one in answers.values())


def refuse(name: str) -> str:
    raise UnreadableError(f"{name} cannot be read.")


def test_the_header_stays_short() -> None:
    names = [f"id-{number}" for number in range(23)]
    items = Items(show=refuse, hide=str.upper, name=str)
    shown, told = items.shown(names)
    assert shown == [name.upper() for name in names]
    assert told == {HEADER: ", ".join(names[:20]) + ", and 3 more"}


BROKEN: Final = '{"name": "lost", '


async def test_a_text_that_is_no_json_is_named_and_the_rest_is_shown(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await made(alice, "/v1/check-groups", {"name": "Shop"})
    of_group = {"groupId": group["id"]}
    lost, _ = [
        await made(alice, "/v1/checks/api", {**with_request("api"), "name": name, **of_group})
        for name in ("lost", "good")
    ]
    change = text("UPDATE check_ SET doc = :broken, applied = :broken WHERE id = :id")
    values = {"broken": BROKEN, "id": lost["id"]}
    await api.database.write(lambda c: c.execute(change, values).rowcount)
    lists = (
        "/v1/checks",
        "/v1/checks?applyGroupSettings=true",
        f"/v1/check-groups/{group['id']}/checks",
    )
    for path in lists:
        answer = await alice.get(path)
        assert {one["name"] for one in answer.body} == {"lost", "good"}, path
        assert answer.headers[HEADER] == lost["id"], path
    alone = await alice.get(f"/v1/checks/{lost['id']}")
    assert alone.status == 500
    assert "is not JSON" in alone.body["message"]
    again = await alice.put(f"/v1/checks/api/{lost['id']}", {**with_request("api"), "name": "new"})
    assert again.status == 200
    assert (await alice.get(f"/v1/checks/{lost['id']}")).body["name"] == "new"
