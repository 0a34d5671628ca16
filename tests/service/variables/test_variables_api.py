import logging
from typing import Any

import pytest
from sqlalchemy import select, update

from service.accounts.model import Role
from service.audit import audit
from service.db.tables.job_inputs import variable
from service.variables.rules import MAX_TOGETHER_BYTES, MAX_VALUE_BYTES
from service.vault.encryption import Vault
from service.vault.texts import HIDDEN
from tests.servers.public_api import ApiUser, PublicApi

PATH = "/v1/variables"
SECRET = "s3cr3t-of-nobody-else"


async def made(user: ApiUser, key: str = "API_URL", value: str = "http://a", **marks: bool) -> Any:
    answer = await user.post(PATH, {"key": key, "value": value, **marks})
    assert answer.status == 201, answer.body
    return answer.body


async def test_a_variable_is_made_read_changed_and_deleted(alice: ApiUser) -> None:
    first = await made(alice)
    assert first == {"key": "API_URL", "value": "http://a", "locked": False, "secret": False}
    path = f"{PATH}/API_URL"
    assert (await alice.get(path)).body == first
    changed = await alice.put(path, {"value": "http://b", "locked": True})
    assert changed.status == 200
    assert changed.body == {**first, "value": "http://b", "locked": True}
    assert (await alice.get(path)).body == changed.body
    assert (await alice.delete(path)).status == 204
    for gone in (await alice.get(path), await alice.delete(path), await alice.put(path, first)):
        assert gone.status == 404
        assert gone.body["message"] == "There is no variable API_URL."


async def test_all_variables_are_listed_by_key_unless_a_page_is_asked_for(alice: ApiUser) -> None:
    assert (await alice.get(PATH)).body == []
    for number in range(12):
        await made(alice, f"K{11 - number:02}")
    assert [one["key"] for one in (await alice.get(PATH)).body] == [f"K{n:02}" for n in range(12)]
    assert len((await alice.get(f"{PATH}?page=1")).body) == 10
    second = await alice.get(f"{PATH}?limit=5&page=3")
    assert [one["key"] for one in second.body] == ["K10", "K11"]
    assert (await alice.get(f"{PATH}?page=0")).status == 200
    for query in ("limit=0", "limit=101", "page=x", "page=-1"):
        assert (await alice.get(f"{PATH}?{query}")).status == 400
    assert (await alice.get(f"{PATH}?limit=100")).status == 200


async def test_a_second_variable_of_one_key_is_a_conflict(alice: ApiUser) -> None:
    await made(alice, "A", value="kept")
    again = await alice.post(PATH, {"key": "A", "value": "other"})
    assert again.status == 409
    assert again.body["message"] == "A variable A already exists; use another key, or PUT."
    assert (await alice.get(f"{PATH}/A")).body["value"] == "kept"
    await made(alice, "a")  # programs tell them apart too


async def test_a_secret_is_never_shown_again(alice: ApiUser) -> None:
    answers = [
        await alice.post(PATH, {"key": "TOKEN", "value": SECRET, "secret": True}),
        await alice.get(f"{PATH}/TOKEN"),
        await alice.get(PATH),
        await alice.put(f"{PATH}/TOKEN", {"value": SECRET + "2", "secret": True}),
        await alice.put(f"{PATH}/TOKEN", {"value": "", "secret": True, "locked": True}),
        await alice.post(PATH, {"key": "TOKEN", "value": SECRET}),
        await alice.post(PATH, {"key": "no key", "value": SECRET, "secret": True}),
        await alice.post(PATH, {"key": "OTHER", "value": [SECRET], "secret": SECRET}),
        await alice.put(f"{PATH}/TOKEN", {"value": "", "secret": False}),
    ]
    for answer in answers:
        assert SECRET not in str(answer.body)
    assert answers[1].body == {"key": "TOKEN", "value": "", "locked": False, "secret": True}
    assert answers[8].body == {"key": "TOKEN", "value": "", "locked": True, "secret": False}


async def stored_value(api: PublicApi, key: str) -> str:
    query = select(variable).where(variable.c.key == key)
    row = await api.database.read(lambda c: c.execute(query).one())
    kind = "secret" if row.secret else "plain"
    place = ("variable", row.account_id, row.level, row.owner_id, row.key, kind)
    return api.backend.vault.decrypt(row.value, place)


async def test_a_secret_that_is_sent_back_empty_keeps_its_value_also_under_a_new_key(
    api: PublicApi, alice: ApiUser
) -> None:
    await made(alice, "TOKEN", SECRET, secret=True)
    read = (await alice.get(f"{PATH}/TOKEN")).body
    assert (await alice.put(f"{PATH}/TOKEN", read)).status == 200
    assert await stored_value(api, "TOKEN") == SECRET
    renamed = await alice.put(f"{PATH}/TOKEN", {**read, "key": "KEY"})
    assert renamed.body["key"] == "KEY"
    assert await stored_value(api, "KEY") == SECRET
    assert (await alice.get(f"{PATH}/TOKEN")).status == 404


async def test_a_variable_cannot_take_the_key_of_another(alice: ApiUser) -> None:
    await made(alice, "A")
    await made(alice, "B")
    answer = await alice.put(f"{PATH}/A", {"key": "B", "value": "x"})
    assert answer.status == 409
    assert (await alice.get(f"{PATH}/A")).status == 200


async def test_a_secret_needs_a_value_and_a_variable_does_not(alice: ApiUser) -> None:
    await made(alice, "EMPTY", "")
    said = '"value" is empty; a secret needs a value.'
    refused = await alice.post(PATH, {"key": "TOKEN", "value": "", "secret": True})
    assert (refused.status, refused.body["message"]) == (400, said)
    refused = await alice.put(f"{PATH}/EMPTY", {"value": "", "secret": True})
    assert (refused.status, refused.body["message"]) == (400, said)


async def test_what_is_marked_as_no_secret_behind_our_back_is_not_shown(
    api: PublicApi, alice: ApiUser
) -> None:
    await made(alice, "TOKEN", SECRET, secret=True)
    await api.database.write(lambda c: c.execute(update(variable).values(secret=False)))
    answer = await alice.get(f"{PATH}/TOKEN")
    assert answer.status == 500
    assert SECRET not in str(answer.body)


async def lose_values(api: PublicApi) -> None:
    """Nobody has the key any more that all variables are sealed with."""
    lost = Vault([bytes(32)]).encrypt("lost", ("variable",))
    await api.database.write(lambda c: c.execute(update(variable).values(value=lost)))


@pytest.mark.parametrize("secret", [True, False])
async def test_a_value_that_cannot_be_read_any_more_can_be_replaced(
    api: PublicApi, alice: ApiUser, *, secret: bool
) -> None:
    await made(alice, "TOKEN", SECRET, secret=secret)
    await lose_values(api)
    again = await alice.put(f"{PATH}/TOKEN", {"value": "another", "secret": secret})
    assert again.status == 200
    assert await stored_value(api, "TOKEN") == "another"
    (entry,) = await api.database.read(lambda c: audit.list_newest(c, limit=1))
    assert entry.fields == ("value",)


async def test_a_secret_that_cannot_be_read_any_more_cannot_be_kept(
    api: PublicApi, alice: ApiUser
) -> None:
    await made(alice, "TOKEN", SECRET, secret=True)
    await lose_values(api)
    read = (await alice.get(f"{PATH}/TOKEN")).body
    refused = await alice.put(f"{PATH}/TOKEN", {**read, "locked": True})
    assert refused.status == 400
    assert refused.body["message"] == (
        '"value" is empty, and its stored value can no longer be read: it was encrypted with'
        " a key that this vault does not have. Send the value."
    )


async def test_a_value_that_cannot_be_shown_is_named(api: PublicApi, alice: ApiUser) -> None:
    await made(alice, "API_URL")
    await lose_values(api)
    answer = await alice.get(f"{PATH}/API_URL")
    assert answer.status == 500
    assert answer.body["message"] == (
        "The stored value of the variable API_URL of the account cannot be read: it was encrypted"
        " with a key that this vault does not have. Replace it, or delete it."
    )
    assert (await alice.delete(f"{PATH}/API_URL")).status == 204


async def test_charlie_sees_and_changes_nothing_of_alices(alice: ApiUser, charlie: ApiUser) -> None:
    await made(alice, "A", "alices")
    path = f"{PATH}/A"
    assert (await charlie.get(PATH)).body == []
    assert (await charlie.get(path)).status == 404
    assert (await charlie.put(path, {"value": "x"})).status == 404
    assert (await charlie.delete(path)).status == 404
    await made(charlie, "A", "charlies")
    assert (await alice.get(path)).body["value"] == "alices"


async def test_bob_of_the_same_account_shares_them(api: PublicApi, alice: ApiUser) -> None:
    bob = await api.colleague("Bob")
    await made(alice, "A", "ours")
    assert (await bob.get(f"{PATH}/A")).body["value"] == "ours"
    assert (await bob.delete(f"{PATH}/A")).status == 204


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"value": "x"}, '"key" is missing.'),
        ({"key": "A"}, '"value" is missing.'),
        ({"key": "", "value": "x"}, '"key" must not be empty.'),
        ({"key": "a b", "value": "x"}, '"key" must consist of letters, digits'),
        ({"key": "a" * 256, "value": "x"}, '"key" has 256 characters; use at most 255.'),
        ({"key": "A", "value": 482913}, '"value" must be a string.'),
        ({"key": "A", "value": None}, '"value" must be a string.'),
        ({"key": "A", "value": "x\0"}, '"value" contains a NUL'),
        (
            {"key": "A", "value": "ä" * 64_001},
            f'"value" has 128002 bytes; use at most {MAX_VALUE_BYTES}.',
        ),
        (
            {"key": "A", "value": "x", "secret": "yes"},
            '"secret" is "yes"; use true or false, without quotes.',
        ),
        ({"key": "A", "secret": "hush", "value": ""}, '"secret" is a text; use true or false.'),
        ({"key": "A", "secret": 482913, "value": ""}, '"secret" is a number; use true or false.'),
    ],
)
async def test_what_cannot_be_a_variable_is_refused_in_a_sentence(
    alice: ApiUser, body: dict[str, Any], said: str
) -> None:
    answer = await alice.post(PATH, body)
    assert answer.status == 400
    assert answer.body["message"].startswith(said)


async def test_the_longest_key_and_value_are_taken(alice: ApiUser) -> None:
    await made(alice, "a" * 255, "x" * MAX_VALUE_BYTES)
    assert (await alice.get(f"{PATH}/{'a' * 255}")).body["value"] == "x" * MAX_VALUE_BYTES


async def test_all_of_an_accounts_variables_fit_into_its_jobs(alice: ApiUser) -> None:
    for key in "ABCD":
        await made(alice, key, "x" * (MAX_VALUE_BYTES - 1))
    left = MAX_TOGETHER_BYTES - 4 * MAX_VALUE_BYTES
    refused = await alice.post(PATH, {"key": "E", "value": "x" * left})
    assert refused.status == 400
    assert refused.body["message"] == (
        f"These variables would have {MAX_TOGETHER_BYTES + 1} bytes together;"
        f" use at most {MAX_TOGETHER_BYTES}."
    )
    await made(alice, "E", "x" * (left - 1))
    grown = await alice.put(f"{PATH}/A", {"value": "x" * MAX_VALUE_BYTES})
    assert grown.status == 400
    same = await alice.put(f"{PATH}/A", {"value": "y" * (MAX_VALUE_BYTES - 1)})
    assert same.status == 200


async def test_a_mistyped_mark_is_refused(alice: ApiUser) -> None:
    """Passed over, it would make a secret readable."""
    answer = await alice.post(PATH, {"key": "A", "value": "x", "secrets": True})
    assert answer.status == 400
    assert answer.body["message"] == '"secrets" is not a known field; did you mean secret?'


async def test_no_secret_is_logged(alice: ApiUser, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await made(alice, "TOKEN", SECRET, secret=True)
    await alice.put(f"{PATH}/TOKEN", {"value": SECRET, "secret": 1})
    assert SECRET not in caplog.text


async def test_a_locked_value_is_for_those_who_may_write(api: PublicApi, alice: ApiUser) -> None:
    await made(alice, "TOKEN", "l0cked", locked=True)
    await made(alice, "PLAIN", "for all")
    bob = await api.colleague("Bob", role=Role.READ_ONLY)
    hidden = {"key": "TOKEN", "value": HIDDEN, "locked": True, "secret": False}
    assert (await bob.get(f"{PATH}/TOKEN")).body == hidden
    assert [one["value"] for one in (await bob.get(PATH)).body] == ["for all", HIDDEN]
    assert (await alice.get(f"{PATH}/TOKEN")).body == {**hidden, "value": "l0cked"}


async def test_changes_are_noted_by_names_a_secrets_new_value_too(
    api: PublicApi, alice: ApiUser
) -> None:
    await made(alice, "TOKEN", SECRET, secret=True)
    for body in (
        {"value": SECRET + "2", "secret": True},
        {"value": "", "secret": True, "locked": True},
        {"value": "", "secret": True, "locked": True, "key": "OTHER"},
    ):
        path = f"{PATH}/TOKEN"
        assert (await alice.put(path, body)).status == 200
    await alice.delete(f"{PATH}/OTHER")
    entries = await api.database.read(lambda c: audit.list_newest(c, limit=10))
    assert [(one.operation, one.resource_id, one.fields) for one in reversed(entries)] == [
        ("createVariable", "TOKEN", ("key", "secret", "value")),
        ("replaceVariable", "TOKEN", ("value",)),
        ("replaceVariable", "TOKEN", ("locked",)),
        ("replaceVariable", "TOKEN", ("key",)),
        ("deleteVariable", "OTHER", ()),
    ]


async def test_a_variable_that_is_sent_twice_is_made_once(alice: ApiUser) -> None:
    body = {"key": "TOKEN", "value": SECRET, "secret": True}
    sent = [await alice.post(PATH, body, headers={"idempotency-key": "one"}) for _ in range(2)]
    assert [one.status for one in sent] == [201, 201]
    assert sent[1].headers["idempotency-replayed"] == "true"
    other = {**body, "value": SECRET + "2"}
    assert (await alice.post(PATH, other, headers={"idempotency-key": "one"})).status == 422
