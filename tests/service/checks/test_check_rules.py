import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.checks import CheckType
from service.checks.rules import (
    frequency_problem,
    offset_problem,
    phase_problem,
    property_problem,
    unsupported_problem,
)
from service.checks.types.registry import TYPES

MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440]


@given(st.sampled_from(MINUTES), st.integers(-10, 2000))
def test_an_offset_within_the_rules_and_no_other_is_taken(frequency: int, offset: int) -> None:
    most = math.floor(frequency * 10) if frequency <= 60 else math.ceil(frequency / 60)
    assert (offset_problem(frequency, offset) is None) == (1 <= offset <= most)


@pytest.mark.parametrize("frequency", MINUTES)
def test_an_offset_may_be_left_out_from_a_minute_on(frequency: int) -> None:
    assert offset_problem(frequency, None) is None


@given(st.integers(-5, 100))
def test_below_a_minute_the_offset_is_10_20_or_30(offset: int) -> None:
    assert (offset_problem(0, offset) is None) == (offset in (10, 20, 30))


def test_below_a_minute_the_offset_is_needed() -> None:
    assert offset_problem(0, None) == (
        "is missing; with frequency 0 use 10, 20 or 30 (seconds between runs)"
    )


def test_a_wrong_offset_is_told_what_to_use() -> None:
    assert offset_problem(2, 21) == "is 21; with frequency 2 use 1 to 20"
    assert offset_problem(720, 13) == "is 13; with frequency 720 use 1 to 12"


@pytest.mark.parametrize("source", ["JSON_BODY", "JSON_ANSWER", "JSON_RESPONSE"])
def test_a_jsonpath_begins_with_a_dollar(source: str) -> None:
    assert property_problem(source, "$.a") is None
    assert property_problem(source, "a.b") == "must be a JSONPath that begins with $"
    assert property_problem(source, "") is not None


def test_a_header_assertion_names_its_header() -> None:
    assert property_problem("HEADERS", "content-type") is None
    assert property_problem("HEADERS", " ") == "must name a header"


@pytest.mark.parametrize("empty", [None, 0, "", [], {}, False])
def test_an_empty_field_of_a_later_feature_is_harmless(empty: object) -> None:
    assert (
        unsupported_problem({"localSetupScript": empty}, TYPES[CheckType.URL].write.refused) is None
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("assertions", [{"source": "STATUS_CODE"}]),
        ("variables", {"A": "b"}),
    ],
)
def test_what_would_silently_not_work_is_refused(field: str, value: object) -> None:
    for kind in CheckType:
        found = unsupported_problem({field: value}, TYPES[kind].write.refused)
        assert found is not None
        assert found[0] == field


@pytest.mark.parametrize(
    "field", ["setupSnippetId", "tearDownSnippetId", "localSetupScript", "localTearDownScript"]
)
def test_only_api_checks_have_phases(field: str) -> None:
    for kind in CheckType:
        found = unsupported_problem({field: "1"}, TYPES[kind].write.refused)
        assert (found is None) == (kind is CheckType.API)


@pytest.mark.parametrize("kind", [CheckType.BROWSER, CheckType.MULTI_STEP, CheckType.PLAYWRIGHT])
def test_a_script_says_itself_what_must_fail(kind: CheckType) -> None:
    found = unsupported_problem({"shouldFail": True}, TYPES[kind].write.refused)
    assert found is not None
    assert found[0] == "shouldFail"
    assert unsupported_problem({"shouldFail": False}, TYPES[kind].write.refused) is None


def test_a_suite_retries_by_itself() -> None:
    strategy = {"retryStrategy": {"type": "FIXED"}}
    assert unsupported_problem(strategy, TYPES[CheckType.BROWSER].write.refused) is None
    assert unsupported_problem(strategy, TYPES[CheckType.PLAYWRIGHT].write.refused) is not None


def test_a_phase_has_one_script() -> None:
    assert phase_problem("localSetupScript", script="1", snippet_id=None) is None
    assert phase_problem("localSetupScript", script=None, snippet_id=1) is None
    found = phase_problem("localSetupScript", script="1", snippet_id=1)
    assert found == "conflicts with localSetupScript; use one of them"


def test_frequency_0_is_told_whose_it_is() -> None:
    assert frequency_problem(0) == "is 0, which only API and TCP checks may have; use 1 or more"


@pytest.mark.parametrize("other", [1, 3, "0", None])
def test_what_else_a_frequency_may_be_is_no_matter_of_that_rule(other: object) -> None:
    assert frequency_problem(other) is None
