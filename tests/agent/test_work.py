"""What an agent offers depends on whether there is anything to run scripts with."""

from pathlib import Path

from agent.ground import Ground, Makeup
from agent.runs import Runs
from agent.work import hello_of, open_scripts, runnable_types
from contract.checks import CheckType, Lane
from contract.job import Job
from contract.result import Outcome
from runners.kit.harness import Harness
from runners.kit.runner import RunContext, Runner
from runners.kit.workspace import Workspace
from runners.registry import RUNNERS
from tests.builders.agents import a_client, a_lifecycle, metrics, settings
from tests.builders.context import PingTable, a_network
from tests.builders.observations import an_outcome
from tests.builders.specs import a_job, a_url_spec, an_api_spec


async def ground_with(harness: Harness | None) -> Ground:
    async with a_client("http://127.0.0.1:9") as client:
        return Ground(
            agent_id="agent-1",
            settings=settings(),
            makeup=Makeup(runners=RUNNERS, checks_itself=False),
            client=client,
            lifecycle=a_lifecycle(),
            metrics=metrics(),
            harness=harness,
        )


async def test_without_a_runtime_no_job_with_scripts_is_claimed(tmp_path: Path) -> None:
    async with open_scripts(settings(runtimes_dir=tmp_path)) as harness:
        assert harness is None
    ground = await ground_with(None)
    types = await runnable_types(ground, scripted=False)
    assert CheckType.API in types
    assert await runnable_types(ground, scripted=True) == ()
    assert hello_of(ground, types).slots[Lane.MAIN] == 0


async def test_with_a_runtime_that_runs_scripts_api_checks_with_them_are_claimed() -> None:
    async with open_scripts(settings()) as harness:
        assert harness is not None, "no runtime is installed: run `make test`"
        ground = await ground_with(harness)
        types = await runnable_types(ground, scripted=True)
        assert CheckType.MULTI_STEP in types
        assert hello_of(ground, types).slots[Lane.MAIN] == 1
        broken = (CheckType.API, CheckType.URL)
        assert hello_of(ground, broken).slots[Lane.MAIN] == 0


async def test_scripts_learn_of_their_run_and_other_checks_pay_nothing_for_it() -> None:
    seen: list[RunContext] = []

    async def execute(job: Job, runner: Runner[object], ctx: RunContext) -> Outcome:
        seen.append(ctx)
        return an_outcome()

    async with a_network() as network:
        runs = Runs(RUNNERS, execute, network=network, pings=PingTable())
        await runs.run(a_job(an_api_spec(setup_script=""), check_id="c-7"), Workspace())
        await runs.run(a_job(a_url_spec()), Workspace())
    scripted, plain = (ctx.environment for ctx in seen)
    assert scripted["CHECK_ID"] == "c-7"
    assert scripted["CHECK_TYPE"] == "API"
    assert plain == {}
