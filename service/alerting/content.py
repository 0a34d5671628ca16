"""What an alert says: the facts of a result, put for people. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from contract.evidence import HttpEvidence, SeenResponse
from contract.result import FailureKind, Outcome
from service.alerting.model import Alert, AlertType, Certificate, Level, Mismatch, Places, Round
from service.alerting.rules import judge_round
from service.checks.model import CheckTerms
from service.results.model import FinalRun, RunStatus, StoredResult

LEVELS: Final[Mapping[RunStatus, Level]] = {
    RunStatus.PASSED: Level.PASSING,
    RunStatus.DEGRADED: Level.DEGRADED,
    RunStatus.FAILED: Level.FAILING,
    RunStatus.TIMED_OUT: Level.FAILING,
}
"""By the statuses that judge the target; the others, MISSED among them, say nothing about it."""
_MOST_LETTERS: Final = 1_000
"""The most that an alert has of an expected or actual value; the result has the whole."""
_PASSES: Final = frozenset(
    {AlertType.RECOVERY, AlertType.DEGRADED_RECOVERY, AlertType.SSL, AlertType.NO_ALERT}
)
"""Types of alerts that are about no failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Which alert it is, and what caused it."""

    id: str
    alert_type: AlertType
    reminder: int = 0
    started_ms: int
    created_ms: int
    check_id: str
    group_name: str | None = None
    """None: the check is in no group."""
    result: StoredResult | None
    """None: it is not stored any more."""
    certificate: Certificate | None = None
    """None: the alert is not about one."""


def build_alert(occasion: Occasion, terms: CheckTerms, places: Places) -> Alert:
    """The alert about a check, by the result that caused it."""
    result = occasion.result
    outcome = result.detail.outcome if result and result.detail else None
    response = _find_response(outcome)
    names_failure = occasion.alert_type not in _PASSES
    return Alert(
        id=occasion.id,
        account_id=terms.account_id,
        check_id=occasion.check_id,
        check_name=terms.name,
        check_type=terms.type,
        check_description=terms.doc.get("description"),
        tags=tuple(terms.doc.get("tags") or ()),
        group_id=terms.group_id,
        group_name=occasion.group_name,
        alert_type=occasion.alert_type,
        location=result.location if result else "",
        result_id=result.id if result else None,
        response_time_ms=result.response_time_ms if result else None,
        error=_find_error(outcome) if names_failure else None,
        mismatch=_find_mismatch(outcome) if names_failure else None,
        status_code=str(response.status_code) if response else None,
        status_text=response.status_text if response else None,
        started_ms=occasion.started_ms,
        created_ms=occasion.created_ms,
        failing_locations=places.failing,
        passing_locations=places.passing,
        last_pass_ms=places.last_pass_ms,
        reminder=occasion.reminder,
        certificate=occasion.certificate,
        artifacts=tuple(one.name for one in outcome.artifacts) if outcome else (),
    )


def find_decisive_run(
    newest_first: Iterable[FinalRun], *, expected: int, percentage: int
) -> FinalRun | None:
    """The run that shows how runs of one due time count together.

    `expected`: at how many locations there are such runs. None: it takes further results to say
    so, or nobody looked.
    """
    newest: dict[str, FinalRun] = {}
    for run in newest_first:
        newest.setdefault(run.location, run)
    looks = [run for run in newest.values() if run.status in LEVELS]
    known = Round(tuple(LEVELS[run.status] for run in looks), max(0, expected - len(newest)))
    level = judge_round(known, percentage)
    return next((run for run in looks if LEVELS[run.status] is level), None)


def find_places(newest_first: Iterable[FinalRun], *, last_pass_ms: int | None) -> Places:
    """How a check is doing at each location, by its newest results."""
    newest: dict[str, Level] = {}
    for run in newest_first:
        if run.status in LEVELS:
            newest.setdefault(run.location, LEVELS[run.status])
    passing = [slug for slug, level in newest.items() if level is Level.PASSING]
    return Places(
        failing=tuple(sorted(newest.keys() - set(passing))),
        passing=tuple(sorted(passing)),
        last_pass_ms=last_pass_ms,
    )


def _find_error(outcome: Outcome | None) -> str | None:
    if outcome is None:
        return None
    return outcome.failure.message if outcome.failure else outcome.degraded_because


def _find_mismatch(outcome: Outcome | None) -> Mismatch | None:
    """The first assertion that failed, unless the check failed for something else."""
    if outcome is None or (outcome.failure and outcome.failure.kind is not FailureKind.ASSERTION):
        return None
    for one in outcome.assertions:
        if one.error is not None:
            return Mismatch(
                source=one.source.value,
                property=one.property,
                comparison=one.comparison.value,
                expected=one.target[:_MOST_LETTERS],
                actual=(one.actual or "")[:_MOST_LETTERS],
            )
    return None


def _find_response(outcome: Outcome | None) -> SeenResponse | None:
    evidence = outcome.evidence if outcome else None
    return evidence.response if isinstance(evidence, HttpEvidence) else None
