import os
from typing import Any

from sqlalchemy import select, update

from service.accounts.model import Role
from service.db.tables.runs import run_trigger
from service.triggers import triggers
from service.triggers.model import Runs, Target
from service.vault.encryption import Vault
from tests.builders.check_bodies import check_body
from tests.servers.public_api import ApiUser, PublicApi


async def a_path(user: ApiUser) -> str:
    check: dict[str, Any] = (await user.post("/v1/checks/url", check_body("url"))).body
    return f"/v1/triggers/checks/{check['id']}"


async def test_a_trigger_has_the_known_shape(alice: ApiUser) -> None:
    path = await a_path(alice)
    made = await alice.post(path)
    assert made.status == 201
    token, created = made.body.pop("token"), made.body.pop("created_at")
    assert token.startswith("tr_")
    assert len(token) > 40
    assert created
    assert made.body == {
        "id": made.body["id"],
        "checkId": path.rpartition("/")[2],
        "url": f"{alice.url}/checks/{made.body['checkId']}/trigger/{token}",
        "called_at": None,
        "updated_at": None,
    }
    assert isinstance(made.body["id"], int)


async def test_whoever_may_write_reads_the_whole_token_and_others_its_last_letters(
    api: PublicApi, alice: ApiUser
) -> None:
    path = await a_path(alice)
    made = (await alice.post(path)).body
    assert made["url"].endswith(f"/checks/{made['checkId']}/trigger/{made['token']}")
    read = await alice.get(path)
    assert (read.status, read.body) == (200, made)
    reader = await api.colleague("Rae", role=Role.READ_ONLY)
    masked = f"tr_****{made['token'][-4:]}"
    seen = (await reader.get(path)).body
    assert (seen["token"], seen["url"].rpartition("/")[2]) == (masked, masked)


async def test_a_token_whose_hash_alone_was_kept_is_masked_until_it_is_made_anew(
    api: PublicApi, alice: ApiUser
) -> None:
    path = await a_path(alice)
    token = (await alice.post(path)).body["token"]
    await api.database.write(lambda c: c.execute(update(run_trigger).values(token=None)))
    assert (await alice.get(path)).body["token"] == f"tr_****{token[-4:]}"
    fresh = (await alice.post(path)).body["token"]
    assert (await alice.get(path)).body["token"] == fresh


async def test_a_token_is_encrypted_again_with_a_new_key(api: PublicApi, alice: ApiUser) -> None:
    path = await a_path(alice)
    token = (await alice.post(path)).body["token"]
    target = Target(Runs.CHECK, path.rpartition("/")[2])
    place = ("run_trigger", alice.secrets.account_id, "check", target.owner_id)
    old, new = os.urandom(32), os.urandom(32)
    sealed = Vault([old]).encrypt(token, place)
    await api.database.write(lambda c: c.execute(update(run_trigger).values(token=sealed)))
    refused = await alice.get(path)
    assert (refused.status, "Create the trigger again" in refused.body["message"]) == (500, True)
    both = Vault([new, old])
    assert await api.database.write(lambda c: triggers.ENCRYPTED.rotate(c, both)) == 1
    row = await api.database.read(lambda c: triggers.find(c, target))
    assert triggers.reveal_token(row, target, Vault([new])) == token


async def test_a_token_is_stored_as_a_hash_and_sealed(api: PublicApi, alice: ApiUser) -> None:
    path = await a_path(alice)
    token = (await alice.post(path)).body["token"]
    (row,) = await api.database.read(lambda c: c.execute(select(run_trigger)).all())
    assert row.hash == api.backend.pepper.as_key(token).digest
    assert token.encode() not in row.token
    assert token not in str(tuple(row))


async def test_a_check_has_one_trigger_and_making_it_anew_ends_the_one_before(
    alice: ApiUser,
) -> None:
    path = await a_path(alice)
    first, second = [(await alice.post(path)).body for _ in range(2)]
    assert first["id"] != second["id"]
    link = f"/checks/{first['checkId']}/trigger/{first['token']}"
    assert (await alice.get(link)).status == 404
    assert (await alice.get(path)).body["id"] == second["id"]


async def test_a_repeated_post_with_one_key_gives_the_same_token(alice: ApiUser) -> None:
    path = await a_path(alice)
    once = {"Idempotency-Key": "k1"}
    first, second = [(await alice.post(path, headers=once)).body for _ in range(2)]
    assert first == second


async def test_a_trigger_that_is_not_there_is_404(alice: ApiUser) -> None:
    path = await a_path(alice)
    for answer in (await alice.get(path), await alice.delete(path)):
        assert answer.status == 404
        assert "has no trigger" in answer.body["message"]
    assert (await alice.post("/v1/triggers/checks/nope")).status == 404


async def test_a_deleted_trigger_opens_nothing(alice: ApiUser) -> None:
    path = await a_path(alice)
    made = (await alice.post(path)).body
    assert (await alice.delete(path)).status == 204
    assert (await alice.get(path)).status == 404
    link = f"/checks/{made['checkId']}/trigger/{made['token']}"
    assert (await alice.get(link)).status == 404


async def test_the_trigger_of_a_deleted_check_is_gone(api: PublicApi, alice: ApiUser) -> None:
    path = await a_path(alice)
    await alice.post(path)
    await alice.delete(f"/v1/checks/{path.rpartition('/')[2]}")
    assert await api.database.read(lambda c: c.execute(select(run_trigger)).all()) == []


async def test_a_key_that_only_reads_makes_and_ends_no_trigger(
    api: PublicApi, alice: ApiUser
) -> None:
    path = await a_path(alice)
    reader = await api.colleague("Rae", role=Role.READ_ONLY)
    assert (await reader.post(path)).status == 403
    await alice.post(path)
    assert (await reader.delete(path)).status == 403
    assert (await reader.get(path)).status == 200
