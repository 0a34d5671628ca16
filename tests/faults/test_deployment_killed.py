"""The service dies by SIGKILL while it deploys a project: all of it is there then, or nothing."""

from typing import Any

import pytest

from tests.builders.projects import DEPLOY, SHOP, every_type
from tests.faults.scene import Scene, leases_of

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


async def end_of(scene: Scene, begun: dict[str, Any]) -> dict[str, Any]:
    """The deployment at its end, which comes with its lease at the latest."""
    path = f"{SHOP}/deployments/{begun['id']}/completion"
    ended: dict[str, Any] = await scene.ask("GET", path)
    return ended


@leases_of(3.0)
@pytest.mark.parametrize(
    ("step", "status"),
    [
        ("start.begun", "FAILED"),
        ("start.committed", "FAILED"),
        ("deploy.begun", "FAILED"),
        ("deploy.committed", "SUCCEEDED"),
    ],
)
async def test_a_deployment_that_the_service_died_on_is_whole_or_nothing(
    scene: Scene, step: str, status: str
) -> None:
    scene.kill_service_at(step)
    begun = await scene.ask("POST", DEPLOY, every_type())
    await scene.service_died()
    await scene.start_service()
    ended = await end_of(scene, begun)
    checks = await scene.ask("GET", "/v1/checks")

    assert ended["status"] == status
    assert len(checks) == (3 if status == "SUCCEEDED" else 0)
    again = await end_of(scene, await scene.ask("POST", DEPLOY, every_type()))
    assert again["status"] == "SUCCEEDED", again["error"]
    changed = [one for one in again["result"]["diff"] if one["changed"]]
    assert bool(changed) is (status == "FAILED")
    assert len(await scene.ask("GET", "/v1/checks")) == 3
