"""The service dies by SIGKILL between the commit of an alert and the answer of its receiver."""

import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path

import pytest

from tests.faults.nursery import Nursery
from tests.faults.scene import Scene, set_scene
from tests.servers.receiver import Got, Receiver, serve_receiver

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

PATHS = ("/first", "/second")


@pytest.fixture
async def scene(
    tmp_path: Path, lease_s: float, nurseries: Mapping[str, Nursery]
) -> AsyncIterator[Scene]:
    """Channels of its service may reach this machine."""
    allowed = {"ALERT_EGRESS_ALLOW": "127.0.0.0/8"}
    async with set_scene(tmp_path, lease_s=lease_s, nurseries=nurseries, **allowed) as made:
        yield made


@pytest.fixture
async def receiver(scene: Scene) -> AsyncIterator[Receiver]:
    """Two channels of the service lead to it, each to a path of its own."""
    async with serve_receiver() as made:
        for path in PATHS:
            config = {"url": made.url + path, "method": "POST", "template": "{{{ALERT_TYPE}}}"}
            body = {"type": "WEBHOOK", "config": config, "autoSubscribe": True}
            await scene.ask("POST", "/v1/alert-channels", body)
        yield made


async def test_an_alert_that_the_service_died_on_before_it_was_sent_is_sent_after_it(
    scene: Scene, receiver: Receiver
) -> None:
    await scene.start_agent()
    scene.kill_service_at("results.committed")
    await scene.check("/flaky")
    await scene.service_died()
    assert receiver.got == []
    assert count_waiting(scene) == len(PATHS)
    await scene.start_service()
    await receiver.wait_for(len(PATHS))
    await scene.until(lambda: count_waiting(scene) == 0)
    assert sorted((got.path, got.body) for got in receiver.got) == [
        (path, b"ALERT_FAILURE") for path in PATHS
    ]


async def test_alerts_that_the_service_died_on_before_the_answer_are_sent_again_in_order(
    scene: Scene, receiver: Receiver
) -> None:
    receiver.hangs = True
    await scene.start_agent()
    checks = await scene.check("/flaky")
    await receiver.wait_for(len(PATHS))
    for finals in (2, 3):  # it fails once more, and passes
        await scene.trigger(checks)
        await scene.until(lambda finals=finals: scene.ledger().final == finals)
    assert count_waiting(scene) == 2 * len(PATHS)
    await scene.service.kill()
    before = len(receiver.got)
    receiver.hangs = False
    await scene.start_service()
    await scene.until(lambda: count_waiting(scene) == 0)
    after = receiver.got[before:]
    for path in PATHS:
        assert ids_in_order(after, path) == ids_in_order(receiver.got, path)
        bodies = [got.body for got in after if got.path == path]
        assert bodies == [b"ALERT_FAILURE", b"ALERT_RECOVERY"]


def ids_in_order(got: list[Got], path: str) -> list[str]:
    """The ids of what came to a path; one that came again at once is named once."""
    ids = [one.headers["x-picket-delivery"] for one in got if one.path == path]
    return [name for name, _ in groupby(ids)]


def count_waiting(scene: Scene) -> int:
    """How many notifications are committed and not settled, by the file itself."""
    query = "SELECT count(*) FROM alert_notification WHERE status = 'IN_PROGRESS'"
    with closing(sqlite3.connect(f"file:{scene.database}?mode=ro", uri=True)) as file:
        return int(file.execute(query).fetchone()[0])
