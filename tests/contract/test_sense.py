import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.assertion_rules import assertion_problem, expression_of, path_of
from contract.assertions import JSON_SOURCES, OF_OBJECTS, Assertion, Comparison, Source
from contract.checks import SPEC_TYPES, CheckType
from runners.judging.comparisons import parse_number

S, C = Source, Comparison


def an_assertion(
    source: Source, comparison: Comparison, target: str = "", **more: str
) -> Assertion:
    return Assertion(source=source, comparison=comparison, target=target, **more)


@pytest.mark.parametrize(
    "assertion",
    [
        an_assertion(S.STATUS_CODE, C.EQUALS, "200"),
        an_assertion(S.STATUS_CODE, C.CONTAINS, "20"),
        an_assertion(S.STATUS_CODE, C.NOT_NULL),
        an_assertion(S.RESPONSE_TIME, C.LESS_THAN, "0.5e3"),
        an_assertion(S.RESPONSE_TIME, C.LESS_THAN, "{{LIMIT}}"),
        an_assertion(S.JSON_BODY, C.HAS_KEY, "id", property="$.order"),
        an_assertion(S.JSON_BODY, C.GREATER_THAN, "3", property="$.items.length"),
        an_assertion(S.HEADERS, C.HAS_KEY, "etag"),
        an_assertion(S.HEADERS, C.EQUALS, "1", property="x-count"),
        an_assertion(S.TEXT_BODY, C.IS_NULL, property="error"),
        an_assertion(S.STATUS_CODE, C.EQUALS, "200", property="", regex=""),
        an_assertion(S.HEADERS, C.EQUALS, "1", property="x-count", regex="(.)"),
        an_assertion(S.JSON_BODY, C.EQUALS, "1e400", property="$.n"),
    ],
)
def test_an_assertion_that_may_hold_is_taken(assertion: Assertion) -> None:
    assert assertion_problem(assertion, CheckType.API) is None


@pytest.mark.parametrize(
    ("assertion", "field", "words"),
    [
        (an_assertion(S.STATUS_CODE, C.HAS_KEY, "a"), "comparison", "STATUS_CODE takes CONTAINS,"),
        (an_assertion(S.TEXT_BODY, C.HAS_VALUE, "a"), "comparison", "TEXT_BODY takes CONTAINS,"),
        (
            an_assertion(S.HEADERS, C.NOT_HAS_KEY, "a", property="etag"),
            "comparison",
            "is NOT_HAS_KEY;",
        ),
        (an_assertion(S.STATUS_CODE, C.EQUALS, "2xx"), "target", "as STATUS_CODE is one"),
        (an_assertion(S.STATUS_CODE, C.EQUALS), "target", "must be a number"),
        (an_assertion(S.RESPONSE_TIME, C.LESS_THAN, "1_000"), "target", "must be a number"),
        (
            an_assertion(S.JSON_BODY, C.GREATER_THAN, "many", property="$.n"),
            "target",
            "as GREATER_THAN compares numbers",
        ),
        (an_assertion(S.STATUS_CODE, C.EQUALS, "200", property="$.a"), "property", "is a number"),
        (
            an_assertion(S.RESPONSE_TIME, C.LESS_THAN, "9", property="avg"),
            "property",
            "is a number",
        ),
        (
            an_assertion(S.JSON_BODY, C.EQUALS, "a", property="$", regex="(.)"),
            "regex",
            "JSON_BODY takes none",
        ),
        (an_assertion(S.TEXT_BODY, C.EQUALS, "a", regex="(.)"), "regex", "belongs in property"),
        (an_assertion(S.HEADERS, C.HAS_KEY, "etag", regex="(.)"), "regex", "name that in property"),
        (an_assertion(S.TEXT_BODY, C.NOT_EMPTY, "a"), "target", "NOT_EMPTY compares with nothing"),
    ],
)
def test_an_assertion_that_never_holds_or_has_a_field_without_effect_is_refused(
    assertion: Assertion, field: str, words: str
) -> None:
    found = assertion_problem(assertion, CheckType.API)
    assert found is not None
    assert found[0] == field
    assert words in found[1]


def test_url_and_tcp_checks_take_fewer_comparisons() -> None:
    of_url = assertion_problem(an_assertion(S.STATUS_CODE, C.CONTAINS, "2"), CheckType.URL)
    assert of_url == (
        "comparison",
        "is CONTAINS; a check of type URL takes EQUALS, GREATER_THAN, LESS_THAN, NOT_EQUALS",
    )
    of_tcp = assertion_problem(an_assertion(S.RESPONSE_DATA, C.IS_NULL), CheckType.TCP)
    assert of_tcp is not None


def test_latency_asserts_on_one_of_four_numbers() -> None:
    good = an_assertion(S.LATENCY, C.LESS_THAN, "20", property="stdDev")
    bad = an_assertion(S.LATENCY, C.LESS_THAN, "20", property="p99")
    assert assertion_problem(good, CheckType.ICMP) is None
    assert assertion_problem(bad, CheckType.ICMP) == (
        "property",
        "is p99; use avg, min, max or stdDev",
    )


@given(st.text(max_size=500) | st.from_regex(r"\A\s*[-+]?[0-9._e]{1,12}\s*\Z"))
def test_a_target_is_a_number_where_the_comparisons_read_one(target: str) -> None:
    problem = assertion_problem(an_assertion(S.STATUS_CODE, C.EQUALS, target), CheckType.API)
    if "{{" not in target:
        assert (problem is None) == (parse_number(target) is not None)


@pytest.mark.parametrize("target", ["9" * 400, "9" * 401, "-" + "9" * 399, "inf", "nan", "1e999"])
def test_a_number_without_end_is_read_alike(target: str) -> None:
    problem = assertion_problem(an_assertion(S.STATUS_CODE, C.EQUALS, target), CheckType.API)
    assert (problem is None) == (parse_number(target) is not None)


@pytest.mark.parametrize(
    "source", sorted(set[Source]().union(*(spec.sources for spec in SPEC_TYPES.values())))
)
def test_each_source_has_its_kind_of_property(source: Source) -> None:
    assertion = an_assertion(source, C.EQUALS, "1", property="$", regex="a")
    assert (path_of(assertion) == "$") == (source in JSON_SOURCES)
    expected = {S.HEADERS: ("regex", "a")} | dict.fromkeys(
        (
            *(S.TEXT_BODY, S.RESPONSE_DATA, S.TEXT_ANSWER, S.RESPONSE_CODE),
            *(S.REMOTE_ADDRESS, S.TLS_VERSION),
        ),
        ("property", "$"),
    )
    assert expression_of(assertion) == expected.get(source)


def test_an_expression_with_a_variable_is_not_judged() -> None:
    assert path_of(an_assertion(S.JSON_BODY, C.NOT_NULL, property="$.{{NAME}}")) is None
    assert expression_of(an_assertion(S.TEXT_BODY, C.NOT_NULL, property="({{NAME}}")) is None


def test_what_only_objects_have_is_asked_of_no_text() -> None:
    for comparison in OF_OBJECTS:
        found = assertion_problem(an_assertion(S.RESPONSE_DATA, comparison, "a"), CheckType.TCP)
        assert found is not None
