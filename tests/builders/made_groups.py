"""Groups and checks of theirs, made by a person through the public API."""

from typing import Any

from sqlalchemy import select

from service.db.tables.checks import check_
from tests.builders.check_bodies import check_body, script_body
from tests.builders.groups import group_body
from tests.servers.public_api import ApiUser, PublicApi

PATHS = ("/v1/check-groups", "/v2/check-groups")
SECRET = "s3cr3t-of-nobody-else"
TOKEN = {"key": "TOKEN", "value": SECRET, "locked": False, "secret": True}

ALERTS = {
    "escalationType": "RUN_BASED",
    "runBasedEscalation": {"failedRunThreshold": 1},
    "timeBasedEscalation": {"minutesFailingThreshold": 5},
    "reminders": {"amount": 0, "interval": 5},
    "parallelRunFailureThreshold": {"enabled": False, "percentage": 10},
}


async def a_group(user: ApiUser, path: str = PATHS[0], **fields: Any) -> dict[str, Any]:
    answer = await user.post(path, group_body(**fields))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def a_check(user: ApiUser, group: dict[str, Any], kind: str = "url", **fields: Any) -> Any:
    make = script_body if kind in ("browser", "multistep") else check_body
    body = make(kind, groupId=group["id"], **fields)
    answer = await user.post(f"/v1/checks/{kind}", body)
    assert answer.status == 201, answer.body
    return answer.body


async def changed(user: ApiUser, group: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = await user.put(f"/v1/check-groups/{group['id']}", {**group, **fields})
    assert answer.status == 200, answer.body
    return dict(answer.body)


async def row_of(api: PublicApi, check: dict[str, Any]) -> Any:
    query = select(check_).where(check_.c.id == check["id"])
    return await api.database.read(lambda c: c.execute(query).one())
