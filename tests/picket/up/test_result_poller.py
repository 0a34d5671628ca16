import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contract.checks import CheckType
from contract.result import Failure, FailureKind, Outcome, Status
from picket.api_client import ApiRefusedError, ApiUnreachableError, KnownCheck, PublicApi
from picket.up.agent_types import set_up_checks
from picket.up.dashboard import Dashboard, NewResult, ResultPoller
from picket.up.demo_target import DemoPorts
from picket.up.starter_checks import TAG, starter_checks
from runners.registry import RUNNABLE
from tests.builders.agent_types import an_agent, types_at
from tests.builders.patience import LONG_S
from tests.builders.stored_results import START_MS, passed, store
from tests.servers.public_api import PublicApi as ServedApi
from tests.servers.public_api import serve_public_api
from tests.servers.tcp import refusing_port

NOBODY = (
    "No agent that runs URL checks is connected at the location default: start one with its key, "
    "or see on the page of the location why its agents cannot run them."
)
BEFORE = datetime.fromtimestamp(START_MS / 1000, UTC) - timedelta(hours=1)


@dataclass
class Scene:
    """A served API, a client of it, and a feed with its dashboard."""

    served: ServedApi
    api: PublicApi
    dashboard: Dashboard
    feed: ResultPoller
    news: asyncio.Event

    async def a_check(self, name: str = "Front page") -> KnownCheck:
        body = {"name": name, "request": {"url": "http://127.0.0.1/"}}
        return await self.api.create(CheckType.URL, {**body, "privateLocations": ["default"]})

    async def until_results(self, count: int) -> None:
        following = asyncio.create_task(self.feed.follow())
        try:
            async with asyncio.timeout(LONG_S):
                while self.dashboard.counts.total() < count:
                    self.news.clear()
                    await self.news.wait()
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following


@asynccontextmanager
async def a_scene(folder: Path, *, since: datetime = BEFORE) -> AsyncIterator[Scene]:
    async with (
        serve_public_api(folder) as served,
        PublicApi(served.url, served.alice.secrets.api_key) as api,
    ):
        dashboard, news = Dashboard(), asyncio.Event()
        feed = ResultPoller(api, dashboard, lambda _: news.set(), since=since)
        yield Scene(served, api, dashboard, feed, news)


async def test_every_new_result_is_put_on_the_board_with_its_cause(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        check = await scene.a_check()
        failure = Failure(kind=FailureKind.CONNECT, message="Nothing listens there.")
        await store(scene.served, check.fields, Outcome(status=Status.FAILED, failure=failure))
        await store(scene.served, check.fields, started_ms=START_MS + 10_000)
        await scene.until_results(2)
        state = scene.dashboard.states[check.id]
    assert scene.dashboard.counts == {(CheckType.URL, "FAILED"): 1, (CheckType.URL, "MISSED"): 1}
    assert [each.cause for each in state.trend] == [
        "Nothing listens there.",
        NOBODY,
    ]


async def test_a_degraded_result_is_put_on_the_board_with_its_threshold(tmp_path: Path) -> None:
    because = "It took 412 ms; above 200 ms it is degraded."
    async with a_scene(tmp_path) as scene:
        check = await scene.a_check()
        outcome = Outcome(status=Status.DEGRADED, response_time_ms=412, degraded_because=because)
        await store(scene.served, check.fields, outcome)
        await scene.until_results(1)
        (result,) = scene.dashboard.states[check.id].trend
    assert (result.status, result.cause) == ("DEGRADED", because)


async def test_results_of_all_checks_are_told_by_their_time(tmp_path: Path) -> None:
    told: list[str] = []
    all_told = asyncio.Event()

    def note(results: list[NewResult]) -> None:
        told.extend(each.check_name for each in results)
        if len(told) == 4:
            all_told.set()

    async with a_scene(tmp_path) as scene:
        one, other = await scene.a_check("one"), await scene.a_check("other")
        for number in range(4):
            check = (one, other)[number % 2]
            await store(scene.served, check.fields, passed(), started_ms=START_MS + number * 1000)
        feed = ResultPoller(scene.api, scene.dashboard, note, since=BEFORE)
        following = asyncio.create_task(feed.follow())
        await asyncio.wait_for(all_told.wait(), LONG_S)
        following.cancel()
    assert told == ["one", "other", "one", "other"]


async def test_a_result_counts_if_its_run_ended_since_this_start(tmp_path: Path) -> None:
    since = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(seconds=5)
    now_ms = START_MS + 6_000
    async with a_scene(tmp_path, since=since) as scene:
        check = await scene.a_check()
        await store(scene.served, check.fields, passed())
        await store(scene.served, check.fields, started_ms=now_ms)
        await store(scene.served, check.fields, passed(), scheduled_ms=START_MS, started_ms=now_ms)
        await scene.until_results(2)
    assert scene.dashboard.counts == {(CheckType.URL, "PASSED"): 1, (CheckType.URL, "MISSED"): 1}
    assert not scene.dashboard.missed_before


async def test_every_run_that_was_missed_while_picket_was_stopped_is_counted(
    tmp_path: Path,
) -> None:
    since = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(seconds=60)
    now_ms = START_MS + 61_000
    async with a_scene(tmp_path, since=since) as scene:
        check = await scene.a_check()
        older = {"scheduled_ms": START_MS - 600_000, "stopped_ms": START_MS - 1_000}
        await store(
            scene.served, check.fields, started_ms=START_MS - 600_000, due_times=60, **older
        )
        for number in range(30):  # more than a page of later requests
            await store(scene.served, check.fields, started_ms=START_MS + number * 1_000)
        # It waited in the queue, and ended only now.
        await store(scene.served, check.fields, scheduled_ms=START_MS, started_ms=now_ms)
        await store(scene.served, check.fields, passed(), started_ms=now_ms)
        await scene.until_results(1)
    assert scene.dashboard.missed_before == {CheckType.URL: 91}
    assert scene.dashboard.counts == {(CheckType.URL, "PASSED"): 1}


async def test_what_an_earlier_start_recorded_as_missed_is_not_counted_again(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path) as scene:
        check = await scene.a_check()
        await store(scene.served, check.fields)
        await asyncio.sleep(0.01)
        since = datetime.now(UTC)
        now_ms = int(since.timestamp() * 1000)
        await store(scene.served, check.fields, passed(), started_ms=now_ms)
        scene.feed = ResultPoller(
            scene.api, scene.dashboard, lambda _: scene.news.set(), since=since
        )
        await scene.until_results(1)
    assert scene.dashboard.counts == {(CheckType.URL, "PASSED"): 1}
    assert not scene.dashboard.missed_before


async def test_a_deleted_check_leaves_the_board_and_the_others_go_on(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        gone, here = await scene.a_check("gone"), await scene.a_check("here")
        await scene.served.alice.delete(f"/v1/checks/{gone.id}")
        await store(scene.served, here.fields, passed())
        await scene.until_results(1)
    assert list(scene.dashboard.states) == [here.id]


async def test_a_service_that_is_away_is_asked_again(tmp_path: Path) -> None:
    with refusing_port() as port:
        async with PublicApi(f"http://127.0.0.1:{port}", "cu_key") as api:
            with pytest.raises(ApiUnreachableError, match="does not answer"):
                await api.checks()
            feed = ResultPoller(api, Dashboard(), print, since=BEFORE)
            following = asyncio.create_task(feed.follow())
            done, _ = await asyncio.wait([following], timeout=0.2)
            assert not done
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following


async def test_a_refusal_is_said_with_call_status_and_reason(tmp_path: Path) -> None:
    async with a_scene(tmp_path) as scene:
        with pytest.raises(ApiRefusedError, match="POST /v1/checks/url returned 400: ") as said:
            await scene.api.create(CheckType.URL, {"name": "no request"})
    assert said.value.status == 400


async def test_starter_checks_are_made_once_and_follow_the_ports(tmp_path: Path) -> None:
    ports = DemoPorts(http=8001, https=8002, echo=8003, dns=8004)
    moved = DemoPorts(http=9001, https=8002, echo=8003, dns=8004)
    types = types_at(an_agent("ours", taken=set(RUNNABLE)))
    assert await types.look()
    async with a_scene(tmp_path) as scene:
        seen = []
        for now in (ports, ports, moved):
            await set_up_checks(scene.api, starter_checks(now, location="default"), types)
            seen.append({each.id: each.fields for each in await scene.api.checks(tag=TAG)})
    assert seen[0].keys() == seen[1].keys() == seen[2].keys()
    assert seen[0] == seen[1]
    changed = [key for key in seen[0] if seen[2][key] != seen[1][key]]
    assert all("9001" in str(seen[2][key]) for key in changed)
    assert len(changed) == sum("8001" in str(each) for each in seen[0].values())


async def test_starter_checks_run_once_their_type_was_tried_and_stop_when_it_fails(
    tmp_path: Path,
) -> None:
    others = set(RUNNABLE) - {CheckType.BROWSER}
    untried = types_at(an_agent("ours", taken=others))
    working = types_at(an_agent("ours", taken=set(RUNNABLE)))
    failing = types_at(an_agent("ours", (CheckType.BROWSER, False), taken=others))
    ports = DemoPorts(http=8001, https=8002, echo=8003, dns=8004)
    wanted = starter_checks(ports, location="default")
    seen = []
    async with a_scene(tmp_path) as scene:
        for types in (failing, untried, working, failing):
            assert await types.look()
            await set_up_checks(scene.api, wanted, types)
            checks = await scene.api.checks(tag=TAG)
            seen.append({one.fields["activated"] for one in checks if one.kind == "BROWSER"})
    assert seen == [set(), {False}, {True}, {False}]
