"""What scripts learn of their run."""

import pytest

from contract.checks import CheckType
from contract.job import RunSource
from runners.kit.job_environment import job_environment, local_environment
from tests.builders.specs import a_job, a_spec_of


@pytest.mark.parametrize("source", RunSource)
def test_suites_learn_of_test_sessions_alone_that_they_run_in_ci(source: RunSource) -> None:
    job = a_job(a_spec_of(CheckType.PLAYWRIGHT), run_source=source)
    is_session = source in {RunSource.TEST_RECORD, RunSource.TEST_NO_RECORD}
    assert job_environment(job).get("CI") == ("true" if is_session else None)


def test_other_scripts_never_learn_of_ci() -> None:
    job = a_job(a_spec_of(CheckType.BROWSER), run_source=RunSource.TEST_RECORD)
    assert "CI" not in job_environment(job)


def test_a_run_without_a_service_has_no_ids() -> None:
    assert local_environment(a_job()) == {
        "CHECK_NAME": "Front page",
        "CHECK_TYPE": "URL",
        "REGION": "cellar",
    }
