"""Where the secrets of a run come from, in words for those who set it up. Pure."""

from collections.abc import Iterator
from typing import Final

from contract.job import Job
from runners.kit.secrets.job_secrets import in_variable, is_secret, secrets_of, usable

_MOST_NAMES: Final = 5
_MOST_CHARS: Final = 60


def secret_sources(job: Job, *, found: tuple[str, ...], of_agent: bool) -> str:
    """What would have to go for there to be no secrets; names, never values.

    `found`: secrets that the run came upon. `of_agent`: whether it has some of its own.
    """
    sources = [*_of_check(job)]
    if usable(found):
        sources.append("what the script keeps in SERVICE_SECRET_*")
    if of_agent:
        sources.append("SERVICE_SECRET_* in the agent's environment")
    return ", ".join(sources)


def _of_check(job: Job) -> Iterator[str]:
    secret = [one for one in job.variables if is_secret(one)]
    names = [one.key[:_MOST_CHARS] for one in secret if usable([one.value])]
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        yield f"the check's secret variables ({', '.join(names[:_MOST_NAMES])}{more})"
    known = {value for one in secret for value in in_variable(one)}
    if usable(value for value in secrets_of(job) if value not in known):
        yield "passwords and keys of the check's request, proxy or client certificates"
