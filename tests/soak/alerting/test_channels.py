"""What a real service did about its alerts is compared; a part that is taken away is missed."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.scene import Scene, set_scene
from tests.soak.alerting.channels import QUICK, Alerting, alerting_of, has_timers, has_waiting

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with set_scene(tmp_path, **QUICK) as made:
        yield made


@pytest.fixture
async def alerting(scene: Scene) -> AsyncIterator[Alerting]:
    async with alerting_of(scene, seed="short") as made:
        await made.begin(scene)
        yield made


async def test_an_alert_or_a_notification_that_is_taken_away_is_missed(
    scene: Scene, alerting: Alerting
) -> None:
    body = alerting.bodies()[0]
    alerting.site.pages[0] = "503"
    check = await scene.ask("POST", "/v1/checks/api", body)
    agent = await scene.start_agent()
    await scene.until(lambda: count(scene, "check_alert") == 1)
    alerting.site.pages[0] = "200"
    await scene.until(lambda: count(scene, "check_alert") == 2)
    await scene.until(lambda: not (has_waiting(scene.database) or has_timers(scene.database)))
    await scene.ask("PUT", f"/v1/checks/api/{check['id']}", {**body, "activated": False})
    await agent.stop()
    checks = {check["id"]: body}
    compared = alerting.compare(scene.database, checks)
    assert (compared.alerts, compared.faults) == (2, ())
    change(scene, "DELETE FROM alert_notification WHERE serial = 1")
    assert len(alerting.compare(scene.database, checks).lost) == 1
    change(scene, "DELETE FROM check_alert WHERE serial = 2")
    assert len(alerting.compare(scene.database, checks).lost) == 2


def count(scene: Scene, table: str) -> int:
    with closing(sqlite3.connect(scene.database)) as file:
        return int(file.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def change(scene: Scene, statement: str) -> None:
    with closing(sqlite3.connect(scene.database, timeout=60)) as file, file:
        file.execute(statement)
