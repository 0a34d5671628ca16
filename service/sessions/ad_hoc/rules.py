"""Jobs of a test session as clients send them, made whole; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from contract.scripts import size_bytes
from service.http.schema import field_error

MOST_BYTES: Final = 64 * 1024 * 1024
"""Files of all checks together: a file that a thousand checks import is stored a thousand times."""


def complete_jobs(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a run with the files that jobs name by number, and no references to groups.

    Raises:
        PydanticCustomError: a number leads to no file, or the files are too many together.
    """
    jobs, files = body.get("checkRunJobs"), body.get("sharedFiles")
    if not isinstance(jobs, list):
        return dict(body)
    shared = files if isinstance(files, list) else []
    sizes = [_size(file) for file in shared]
    used = sum(
        sizes[number] for job in jobs for _, number in _numbers(job) if 0 <= number < len(sizes)
    )
    if used > MOST_BYTES:
        raise field_error(
            "sharedFiles", f"come to {used} bytes with all checks; use at most {MOST_BYTES}"
        )
    return {**body, "checkRunJobs": [_complete(job, shared, at) for at, job in enumerate(jobs)]}


def _complete(job: Any, shared: Sequence[Any], at: int) -> Any:
    if not isinstance(job, dict):
        return job
    whole = dict(job)
    if isinstance(job.get("group"), Mapping) and isinstance(job.get("groupId"), Mapping):
        whole["groupId"] = None
    if numbers := dict(_numbers(job)):
        for place, number in numbers.items():
            if not 0 <= number < len(shared):
                raise field_error(
                    f"checkRunJobs[{at}].dependencies[{place}]",
                    f"is {number}, and sharedFiles has {len(shared)} files",
                )
        whole["dependencies"] = [
            shared[numbers[place]] if place in numbers else file
            for place, file in enumerate(job["dependencies"])
        ]
    return whole


def _numbers(job: Any) -> list[tuple[int, int]]:
    """Where the files of a job are numbers, and which."""
    files = job.get("dependencies") if isinstance(job, dict) else None
    return [
        (place, file)
        for place, file in enumerate(files if isinstance(files, list) else ())
        if isinstance(file, int) and not isinstance(file, bool)
    ]


def _size(file: Any) -> int:
    content = file.get("content") if isinstance(file, Mapping) else None
    return size_bytes(content) if isinstance(content, str) else 0
