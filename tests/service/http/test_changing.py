"""A change is made once and noted with names only, whatever is sent twice or at the same time."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select, text

from service.audit import audit
from service.audit.model import Entry
from service.db.tables.accounts import idempotency
from service.idempotency import idempotency as answers
from service.idempotency import idempotency as store
from service.idempotency.idempotency import LIFETIME_MS
from service.idempotency.model import IdempotentRequest, StoredResponse
from tests.builders.check_bodies import check_body
from tests.servers.public_api import PEPPER, Answer, ApiUser, PublicApi

SNIPPET = {"name": "login", "script": "module.exports = 'hunter2'"}


def key(value: str = "one") -> dict[str, Any]:
    return {"headers": {"idempotency-key": value}}


async def noted(api: PublicApi) -> list[Entry]:
    """Oldest first."""
    found = await api.database.read(lambda c: audit.list_newest(c, limit=100))
    return list(reversed(found))


def seen(answer: Answer) -> tuple[int, Any]:
    return answer.status, answer.body


async def test_a_request_that_comes_twice_is_carried_out_once(alice: ApiUser) -> None:
    body = check_body("url", tpyo=1)
    first = await alice.post("/v1/checks/url", body, **key())
    again = await alice.post("/v1/checks/url", body, **key())
    assert first.status == 201
    assert seen(again) == seen(first)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["x-ignored-fields"] == first.headers["x-ignored-fields"]
    assert "idempotency-replayed" not in first.headers
    assert len((await alice.get("/v1/checks")).body) == 1


async def test_twenty_at_once_are_carried_out_once(alice: ApiUser) -> None:
    sent = (alice.post("/v1/checks/url", check_body(), **key()) for _ in range(20))
    got = await asyncio.gather(*sent)
    assert {answer.body["id"] for answer in got} == {got[0].body["id"]}
    assert [answer.status for answer in got] == [201] * 20
    assert len((await alice.get("/v1/checks")).body) == 1


async def test_a_secret_that_is_shown_once_is_shown_again_to_who_asked(
    api: PublicApi, alice: ApiUser
) -> None:
    body = {"name": "Cellar", "slugName": "cellar"}
    first = await alice.post("/v1/private-locations", body, **key("of-cellar"))
    again = await alice.post("/v1/private-locations", body, **key("of-cellar"))
    raw_key = first.body["keys"][0]["rawKey"]
    assert again.body["keys"][0]["rawKey"] == raw_key
    dump = await api.database.read(lambda c: "\n".join(c.connection.driver_connection.iterdump()))
    assert "of-cellar" not in dump
    (row,) = await api.database.read(lambda c: c.execute(select(idempotency.c.answer)).all())
    assert raw_key.encode() not in row.answer


async def test_a_trigger_that_comes_twice_runs_once(alice: ApiUser) -> None:
    await alice.post("/v1/checks/url", check_body())
    first = await alice.post("/v1/check-sessions/trigger", **key())
    again = await alice.post("/v1/check-sessions/trigger", **key())
    assert first.status == 201
    assert seen(again) == seen(first)


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/snippets", {**SNIPPET, "name": "other"}), ("/v1/checks/url", check_body())],
    ids=["another body", "another path"],
)
async def test_a_key_that_comes_with_another_request_is_refused(
    alice: ApiUser, path: str, body: Any
) -> None:
    assert (await alice.post("/v1/snippets", SNIPPET, **key())).status == 201
    refused = await alice.post(path, body, **key())
    assert (refused.status, refused.body["error"]) == (422, "Unprocessable Entity")
    assert "use a new one for each request" in refused.body["message"]


async def test_a_request_that_failed_may_come_again_with_its_key(alice: ApiUser) -> None:
    taken = (await alice.post("/v1/snippets", SNIPPET)).body["id"]
    assert (await alice.post("/v1/snippets", SNIPPET, **key())).status == 409
    await alice.delete(f"/v1/snippets/{taken}")
    assert (await alice.post("/v1/snippets", SNIPPET, **key())).status == 201


async def test_a_key_is_its_accounts_own(alice: ApiUser, charlie: ApiUser) -> None:
    hers = await alice.post("/v1/snippets", SNIPPET, **key())
    his = await charlie.post("/v1/snippets", SNIPPET, **key())
    assert (hers.status, his.status) == (201, 201)
    assert hers.body["id"] != his.body["id"]


@pytest.mark.parametrize("bad", ["", " ", "x" * 256])
async def test_a_key_that_is_none_is_refused(alice: ApiUser, bad: str) -> None:
    refused = await alice.post("/v1/snippets", SNIPPET, **key(bad))
    assert refused.status == 400
    assert refused.body["validation"] == {"source": "headers", "keys": ["Idempotency-Key"]}


async def test_an_answer_is_kept_for_a_day(api: PublicApi, alice: ApiUser) -> None:
    assert (await alice.post("/v1/snippets", SNIPPET, **key())).status == 201
    back = text(f"UPDATE idempotency SET created_ms = created_ms - {LIFETIME_MS}")
    await api.database.write(lambda c: c.execute(back))
    assert (await alice.post("/v1/snippets", SNIPPET, **key())).status == 409
    now_ms = await api.database.read(api.backend.clock.now_ms)
    gone = await api.database.write(lambda c: answers.forget_old(c, now_ms=now_ms + 1))
    assert gone == 1


async def test_an_accounts_answers_are_bounded(api: PublicApi, alice: ApiUser) -> None:
    account_id = alice.secrets.account_id

    def put(connection: Any) -> list[int]:
        for number in range(5):
            row = store.EncryptedResponse(request_hash=b"", answer=b"", created_ms=number)
            store.put(connection, account_id, b"%d" % number, row)
            store.keep_newest(connection, account_id, 3)
        rows = connection.execute(select(idempotency.c.created_ms))
        return sorted(row.created_ms for row in rows)

    assert await api.database.write(put) == [2, 3, 4]


async def test_an_accounts_answers_are_bounded_by_their_bytes(
    api: PublicApi, alice: ApiUser
) -> None:
    mebibyte, kept = 1024 * 1024, answers.IdempotencyStore(PEPPER, most_bytes=12 * 1024 * 1024)

    def keep(connection: Any) -> list[int]:
        for number in range(40):
            asked = IdempotentRequest(
                account_id=alice.secrets.account_id, key=f"{number}", request=b""
            )
            answer = StoredResponse(status=201, headers={}, body=bytes(mebibyte))
            kept.keep(connection, asked, answer, now_ms=number)
        rows = connection.execute(select(idempotency.c.created_ms))
        return sorted(row.created_ms for row in rows)

    left = await api.database.write(keep)
    assert left == list(range(left[0], 40))
    assert 11 <= len(left) <= 16


async def test_an_answer_that_is_too_long_by_itself_is_kept_all_the_same(
    api: PublicApi, alice: ApiUser
) -> None:
    kept = answers.IdempotencyStore(PEPPER, most_bytes=1000)

    def keep(connection: Any) -> list[int]:
        for number in range(3):
            asked = IdempotentRequest(
                account_id=alice.secrets.account_id, key=f"{number}", request=b""
            )
            answer = StoredResponse(status=201, headers={}, body=bytes(5 * 1024 * 1024))
            kept.keep(connection, asked, answer, now_ms=number)
        return [row.created_ms for row in connection.execute(select(idempotency.c.created_ms))]

    assert await api.database.write(keep) == [2]


async def test_a_change_is_noted_by_names_and_never_by_values(
    api: PublicApi, alice: ApiUser
) -> None:
    made = (await alice.post("/v1/snippets", SNIPPET)).body
    path = f"/v1/snippets/{made['id']}"
    await alice.put(path, {**SNIPPET, "script": "module.exports = 'swordfish'"})
    await alice.delete(path)
    caller = await api.backend.keys.caller(alice.secrets.api_key)
    assert caller is not None
    told = [(one.operation, one.resource, one.resource_id, one.fields) for one in await noted(api)]
    assert told == [
        ("createSnippet", "snippets", str(made["id"]), ("name", "script")),
        ("replaceSnippet", "snippets", str(made["id"]), ("script",)),
        ("deleteSnippet", "snippets", str(made["id"]), ()),
    ]
    for one in await noted(api):
        assert (one.account_id, one.key_id) == (caller.account_id, caller.key_id)
        assert one.address == "127.0.0.1"
        assert "hunter2" not in repr(one)
        assert "swordfish" not in repr(one)


async def test_what_changed_in_a_check_and_a_location_is_named(
    api: PublicApi, alice: ApiUser
) -> None:
    made = (await alice.post("/v1/checks/url", check_body())).body
    await alice.put(f"/v1/checks/url/{made['id']}", check_body(frequency=5, tags=["a"]))
    place = f"/v1/private-locations/{alice.secrets.location_id}"
    proxy = "http://u:hunter2@proxy:1"
    body = {"name": "Default location", "icon": "location", "proxyUrl": proxy}
    assert (await alice.put(place, body)).status == 200
    _, check, location = await noted(api)
    assert check.fields == ("frequency", "tags")
    assert location.fields == ("proxyUrl",)


async def test_what_is_refused_is_no_change(api: PublicApi, alice: ApiUser) -> None:
    await alice.delete("/v1/snippets/17")
    await alice.post("/v1/snippets", {})
    assert await noted(api) == []


async def test_a_change_that_cannot_be_noted_is_not_made(api: PublicApi, alice: ApiUser) -> None:
    await api.database.write(lambda c: c.execute(text("DROP TABLE audit")))
    assert (await alice.post("/v1/snippets", SNIPPET)).status == 500
    assert (await alice.get("/v1/snippets")).body == []


async def test_old_entries_are_forgotten(api: PublicApi, alice: ApiUser) -> None:
    await alice.post("/v1/snippets", SNIPPET)
    (entry,) = await noted(api)
    late_ms = entry.at_ms + audit.KEPT_MS
    assert await api.database.write(lambda c: audit.forget_old(c, now_ms=late_ms)) == 0
    assert await api.database.write(lambda c: audit.forget_old(c, now_ms=late_ms + 1)) == 1
