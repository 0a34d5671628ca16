"""The secrets of a group: noted, sealed, and mended where they do not open any more."""

from typing import Any

import pytest
from sqlalchemy import select, update

from service.audit import audit
from service.checks.secrets import decrypt_spec
from service.db.tables.checks import check_, check_group
from service.vault.encryption import DecryptionError
from tests.builders.check_bodies import check_body
from tests.builders.made_groups import PATHS, SECRET, TOKEN, a_check, a_group, changed
from tests.servers.public_api import ApiUser, PublicApi


async def test_the_audit_log_names_what_changed_and_no_secret(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, environmentVariables=[TOKEN])
    await changed(alice, group, muted=True, environmentVariables=[{**TOKEN, "value": "other"}])
    log = await api.database.read(lambda c: audit.list_newest(c, limit=10))
    newest = log[0]
    assert (newest.operation, newest.resource_id) == ("replaceCheckGroup", str(group["id"]))
    assert newest.fields == ("environmentVariables", "muted")
    assert SECRET not in repr(log)


PASSWORD = {"username": "shop", "password": SECRET}


async def test_another_password_of_a_group_is_noted_and_reaches_its_checks_sealed(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, apiCheckDefaults={"basicAuth": PASSWORD})
    await a_check(alice, group, "api")
    path = f"{PATHS[0]}/{group['id']}"
    specs = [(await api.database.read(lambda c: c.execute(select(check_.c.spec)).scalar_one()))]
    for password in (SECRET, "another"):
        given = {**group["apiCheckDefaults"], "basicAuth": {**PASSWORD, "password": password}}
        assert (await alice.put(path, {**group, "apiCheckDefaults": given})).status == 200
        query = select(check_.c.spec)
        specs.append(await api.database.read(lambda c, q=query: c.execute(q).scalar_one()))
    log = [one.fields for one in await api.database.read(lambda c: audit.list_newest(c, limit=2))]
    assert log == [("apiCheckDefaults",), ()]
    assert specs[0] == specs[1] != specs[2], "the same password leaves the checks as they are"
    assert not any(b"another" in spec or SECRET.encode() in spec for spec in specs)


async def test_a_group_whose_password_cannot_be_read_any_more_can_be_set_up_anew(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, apiCheckDefaults={"basicAuth": PASSWORD})
    path = f"{PATHS[0]}/{group['id']}"
    await api.database.write(
        lambda c: c.execute(update(check_group).values(secrets=b"\1 not sealed"))
    )
    sentence = f"The stored secrets of the check group {group['id']} cannot be read: "
    refused = [
        await alice.get(path),
        await alice.post("/v1/checks/api", check_body("api", groupId=group["id"])),
    ]
    assert [one.status for one in refused] == [500, 500]
    assert all(one.body["message"].startswith(sentence) for one in refused)
    assert (await alice.put(path, group)).status == 200
    [entry] = await api.database.read(lambda c: audit.list_newest(c, limit=1))
    assert entry.fields == ("apiCheckDefaults",)
    assert (await alice.get(path)).body["apiCheckDefaults"] == group["apiCheckDefaults"]


async def a_damaged_check(api: PublicApi, alice: ApiUser, group: dict[str, Any]) -> dict[str, Any]:
    """A check of the group with a password that does not open, though what its runs need does."""
    request = {**check_body("api")["request"], "basicAuth": PASSWORD}
    check = await a_check(alice, group, "api", request=request)
    await api.database.write(lambda c: c.execute(update(check_).values(secrets=b"\1 not sealed")))
    return check


async def stored_spec(api: PublicApi, check: dict[str, Any]) -> bytes:
    """What runs of the check need.

    Raises:
        DecryptionError: it cannot be decrypted, and the runs end as our fault.
    """
    row = await api.database.read(lambda c: c.execute(select(check_)).one())
    named = {"account_id": row.account_id, "check_id": check["id"]}
    return decrypt_spec(row.spec, api.backend.vault, **named)


async def test_a_check_that_cannot_be_read_keeps_its_group_from_no_change(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice)
    check = await a_damaged_check(api, alice, group)
    answer = await alice.put(
        f"{PATHS[0]}/{group['id']}", {**group, "muted": True, "activated": False}
    )
    assert (answer.status, answer.body["muted"]) == (200, True)
    row = await api.database.read(lambda c: c.execute(select(check_)).one())
    assert (row.activated, row.muted, row.secrets) == (False, True, b"\1 not sealed")
    with pytest.raises(DecryptionError):
        await stored_spec(api, check)
    assert (await alice.get(f"/v1/checks/{check['id']}")).status == 500


@pytest.mark.parametrize("first", ["check", "group"])
async def test_a_group_and_a_check_of_it_that_cannot_be_read_are_mended_in_either_order(
    api: PublicApi, alice: ApiUser, first: str
) -> None:
    given = {"headers": [{"key": "x-group", "value": "new", "locked": True}]}
    group = await a_group(alice, apiCheckDefaults=given)
    check = await a_damaged_check(api, alice, group)
    await api.database.write(
        lambda c: c.execute(update(check_group).values(secrets=b"\1 not sealed"))
    )
    puts = [
        (f"/v1/checks/api/{check['id']}", check),
        (f"{PATHS[0]}/{group['id']}", {**group, "apiCheckDefaults": given}),
    ]
    for path, body in puts if first == "check" else reversed(puts):
        answer = await alice.put(path, body)
        assert answer.status == 200, answer.body
        is_last = path == (puts[1] if first == "check" else puts[0])[0]
        if not is_last:
            with pytest.raises(DecryptionError):
                await stored_spec(api, check)
    spec = await stored_spec(api, check)
    assert SECRET.encode() in spec
    assert b'"x-group","value":"new"' in spec
    runs = (await alice.get(f"/v1/checks/{check['id']}?applyGroupSettings=true")).body
    assert runs["request"]["basicAuth"] == PASSWORD
    assert runs["request"]["headers"] == given["headers"]


async def test_a_check_that_runs_is_not_changed_where_its_group_cannot_be_read(
    api: PublicApi, alice: ApiUser
) -> None:
    """Its runs would end as our fault from then on, without the group's part of what they need."""
    group = await a_group(alice, apiCheckDefaults={"basicAuth": PASSWORD})
    check = await a_check(alice, group, "api")
    await api.database.write(
        lambda c: c.execute(update(check_group).values(secrets=b"\1 not sealed"))
    )
    path = f"/v1/checks/api/{check['id']}"
    refused = await alice.put(path, {**check, "muted": True})
    assert refused.status == 500
    assert f"The stored secrets of the check group {group['id']} cannot" in refused.body["message"]
    assert SECRET.encode() in await stored_spec(api, check)
    assert (await alice.put(path, {**check, "groupId": None})).status == 200
