"""Requests as the established Go SDK and Terraform provider send them, recorded by hand.

Terraform compares what it sent with what it reads: whatever differs is a change to it, each time.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.servers.public_api import ApiUser
from tests.servers.service import serve_service

RECORDED: Final = json.loads((Path(__file__).parent / "recorded/terraform.json").read_text())
NEVER_COMPARED: Final = frozenset(
    {"sslCheck", "created_at", "updated_at", "createdAt", "updatedAt"}
    | {"edit", "order", "arrayIndex", "arraySelector"}
)
"""What the clients send because Go has a value for each field."""


def differences(sent: Any, read: Any, path: str = "") -> Iterator[str]:
    """Where a client would see a change."""
    if isinstance(sent, dict) and isinstance(read, dict):
        for key, value in sent.items():
            if key not in NEVER_COMPARED and not (key == "id" and path == ""):
                yield from differences(value, read.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(read, list) and len(sent) == len(read):
        for number, value in enumerate(sent):
            yield from differences(value, read[number], f"{path}[{number}]")
    elif not is_nothing(sent) or not is_nothing(read):
        if sent == read:
            return
        yield f"{path}: sent {sent!r}, read {read!r}"


def is_nothing(value: Any) -> bool:
    """Go reads null, zero, an empty text and an object of such alike."""
    if isinstance(value, dict):
        return all(map(is_nothing, value.values()))
    return not value


async def send(alice: ApiUser, request: list[Any], item_id: str = "") -> Any:
    method, path, body = request
    answer = await alice.ask(method, path.replace("{id}", item_id), body)
    assert answer.status in (200, 201), answer.body
    return answer.body


def fill_in(recorded: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Put the id of what was made before in its places: a number, or a text."""
    text = json.dumps(recorded).replace('"{before}"', json.dumps(made["id"]))
    return dict(json.loads(text))


async def read(alice: ApiUser, path: str, item_id: str) -> Any:
    answer = await alice.get(path.replace("{id}", item_id))
    assert answer.status == 200, answer.body
    return answer.body


@pytest.mark.parametrize("recorded", RECORDED, ids=[one["name"] for one in RECORDED])
async def test_what_a_client_sends_is_what_it_reads_until_it_is_gone(
    recorded: dict[str, Any], tmp_path: Path
) -> None:
    async with serve_service(tmp_path) as service:
        alice = service.alice
        if "before" in recorded:
            recorded = fill_in(recorded, await send(alice, recorded["before"]))
        made = await send(alice, recorded["create"])
        item_id = recorded.get("key") or str(made["id"])
        first = await read(alice, recorded["read"], item_id)
        assert [*differences(recorded["create"][2], first)] == []
        await send(alice, recorded["update"], item_id)
        second = await read(alice, recorded["read"], item_id)
        assert [*differences(recorded["update"][2], second)] == []
        if "flip" in recorded:
            await send(alice, recorded["flip"], item_id)
            third = await read(alice, recorded["read"], item_id)
            kept = {**second, **recorded["flip"][2]}
            assert [*differences(kept, third)] == [], "an omitted field is kept"
        path = recorded["delete"].replace("{id}", item_id)
        assert (await alice.delete(path)).status == 204
        assert (await alice.get(recorded["read"].replace("{id}", item_id))).status == 404


async def test_a_trigger_is_created_without_a_body_and_its_token_is_read_back_whole(
    tmp_path: Path,
) -> None:
    async with serve_service(tmp_path) as service:
        alice = service.alice
        group = (await alice.post("/v1/check-groups", {"name": "Shop"})).body["id"]
        for path in (f"checks/{await service.a_url_check()}", f"check-groups/{group}"):
            headers = {"content-type": "application/json"}
            made = await alice.post(f"/v1/triggers/{path}", headers=headers)
            assert made.status == 201, made.body
            seen = (await alice.get(f"/v1/triggers/{path}")).body
            assert seen["token"] == made.body["token"]
            assert (await alice.delete(f"/v1/triggers/{path}")).status == 204
            assert (await alice.get(f"/v1/triggers/{path}")).status == 404
