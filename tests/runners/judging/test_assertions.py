from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.assertions import Assertion, AssertionResult, Comparison, Source
from runners.judging.assertions import ACTUAL_LIMIT_BYTES, evaluate
from runners.runner import Fact, Fields, JsonText, Number, Numbers, Text
from tests.builders.specs import an_assertion

C, S = Comparison, Source
BODY = '{"user": {"name": "Ada", "tags": ["a", "b"]}, "prices": [5, 7, 9], "none": null}'
FACTS: dict[Source, Fact] = {
    S.STATUS_CODE: Number(200.0),
    S.RESPONSE_TIME: Number(129.71),
    S.JSON_BODY: JsonText(BODY),
    S.TEXT_BODY: Text("build 1234 of 2026"),
    S.HEADERS: Fields({"content-type": "text/html; charset=utf-8", "set-cookie": "id=s3cr3t"}),
    S.LATENCY: Numbers({"avg": 2.5, "min": 1.0}),
}


def evaluated(
    source: Source,
    comparison: Comparison,
    target: str = "",
    facts: dict[Source, Fact] = FACTS,
    **more: Any,
) -> AssertionResult:
    assertion = Assertion(source=source, comparison=comparison, target=target, **more)
    (result,) = evaluate([assertion], facts)
    return result


@pytest.mark.parametrize(
    ("source", "property_", "comparison", "target", "actual"),
    [
        (S.STATUS_CODE, "", C.EQUALS, "200", "200"),
        (S.RESPONSE_TIME, "", C.LESS_THAN, "130", "129.71"),
        (S.JSON_BODY, "$.user.name", C.EQUALS, "Ada", "Ada"),
        (S.JSON_BODY, "$.prices[*]", C.GREATER_THAN, "4", "[5,7,9]"),
        (S.JSON_BODY, "$.prices.length", C.EQUALS, "3", "3"),
        (S.JSON_BODY, "$.user", C.HAS_KEY, "tags", '{"name":"Ada","tags":["a","b"]}'),
        (S.JSON_BODY, "", C.HAS_KEY, "user", None),
        (S.JSON_BODY, "$.none", C.IS_NULL, "", "null"),
        (S.JSON_BODY, "$.missing", C.IS_NULL, "", None),
        (S.JSON_BODY, "$.missing", C.IS_EMPTY, "", None),
        (S.TEXT_BODY, "", C.CONTAINS, "1234", "build 1234 of 2026"),
        (S.TEXT_BODY, r"build (\d+)", C.EQUALS, "1234", "1234"),
        (S.TEXT_BODY, r"build (\d+)", C.GREATER_THAN, "1000", "1234"),
        (S.TEXT_BODY, r"\d+", C.EQUALS, "1234", "1234"),
        (S.TEXT_BODY, r"error: (.*)", C.IS_EMPTY, "", None),
        (S.HEADERS, "Content-Type", C.CONTAINS, "html", "text/html; charset=utf-8"),
        (S.HEADERS, " content-type ", C.NOT_EMPTY, "", "text/html; charset=utf-8"),
        (S.HEADERS, "x-none", C.IS_NULL, "", None),
        (S.HEADERS, "", C.HAS_KEY, "content-type", None),
        (S.LATENCY, "avg", C.LESS_THAN, "3", "2.5"),
    ],
)
def test_an_assertion_that_holds_shows_what_was_compared(
    source: Source, property_: str, comparison: Comparison, target: str, actual: str | None
) -> None:
    result = evaluated(source, comparison, target, property=property_)
    assert result.error is None
    if source is not S.JSON_BODY or property_:
        assert actual in (result.actual, None)


@pytest.mark.parametrize(
    ("source", "property_", "comparison", "target", "error"),
    [
        (S.STATUS_CODE, "", C.EQUALS, "201", "STATUS_CODE should equal 201, but it is 200."),
        (
            S.STATUS_CODE,
            "",
            C.EQUALS,
            "OK",
            (
                "STATUS_CODE should equal `OK`, but it is 200 "
                "(the value is a number, and the target is not)."
            ),
        ),
        (
            S.JSON_BODY,
            "$.prices[*]",
            C.GREATER_THAN,
            "6",
            "JSON_BODY `$.prices[*]` should be greater than 6, but value 1 of 3 is 5.",
        ),
        (
            S.JSON_BODY,
            "$.missing",
            C.NOT_EQUALS,
            "x",
            "JSON_BODY `$.missing` should not equal `x`, but there is no such value.",
        ),
        (
            S.HEADERS,
            "x-none",
            C.NOT_CONTAINS,
            "x",
            "HEADERS `x-none` should not contain `x`, but there is no such value.",
        ),
        (
            S.LATENCY,
            "max",
            C.LESS_THAN,
            "1",
            "LATENCY `max` cannot be evaluated: there is no max, only avg, min.",
        ),
        (
            S.RESPONSE_CODE,
            "",
            C.EQUALS,
            "NOERROR",
            "RESPONSE_CODE cannot be evaluated: this run recorded no such value.",
        ),
    ],
)
def test_an_assertion_that_does_not_hold_says_why(
    source: Source, property_: str, comparison: Comparison, target: str, error: str
) -> None:
    assert evaluated(source, comparison, target, property=property_).error == error


@pytest.mark.parametrize("comparison", C)
def test_where_there_is_no_value_only_its_absence_can_be_asserted(comparison: Comparison) -> None:
    holds = comparison in (C.IS_NULL, C.IS_EMPTY)
    for source, property_ in [(S.JSON_BODY, "$.nope"), (S.HEADERS, "nope"), (S.TEXT_BODY, "nope")]:
        result = evaluated(source, comparison, "", property=property_)
        assert (result.error is None) == holds
        assert result.actual is None


@pytest.mark.parametrize("comparison", C)
@pytest.mark.parametrize(
    ("source", "more"),
    [
        (S.JSON_BODY, {"property": "$.["}),
        (S.JSON_BODY, {"property": "user"}),
        (S.TEXT_BODY, {"property": "("}),
        (S.TEXT_BODY, {"property": "(?=x)"}),
        (S.HEADERS, {"property": "content-type", "regex": "["}),
        (S.LATENCY, {"property": "median"}),
        (S.LATENCY, {}),
        (S.TEXT_ANSWER, {}),
    ],
)
def test_what_cannot_be_evaluated_never_holds(
    comparison: Comparison, source: Source, more: dict[str, str]
) -> None:
    result = evaluated(source, comparison, "x", **more)
    assert result.error is not None
    assert "cannot be evaluated" in result.error
    assert result.actual is None


@pytest.mark.parametrize("text", ["", "{", "<html>", '{"a":1}x', "NaN", "[" * 100_000])
def test_a_body_that_is_no_json_fails_its_assertions(text: str) -> None:
    result = evaluated(
        S.JSON_BODY, C.NOT_EQUALS, "x", {S.JSON_BODY: JsonText(text)}, property="$.a"
    )
    assert result.error is not None


def test_a_body_that_may_not_be_read_says_why() -> None:
    fact = JsonText(BODY, unreadable_because="the content type is text/html, which is not JSON.")
    result = evaluated(S.JSON_BODY, C.NOT_EMPTY, "", {S.JSON_BODY: fact}, property="$.user")
    assert result.error == (
        "JSON_BODY `$.user` cannot be evaluated: the content type is text/html, which is not JSON."
    )


@pytest.mark.parametrize("body", [r'{"a": "\ud800", "b": 7}', '{"a": 1e400, "b": 7}'])
def test_one_odd_value_leaves_the_rest_of_a_document_readable(body: str) -> None:
    facts: dict[Source, Fact] = {S.JSON_BODY: JsonText(body)}
    assert evaluated(S.JSON_BODY, C.EQUALS, "7", facts, property="$.b").error is None
    assert evaluated(S.JSON_BODY, C.NOT_NULL, facts=facts, property="$.a").error is None
    whole = evaluated(S.JSON_BODY, C.HAS_KEY, "c", facts, property="$")
    assert whole.error is not None
    msgspec.json.encode(whole)


def test_half_a_surrogate_pair_is_a_character_and_shown_as_json_writes_it() -> None:
    facts: dict[Source, Fact] = {S.JSON_BODY: JsonText(r'["\ud800x", "\ud83d\ude00"]')}
    result = evaluated(S.JSON_BODY, C.CONTAINS, "x", facts, property="$[0]")
    assert (result.error, result.actual) == (None, r"\ud800x")
    assert evaluated(S.JSON_BODY, C.EQUALS, "😀", facts, property="$[1]").error is None
    assert evaluated(S.JSON_BODY, C.EQUALS, r'["\ud800x","😀"]', facts, property="$").error is None


@pytest.mark.parametrize(
    ("number", "comparison", "target", "holds"),
    [
        ("1e400", C.GREATER_THAN, "5", True),
        ("-1e400", C.LESS_THAN, "5", True),
        ("1e400", C.EQUALS, "1e400", True),
        ("1e400", C.EQUALS, "1e401", False),
        ("1e400", C.NOT_EQUALS, "1.5e400", True),
        ("1e9999", C.GREATER_THAN, "1e400", True),
        ("1e9999999999999999999999", C.GREATER_THAN, "1e400", True),
        ("9" * 5000, C.GREATER_THAN, "1e400", True),
        ("1e-400", C.EQUALS, "0", True),
    ],
)
def test_a_number_that_no_float_holds_is_a_number(
    number: str, comparison: Comparison, target: str, *, holds: bool
) -> None:
    facts: dict[Source, Fact] = {S.JSON_BODY: JsonText(f'{{"n": {number}}}')}
    result = evaluated(S.JSON_BODY, comparison, target, facts, property="$.n")
    assert (result.error is None) == holds
    msgspec.json.encode(result)


@pytest.mark.parametrize("text", ['{"a": NaN, "b": 1e400}', '{"a": Infinity}', '[1e400, "'])
def test_what_is_no_json_stays_none_beside_an_odd_value(text: str) -> None:
    facts: dict[Source, Fact] = {S.JSON_BODY: JsonText(text)}
    result = evaluated(S.JSON_BODY, C.NOT_NULL, facts=facts, property="$")
    assert "it is not JSON" in (result.error or "")


@pytest.mark.parametrize("name", ["X-Powered-By", "x-powered-by", "X-POWERED-BY"])
@pytest.mark.parametrize(("comparison", "holds"), [(C.HAS_KEY, True), (C.NOT_HAS_KEY, False)])
def test_the_name_of_a_header_has_no_case(
    name: str, comparison: Comparison, *, holds: bool
) -> None:
    facts: dict[Source, Fact] = {S.HEADERS: Fields({"x-powered-by": "php"})}
    assert (evaluated(S.HEADERS, comparison, name, facts).error is None) == holds
    assert evaluated(S.HEADERS, C.EQUALS, "php", facts, property=name).error is None
    assert evaluated(S.HEADERS, C.EQUALS, f'{{"{name}": "php"}}', facts).error is None
    assert evaluated(S.HEADERS, C.NOT_EQUALS, f'{{"{name}": "php"}}', facts).error is not None


def test_the_value_of_a_sensitive_header_is_among_those_compared() -> None:
    assert evaluated(S.HEADERS, C.HAS_VALUE, "id=s3cr3t").error is None
    there = evaluated(S.HEADERS, C.NOT_HAS_VALUE, "id=s3cr3t")
    assert there.error is not None
    assert "id=s3cr3t" not in there.error.removeprefix(
        "HEADERS should not have the value `id=s3cr3t`"
    )
    assert "s3cr3t" not in (there.actual or "")


CUT: dict[Source, Fact] = {S.TEXT_BODY: Text("build 12", read_bytes=8)}


@pytest.mark.parametrize(
    ("property_", "comparison", "target", "holds"),
    [
        ("", C.CONTAINS, "build", True),
        ("", C.NOT_EMPTY, "", True),
        ("", C.NOT_EQUALS, "other", True),
        ("(b.*d)", C.EQUALS, "build", True),
        ("", C.CONTAINS, "later", False),
        ("", C.NOT_CONTAINS, "build", False),
        ("", C.EQUALS, "build 12", False),
    ],
)
def test_what_the_beginning_of_a_text_decides_is_decided(
    property_: str, comparison: Comparison, target: str, *, holds: bool
) -> None:
    result = evaluated(S.TEXT_BODY, comparison, target, CUT, property=property_)
    assert (result.error is None) == holds
    assert holds or "irst 8 bytes" in (result.error or "")


@pytest.mark.parametrize(
    ("property_", "comparison", "target"),
    [
        ("", C.NOT_CONTAINS, "error"),
        ("", C.EQUALS, "build 123"),
        ("", C.NOT_EQUALS, "build 123"),
        ("error", C.IS_NULL, ""),
        ("error", C.IS_EMPTY, ""),
        (r"build (\d+)", C.EQUALS, "12"),
        (r"build (\d+)", C.LESS_THAN, "100"),
    ],
)
def test_what_the_rest_of_a_text_may_decide_otherwise_does_not_hold(
    property_: str, comparison: Comparison, target: str
) -> None:
    result = evaluated(S.TEXT_BODY, comparison, target, CUT, property=property_)
    assert "longer than the first 8 bytes, which were read and do not decide it" in (
        result.error or ""
    )


def test_nothing_measured_is_told() -> None:
    result = evaluated(S.LATENCY, C.LESS_THAN, "5", {S.LATENCY: Numbers({})}, property="avg")
    assert result.error == "LATENCY `avg` cannot be evaluated: nothing was measured."


def test_a_document_nested_too_deeply_fails_instead_of_crashing() -> None:
    deep = "[" * 900 + "]" * 900
    result = evaluated(S.JSON_BODY, C.EQUALS, deep, {S.JSON_BODY: JsonText(deep)}, property="$")
    assert result.actual is not None or result.error is not None


def test_a_header_is_compared_by_the_first_group_of_its_regex() -> None:
    result = evaluated(S.HEADERS, C.EQUALS, "utf-8", property="content-type", regex="charset=(.+)")
    assert (result.error, result.actual) == (None, "utf-8")


@pytest.mark.parametrize("name", ["set-cookie", "Set-Cookie ", ""])
def test_a_sensitive_header_is_compared_but_never_shown(name: str) -> None:
    for comparison in (C.CONTAINS, C.NOT_CONTAINS, C.EQUALS, C.HAS_KEY, C.NOT_HAS_KEY):
        result = evaluated(S.HEADERS, comparison, "id=", property=name)
        assert "s3cr3t" not in f"{result.actual} {result.error}"
    assert evaluated(S.HEADERS, C.CONTAINS, "s3cr3t", property="set-cookie").error is None


def test_assertions_are_evaluated_in_order_and_keep_their_definition() -> None:
    assertions = [
        Assertion(source=S.STATUS_CODE, comparison=C.EQUALS, target="500"),
        Assertion(source=S.JSON_BODY, comparison=C.EQUALS, property="$.user.name", target="Ada"),
        Assertion(source=S.JSON_BODY, comparison=C.CONTAINS, property="$.user.tags", target="b"),
        Assertion(source=S.HEADERS, comparison=C.NOT_NULL, property="Content-Type", regex="(.)"),
    ]
    results = evaluate(assertions, FACTS)
    assert [result.order for result in results] == [0, 1, 2, 3]
    assert [result.error is None for result in results] == [False, True, True, True]
    for assertion, result in zip(assertions, results, strict=True):
        for field in ("source", "comparison", "property", "target", "regex"):
            assert getattr(result, field) == getattr(assertion, field)


def test_no_assertions_give_no_results() -> None:
    assert evaluate((), FACTS) == ()


@pytest.mark.parametrize("text", ["x" * 20_000, "é" * 20_000, "😀" * 5_000])
def test_what_was_compared_is_cut_to_ten_kilobytes(text: str) -> None:
    result = evaluated(S.TEXT_BODY, C.EQUALS, "y", {S.TEXT_BODY: Text(text)})
    assert result.actual is not None
    assert len(result.actual.encode()) in range(ACTUAL_LIMIT_BYTES - 3, ACTUAL_LIMIT_BYTES + 1)
    assert text.startswith(result.actual)
    assert result.error is not None
    assert len(result.error) < 500


def test_a_long_text_within_the_limit_is_not_cut() -> None:
    text = "x" * ACTUAL_LIMIT_BYTES
    assert evaluated(S.TEXT_BODY, C.EQUALS, text, {S.TEXT_BODY: Text(text)}).actual == text


@given(
    st.sampled_from(S),
    st.sampled_from(C),
    st.text(),
    st.text() | st.from_regex(r"\$(\.[a-z*]+|\[[^a]\]){0,3}", fullmatch=True),
    st.none() | st.text(),
    st.text() | st.just(BODY),
)
def test_no_assertion_breaks_the_evaluation(  # noqa: PLR0917 - hypothesis passes each
    source: Source,
    comparison: Comparison,
    target: str,
    property_: str,
    regex: str | None,
    body: str,
) -> None:
    facts: dict[Source, Fact] = {
        **FACTS,
        S.JSON_BODY: JsonText(body),
        S.TEXT_BODY: Text(body),
        S.HEADERS: Fields({property_.strip().lower(): body}),
    }
    result = evaluated(source, comparison, target, facts, property=property_, regex=regex)
    assert result.error is None or result.error.endswith(".")


@pytest.mark.parametrize(
    ("source", "name", "fact", "error"),
    [
        (S.RESPONSE_TIME, "", Number(12.5), "should be less than 1 ms, but it is 12.5 ms."),
        (S.LATENCY, "avg", Numbers({"avg": 3}), "should be less than 1 ms, but it is 3 ms."),
        (S.DAYS_TO_EXPIRY, "", Number(9.996653087), "less than 1 days, but it is 9.99 days."),
        (S.DAYS_TO_EXPIRY, "", Number(-0.001), "than -1 days, but it is -0.01 days."),
        (S.STATUS_CODE, "", Number(200), "should be less than 1, but it is 200."),
    ],
)
def test_what_is_measured_has_its_unit(source: Source, name: str, fact: Fact, error: str) -> None:
    target = "-1" if "-1" in error else "1"
    told = an_assertion(source, C.LESS_THAN, target, property=name)
    (result,) = evaluate([told], {source: fact})
    assert result.error is not None
    assert result.error.endswith(error)


def test_a_value_of_several_is_named_by_its_position() -> None:
    facts = {S.JSON_BODY: JsonText('{"nodes": [{"state": "up"}, {"state": "down"}]}')}
    told = an_assertion(S.JSON_BODY, C.EQUALS, "up", property="$.nodes[*].state")
    (result,) = evaluate([told], facts)
    assert result.error == (
        "JSON_BODY `$.nodes[*].state` should equal `up`, but value 2 of 2 is `down`."
    )


def test_broken_json_is_said_to_be_once() -> None:
    told = an_assertion(S.JSON_BODY, C.NOT_NULL, property="$.a")
    (result,) = evaluate([told], {S.JSON_BODY: JsonText("{oops")})
    assert result.error is not None
    assert result.error.count("JSON") == len(["JSON_BODY", "not JSON"])
