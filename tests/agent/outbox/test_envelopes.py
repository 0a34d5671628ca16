"""Envelopes: the job's ids, the run's times, no secret."""

import asyncio
import base64
import threading
from typing import Any

import pytest
import re2

from agent.outbox.redact import ResultRedactor
from contract.result import LogLine
from redaction.clean import Clean
from redaction.result import Scrubber
from tests.builders.agents import a_run, metrics
from tests.builders.observations import an_outcome
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job, a_secret


async def test_times_are_counted_from_the_claim() -> None:
    run = a_run(a_job(deadline_s=30), claimed_at=100.0)
    run.start(100.5)
    envelopes = ResultRedactor(Scrubber(), agent_id="agent-1", metrics=metrics())
    result = (await envelopes.redact(run, an_outcome(), ended_at=102.0)).result
    assert (result.started_after_s, result.took_s) == (0.5, 1.5)
    assert result.started_at == run.started_on
    assert run.deadline_at == 130.5


async def test_a_secret_of_the_agent_is_taken_out_and_counted() -> None:
    meter = metrics()
    run = a_run()
    run.start(0.0)
    line = LogLine(after_ms=0, level="INFO", message="the password is hunter2-hunter2")
    envelopes = ResultRedactor(Scrubber(["hunter2-hunter2"]), agent_id="agent-1", metrics=meter)
    result = (await envelopes.redact(run, an_outcome(log=(line,)), ended_at=1.0)).result
    assert "hunter2" not in result.outcome.log[0].message
    assert b"picket_agent_scrub_replacements_total 1.0" in meter.text()


async def test_a_secret_that_the_run_came_upon_is_taken_out() -> None:
    run = a_run()
    run.start(0.0)
    run.workspace.add_secret("fresh-t0ken")
    run.workspace.add_secret("fresh-t0ken")
    line = LogLine(after_ms=0, level="INFO", message="logged in with fresh-t0ken")
    envelopes = ResultRedactor(Scrubber(), agent_id="agent-1", metrics=metrics())
    result = (await envelopes.redact(run, an_outcome(log=(line,)), ended_at=1.0)).result
    assert "fresh-t0ken" not in result.outcome.log[0].message
    assert run.workspace.secrets == ("fresh-t0ken",)


async def test_of_a_run_whose_secrets_are_not_all_known_only_the_verdict_leaves() -> None:
    meter, run = metrics(), a_run()
    run.start(0.0)
    run.workspace.mark_facts_lost()
    line = LogLine(after_ms=0, level="INFO", message="logged in with fresh-t0ken")
    envelopes = ResultRedactor(Scrubber(), agent_id="agent-1", metrics=meter)
    outcome = an_outcome(log=(line,))
    clean = await envelopes.redact(run, outcome, ended_at=1.0)
    assert b"fresh-t0ken" not in clean.body
    assert clean.result.outcome.status == outcome.status
    (said,) = clean.result.outcome.log
    assert "may have set unknown secrets" in said.message
    assert b"picket_agent_scrub_refusals_total 1.0" in meter.text()


async def test_the_loop_goes_on_while_secrets_are_looked_for() -> None:
    may_end = threading.Event()

    class Slow(Scrubber):
        def clean(self, *given: Any, **named: Any) -> Clean:
            assert may_end.wait(LONG_S)
            return super().clean(*given, **named)

    envelopes = ResultRedactor(Slow(["hunter2-hunter2"]), agent_id="agent-1", metrics=metrics())
    sealing = asyncio.create_task(envelopes.redact(a_run(), an_outcome(), ended_at=1.0))
    await asyncio.sleep(0)  # the loop turns: the search does not hold it
    may_end.set()
    await sealing
    envelopes.close()


async def test_expressions_are_compiled_beside_the_loop_and_once_for_a_set_of_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    envelopes = ResultRedactor(Scrubber(), agent_id="agent-1", metrics=metrics())
    compiling_threads: list[int] = []
    really_compile = re2.compile

    def compile_and_note(*given: Any) -> Any:
        compiling_threads.append(threading.get_ident())
        return really_compile(*given)

    monkeypatch.setattr(re2, "compile", compile_and_note)
    secret = a_secret(value="0nly-in-this-test")
    written = base64.b64encode(secret.value.encode()).decode()
    line = LogLine(after_ms=0, level="INFO", message=f"{secret.value} {written}")
    run = a_run(a_job(variables=(secret,)))
    await envelopes.redact(run, an_outcome(log=(line,)), ended_at=1.0)
    compiled = len(compiling_threads)
    await envelopes.redact(run, an_outcome(log=(line,)), ended_at=2.0)
    assert 0 < compiled == len(compiling_threads)
    assert threading.get_ident() not in compiling_threads
    envelopes.close()


async def test_a_result_without_secrets_waits_for_no_thread() -> None:
    class Refusing(Scrubber):
        def clean(self, *_: Any, **__: Any) -> Clean:
            raise AssertionError("searched")

    envelopes = ResultRedactor(Refusing(), agent_id="agent-1", metrics=metrics())
    await envelopes.redact(a_run(), an_outcome(), ended_at=1.0)
