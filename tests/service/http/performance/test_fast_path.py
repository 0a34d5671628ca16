from typing import Any

import pytest

from contract import agent_api as wire
from service.agents.presence import Presence
from service.db.engine import DatabaseBusyError
from tests.servers.service import RunningService


async def test_a_refusal_on_the_short_way_has_the_one_error_body(service: RunningService) -> None:
    answer = await service.agent("POST", wire.RENEW, {"leases": [{"jobId": 1}]})
    assert (answer.status, answer.body["error"]) == (400, "Bad Request")
    assert "$.leases[0]" in answer.body["message"]
    assert set(answer.body) == {"statusCode", "error", "message", "attributes", "validation"}


async def test_another_method_on_a_short_way_is_refused_by_the_application(
    service: RunningService,
) -> None:
    answer = await service.agent("GET", wire.CLAIM)
    assert (answer.status, answer.body["error"]) == (405, "Method Not Allowed")


@pytest.mark.parametrize(
    ("problem", "status"), [(DatabaseBusyError("locked"), 503), (RuntimeError("hunter2"), 500)]
)
async def test_a_fault_on_the_short_way_is_told_without_details(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, problem: Exception, status: int
) -> None:
    async def fail(*_: Any) -> bool:
        raise problem

    monkeypatch.setattr(Presence, "meet", fail)
    answer = await service.claim()
    assert (answer.status, answer.body["statusCode"]) == (status, status)
    assert str(problem) not in str(answer.body)
