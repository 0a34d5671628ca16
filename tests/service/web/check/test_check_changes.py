"""What the buttons of a check's page do."""

import re
from typing import Any

from msgspec.structs import replace

from contract.job import Job
from contract.result import Result
from contract.wire import decode, encode
from service.jobs.claims import ClaimScope, assign_jobs
from service.results.ingest import Arrived, take_results
from tests.builders.stored_results import a_record, failed
from tests.builders.world import a_claimant
from tests.servers.public_api import PublicApi
from tests.service.web.check.test_check_page import a_check, words
from tests.service.web.conftest import WebUser


async def find(api: PublicApi, check: dict[str, Any]) -> dict[str, Any]:
    """The check as the API shows it now."""
    found: dict[str, Any] = (await api.alice.get(f"/v1/checks/{check['id']}")).body
    return found


async def claim(api: PublicApi) -> Job:
    """The run that an agent gets."""
    secrets = api.alice.secrets
    scope = ClaimScope(location_id=secrets.location_id, vault=api.backend.vault)
    dealt = await api.database.write(
        lambda c: assign_jobs(c, scope, [a_claimant()], now_ms=api.backend.clock.now_ms(c))
    )
    ((job,),) = dealt.jobs
    return decode(job, Job)


async def deliver(api: PublicApi, check: dict[str, Any], job: Job, outcome: Any) -> None:
    """Hand in the result of a run, as its agent does."""
    place = api.alice.secrets.location_id
    body = a_record(check, location_id=place, outcome=outcome, run_id=int(job.run_id)).body
    assert body is not None
    result = decode(body, Result)
    fresh = replace(result, fence=job.fence, job_id=job.job_id, run_id=job.run_id)
    arrived = [Arrived(fresh, encode(fresh), int(job.job_id))]
    await api.database.write(
        lambda c: take_results(c, arrived, location_id=place, now_ms=api.backend.clock.now_ms(c))
    )


async def test_a_run_on_demand_is_followed_from_the_queue_to_its_verdict(
    api: PublicApi, web: WebUser
) -> None:
    check = await a_check(api, retryStrategy=None, doubleCheck=False)

    answer = await web.post(f"/checks/{check['id']}/run", {})

    assert answer.status == 303
    path = answer.headers["location"]
    page = await web.get(path)
    assert "default queued, for" in words(page.text)
    assert 'http-equiv="refresh"' in page.text
    (part,) = re.findall(r'hx-get="(/checks/[^"]*/sessions/[^"]*)"', page.text)
    job = await claim(api)
    assert "runs on agent agent-1, for" in words((await web.get(part)).text)
    await deliver(api, check, job, failed("It broke."))
    ended = await web.get(part)
    assert "default failed" in words(ended.text)
    assert "It broke." in words(ended.text)
    assert "hx-get" not in ended.text
    assert 'http-equiv="refresh"' not in (await web.get(path)).text


async def test_a_run_of_another_check_is_not_shown(api: PublicApi, web: WebUser) -> None:
    mine, other = await a_check(api), await a_check(api, name="Other")
    path = (await web.post(f"/checks/{mine['id']}/run", {})).headers["location"]
    session = path.partition("run=")[2]

    assert (await web.get(f"/checks/{other['id']}/sessions/{session}")).status == 404
    assert (await web.get(f"/checks/{other['id']}?run={session}")).status == 200


async def test_pause_and_resume_change_that_alone(api: PublicApi, web: WebUser) -> None:
    check = await a_check(
        api, environmentVariables=[{"key": "TOKEN", "value": "hush", "locked": True}]
    )
    before = await find(api, check)

    assert (await web.post(f"/checks/{check['id']}/pause", {})).status == 303

    paused = await find(api, check)
    assert paused["activated"] is False
    assert "Resume" in (await web.get(f"/checks/{check['id']}")).text
    assert (await web.post(f"/checks/{check['id']}/pause", {"undo": "1"})).status == 303
    resumed = await find(api, check)
    assert {**resumed, "updated_at": None} == {**before, "updated_at": None}


async def test_muting_keeps_a_check_running(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api)

    await web.post(f"/checks/{check['id']}/mute", {})

    muted = await find(api, check)
    assert (muted["muted"], muted["activated"]) == (True, True)
    assert "Muted: nobody is notified" in words((await web.get(f"/checks/{check['id']}")).text)


async def test_a_check_that_its_group_pauses_names_the_group_and_keeps_its_own_button(
    api: PublicApi, web: WebUser
) -> None:
    made = await api.alice.post("/v2/check-groups", {"name": "Shop", "activated": False})
    group = made.body["id"]
    check = await a_check(api, groupId=group)

    text = (await web.get(f"/checks/{check['id']}")).text

    assert f'href="/groups/{group}/edit"' in text
    assert "Pause</button>" in text
    assert "Resume" not in text


async def test_a_paused_check_cannot_be_run_and_says_so(api: PublicApi, web: WebUser) -> None:
    check = await a_check(api, activated=False)

    answer = await web.post(f"/checks/{check['id']}/run", {})

    assert answer.status == 404
    assert "No matching checks were found." in words(answer.text)
    assert "Run now" not in (await web.get(f"/checks/{check['id']}")).text
