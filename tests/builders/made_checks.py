"""Checks that a person made through the public API."""

from typing import Any

from tests.builders.check_bodies import check_body
from tests.servers.public_api import ApiUser


async def made(user: ApiUser, kind: str = "url", **fields: Any) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert answer.status == 201, answer.body
    body: dict[str, Any] = answer.body
    return body
