"""Nothing leaves unscanned: there is no other way to make what may leave."""

import re
from pathlib import Path
from typing import Any

import pytest

from agent.outbox.redact import ResultRedactor
from contract.result import Failure, FailureKind, LogLine, Status
from contract.wire import encode
from redaction.clean import Clean, CleanFile, LeakError, LeakGate, replace_outcome
from redaction.result import Scrubber
from tests.builders.agents import a_run, metrics
from tests.builders.observations import a_result, an_outcome
from tests.builders.specs import a_job, a_secret

ROOT = Path(__file__).parents[2]
SECRET = "hunter2-hunter2"


def said(message: str) -> Any:
    return a_result(outcome=an_outcome(log=(LogLine(after_ms=0, level="INFO", message=message),)))


def test_nobody_but_the_door_can_make_what_may_leave(tmp_path: Path) -> None:
    result = a_result()
    with pytest.raises(TypeError, match="only redaction"):
        Clean(result, encode(result))
    with pytest.raises(TypeError, match="only redaction"):
        CleanFile(tmp_path, None)  # type: ignore[arg-type]


def test_no_code_of_ours_asks_for_the_seal_or_goes_around_the_scanner() -> None:
    makers = re.compile(r"\b_SEAL\b|\bCleanFile\(|\bClean\(|structs\.replace\(clean,")
    trusted = re.compile(r"\b(?:pass_file|restore_clean|replace_outcome)\(")
    allowed = {
        "agent/outbox/redact.py", "agent/outbox/artifact_files.py", "agent/outbox/artifacts.py",
        "picket/run.py", "picket/scrub.py",
    }  # fmt: skip
    modules = [
        path
        for top in ("agent", "runners", "redaction", "sandbox", "picket")
        for path in (ROOT / top).rglob("*.py")
    ]
    code = {str(path.relative_to(ROOT)): path.read_text() for path in modules}
    door = code.pop("redaction/clean.py")
    assert makers.search(door)
    assert [name for name, text in code.items() if makers.search(text)] == []
    assert {name for name, text in code.items() if trusted.search(text)} == allowed


@pytest.mark.parametrize("left", [SECRET, "&#104;unter2-hunter2", "68756e746572322d68756e74657232"])
def test_a_result_that_holds_a_secret_does_not_pass(left: str) -> None:
    result = said(f"it says {left}")
    with pytest.raises(LeakError, match="secret found in result"):
        LeakGate().check(result, encode(result), secrets=(SECRET,))


def test_the_ids_of_the_service_are_not_looked_at() -> None:
    result = said("all is well")
    clean = LeakGate().check(result, encode(result), secrets=(result.job_id,))
    assert clean.body == encode(result)


def test_words_of_the_contract_are_no_leak() -> None:
    result = said("all is well")
    clean = LeakGate().check(result, encode(result), secrets=("INFO", "PASSED", "timings"))
    assert clean.result == result
    with pytest.raises(LeakError):
        LeakGate().check(said("INFO"), encode(said("INFO")), secrets=("INFO",))


def test_a_word_of_our_own_keeps_a_result_clean() -> None:
    result = said("all is well")
    clean = LeakGate().check(result, encode(result), secrets=(SECRET,))
    assert replace_outcome(clean, an_outcome()).result.outcome == an_outcome()


class Blind(Scrubber):
    """One that forgets to hide a form of the secrets."""

    def clean(
        self, result: Any, *, job: Any = None, found: tuple[str, ...] = (), **_: Any
    ) -> Clean:
        secrets = self.all_secrets(job, found)
        return LeakGate().check(result, encode(result), secrets=secrets)


async def test_where_the_scrubber_fails_the_verdict_stands_and_its_details_stay_here() -> None:
    meter = metrics()
    run = a_run(a_job(variables=(a_secret("TOKEN", SECRET),)))
    run.start(0.0)
    failure = Failure(kind=FailureKind.CONNECT, message=f"refused {SECRET}", detail={"a": SECRET})
    outcome = an_outcome(status=Status.FAILED, failure=failure, response_time_ms=12.5)
    envelopes = ResultRedactor(Blind(), agent_id="agent-1", metrics=meter)
    clean = await envelopes.redact(run, outcome, ended_at=1.0)
    assert SECRET.encode() not in clean.body
    left = clean.result.outcome
    assert (left.status, left.response_time_ms, left.evidence) == (Status.FAILED, 12.5, None)
    assert left.failure is not None
    assert left.failure.kind is FailureKind.CONNECT
    said = "The details of this result are withheld: secret found in result."
    assert (left.failure.message, left.log[-1].message) == (said, said)
    assert b'picket_agent_leaks_withheld_total{member="result"} 1.0' in meter.text()
