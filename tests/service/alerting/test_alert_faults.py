"""A check whose alerting fails: its results, and all other checks, go on."""

import pytest
from sqlalchemy import Connection, select
from structlog.testing import capture_logs

from service.alert_channels import actions as alert_channels
from service.alerting.model import Alert
from service.db.tables.runs import result
from service.results.recording import record
from tests.builders.alerting import Alerting, a_check, by_runs
from tests.builders.world import World

REMINDED = by_runs(1, reminders={"amount": 5, "interval": 5})


def spoil(monkeypatch: pytest.MonkeyPatch, check: Alerting) -> None:
    """From now on no alert of the check can be queued."""
    enqueue = alert_channels.enqueue

    def fail(connection: Connection, alert: Alert, **more: int) -> int:
        if alert.check_id == check.check_id:
            raise LookupError("spoiled")
        return enqueue(connection, alert, **more)

    monkeypatch.setattr(alert_channels, "enqueue", fail)


async def test_a_check_that_cannot_be_alerted_of_loses_no_result_and_stops_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled, other = await a_check(world), await a_check(world)
    with monkeypatch.context() as patched, capture_logs() as logs:
        spoil(patched, spoiled)
        both = [spoiled.record("F"), other.record("F")]
        await world.change(lambda c, now: record(c, both, now_ms=now))
    assert (await spoiled.types(), await other.types()) == ([], ["FAILURE"])
    assert len(await world.rows(select(result))) == 2
    [logged] = [one for one in logs if one["event"] == "alerting.failed"]
    assert (logged["check_id"], logged["log_level"]) == (spoiled.check_id, "error")
    await spoiled.runs("FP")
    assert await spoiled.types() == ["FAILURE", "RECOVERY"]


async def test_a_timer_that_fails_stops_no_other_and_is_tried_again_after_a_minute(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled, other = await a_check(world, REMINDED), await a_check(world, REMINDED)
    await spoiled.run("F")
    await other.run("F")
    with monkeypatch.context() as patched, capture_logs() as logs:
        spoil(patched, spoiled)
        await spoiled.wait(330)
    assert (await spoiled.types(), await other.types()) == (
        ["FAILURE"],
        ["FAILURE", "FAILURE_REMAIN 1"],
    )
    assert [one["check_id"] for one in logs if one["event"] == "alerting.failed"] == [
        spoiled.check_id
    ]
    await spoiled.wait(29)
    assert await spoiled.types() == ["FAILURE"]
    await spoiled.wait(1)
    assert await spoiled.types() == ["FAILURE", "FAILURE_REMAIN 1"]
