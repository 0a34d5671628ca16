"""Submissions of results: each read by itself, and what became of it told."""

from collections.abc import Sequence
from typing import Final

from contract import agent_api as wire
from contract.job import JobHead, Lease
from contract.result import Result
from contract.wire import UnreadableMessageError, decode
from service.http.errors import InvalidError
from service.jobs.model import fence_number, job_number
from service.results.ingest import Arrived, Verdict

_REASONS: Final = {
    Verdict.UNKNOWN_JOB: "there is no such job; its check may have been deleted",
    Verdict.FOREIGN_JOB: "the job is not one that this location was given for this check",
}


def arrived_of(place: int, body: bytes) -> Arrived | wire.Rejected:
    """A result, or why it will never be taken.

    Raises:
        InvalidError: not even its job can be read.
    """
    try:
        result = decode(body, Result)
    except UnreadableMessageError as problem:
        # At the top of a message the path is left out.
        where = str(problem) if "$" in str(problem) else f"{problem} - at `$`"
        reason = where.replace("$", f"$.results[{place}]", 1)
        try:
            head = decode(body, JobHead)
        except UnreadableMessageError:
            raise InvalidError(f"The body does not fit: {reason}", keys=()) from problem
        return wire.Rejected(job_id=head.job_id, fence=head.fence, reason=reason)
    if not fence_number(result.fence):
        return wire.Rejected(
            job_id=result.job_id, fence=result.fence, reason="the fence is none of this service's"
        )
    return Arrived(result, body, job_number(result.job_id))


def submission_answer(
    arrived: Sequence[Arrived], verdicts: Sequence[Verdict], rejected: Sequence[wire.Rejected]
) -> wire.SubmissionAnswer:
    """What became of each result of a submission, as its agent reads it."""
    by_verdict: dict[Verdict, list[Lease]] = {verdict: [] for verdict in Verdict}
    for one, verdict in zip(arrived, verdicts, strict=True):
        by_verdict[verdict].append(one.result.lease)
    refused = [
        wire.Rejected(job_id=lease.job_id, fence=lease.fence, reason=reason)
        for verdict, reason in _REASONS.items()
        for lease in by_verdict[verdict]
    ]
    return wire.SubmissionAnswer(
        accepted=tuple(by_verdict[Verdict.ACCEPTED]),
        duplicates=tuple(by_verdict[Verdict.DUPLICATE]),
        rejected=(*rejected, *refused),
    )
