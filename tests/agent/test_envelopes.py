"""Envelopes: the job's ids, the run's times, no secret."""

from agent.envelopes import SealedEnvelopes
from contract.result import LogLine
from runners.kit.scrub import Scrubber
from tests.builders.agents import a_run, metrics
from tests.builders.observations import an_outcome
from tests.builders.specs import a_job


async def test_times_are_counted_from_the_claim() -> None:
    run = a_run(a_job(deadline_s=30), claimed_at=100.0)
    run.start(100.5)
    envelopes = SealedEnvelopes(Scrubber(), agent_id="agent-1", meter=metrics())
    result = (await envelopes.seal(run, an_outcome(), ended_at=102.0)).result
    assert (result.started_after_s, result.took_s) == (0.5, 1.5)
    assert result.started_at == run.started_on
    assert run.deadline_at == 130.5


async def test_a_secret_of_the_agent_is_taken_out_and_counted() -> None:
    meter = metrics()
    run = a_run()
    run.start(0.0)
    line = LogLine(after_ms=0, level="INFO", message="the password is hunter2-hunter2")
    envelopes = SealedEnvelopes(Scrubber(["hunter2-hunter2"]), agent_id="agent-1", meter=meter)
    result = (await envelopes.seal(run, an_outcome(log=(line,)), ended_at=1.0)).result
    assert "hunter2" not in result.outcome.log[0].message
    assert b"picket_agent_scrub_replacements_total 1.0" in meter.text()


async def test_a_secret_that_the_run_came_upon_is_taken_out() -> None:
    run = a_run()
    run.start(0.0)
    run.workspace.keep_secret("fresh-t0ken")
    run.workspace.keep_secret("fresh-t0ken")
    line = LogLine(after_ms=0, level="INFO", message="logged in with fresh-t0ken")
    envelopes = SealedEnvelopes(Scrubber(), agent_id="agent-1", meter=metrics())
    result = (await envelopes.seal(run, an_outcome(log=(line,)), ended_at=1.0)).result
    assert "fresh-t0ken" not in result.outcome.log[0].message
    assert run.workspace.secrets == ("fresh-t0ken",)
