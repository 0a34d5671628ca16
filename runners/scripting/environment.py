"""Environment variables by which scripts of all types know their run. Pure.

`RUNTIME_VERSION` comes with the runtime. There is no variable for what an agent does not know: the
id that the service will give the result, and the public addresses of its network.
"""

from contract.checks import PlaywrightSpec, check_type
from contract.job import TEST_SOURCES, Job, RunSource

_BY_SCHEDULE = frozenset({RunSource.SCHEDULER})


def build_job_environment(job: Job) -> dict[str, str]:
    """Build the generic variables of a run that a service requested."""
    known = {**build_local_environment(job), "CHECK_ID": job.check_id}
    if job.account_id is not None:
        known["ACCOUNT_ID"] = job.account_id
    if job.run_source in _BY_SCHEDULE:
        known["CHECK_RUN_ID"] = job.run_id
    return (
        {**known, **_build_suite_environment(job)}
        if isinstance(job.spec, PlaywrightSpec)
        else known
    )


def build_local_environment(job: Job) -> dict[str, str]:
    """Build the generic variables of a run without a service, which has no ids."""
    return {
        "CHECK_NAME": job.check_name,
        "CHECK_TYPE": check_type(job.spec).value,
        "REGION": job.location,
    }


def _build_suite_environment(job: Job) -> dict[str, str]:
    known = {
        "SERVICE_CHECK_ID": job.check_id,
        "SERVICE_REGION": job.location,
        "SERVICE_RUN_SOURCE": job.run_source.value,
    }
    return {**known, "CI": "true"} if job.run_source in TEST_SOURCES else known
