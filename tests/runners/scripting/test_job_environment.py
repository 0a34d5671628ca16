"""What scripts learn of their run."""

import pytest

from contract.checks import CheckType
from contract.job import RunSource
from runners.scripting.environment import build_job_environment, build_local_environment
from tests.builders.specs import a_job, a_spec_of


@pytest.mark.parametrize("source", RunSource)
def test_suites_learn_of_test_sessions_alone_that_they_run_in_ci(source: RunSource) -> None:
    job = a_job(a_spec_of(CheckType.PLAYWRIGHT), run_source=source)
    is_session = source in {RunSource.TEST_RECORD, RunSource.TEST_NO_RECORD}
    assert build_job_environment(job).get("CI") == ("true" if is_session else None)


def test_other_scripts_never_learn_of_ci() -> None:
    job = a_job(a_spec_of(CheckType.BROWSER), run_source=RunSource.TEST_RECORD)
    assert "CI" not in build_job_environment(job)


def test_a_run_without_a_service_has_no_ids() -> None:
    assert build_local_environment(a_job()) == {
        "CHECK_NAME": "Front page",
        "CHECK_TYPE": "URL",
        "REGION": "cellar",
    }


def test_a_run_knows_whose_it_is_and_which() -> None:
    job = a_job(
        a_spec_of(CheckType.BROWSER),
        account_id="a-1",
        check_id="c-7",
        run_id="42",
        location="attic",
    )
    assert build_job_environment(job) == {
        "ACCOUNT_ID": "a-1",
        "CHECK_ID": "c-7",
        "CHECK_NAME": "Front page",
        "CHECK_RUN_ID": "42",
        "CHECK_TYPE": "BROWSER",
        "REGION": "attic",
    }


@pytest.mark.parametrize("source", [one for one in RunSource if one is not RunSource.SCHEDULER])
def test_a_run_that_somebody_asked_for_has_no_run_id(source: RunSource) -> None:
    job = a_job(a_spec_of(CheckType.API), run_source=source)
    assert "CHECK_RUN_ID" not in build_job_environment(job)


def test_of_a_service_that_does_not_tell_the_account_nothing_is_made_up() -> None:
    assert "ACCOUNT_ID" not in build_job_environment(a_job(account_id=None))


@pytest.mark.parametrize("source", RunSource)
def test_suites_learn_what_set_them_off(source: RunSource) -> None:
    spec = a_spec_of(CheckType.PLAYWRIGHT)
    seen = build_job_environment(a_job(spec, run_source=source, check_id="c-7", location="attic"))
    assert seen["SERVICE_RUN_SOURCE"] == source.value
    assert (seen["SERVICE_CHECK_ID"], seen["SERVICE_REGION"]) == ("c-7", "attic")


def test_other_scripts_do_not_get_the_names_of_suites() -> None:
    names = build_job_environment(a_job(a_spec_of(CheckType.BROWSER)))
    assert not [name for name in names if name.startswith("SERVICE")]
