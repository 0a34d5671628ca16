"""Which judgements would hold up the event loop."""

import pytest

from contract.assertions import Assertion, Comparison, Source
from contract.checks import ApiSpec, HeartbeatSpec
from runners.runner import HEAVY_CHARS, Fact, JsonText, Number, Text, is_cpu_bound
from tests.builders.specs import an_http_request

LONG = "x" * HEAVY_CHARS
SHORT = "x" * 5000


def asserting(source: Source, path: str = "") -> ApiSpec:
    one = Assertion(source=source, comparison=Comparison.NOT_EMPTY, property=path)
    return ApiSpec(request=an_http_request(), assertions=(one,))


@pytest.mark.parametrize(
    ("spec", "fact"),
    [
        (asserting(Source.TEXT_BODY), Text(LONG)),
        (asserting(Source.JSON_BODY, "$.a"), JsonText(LONG)),
        (asserting(Source.JSON_BODY, "$..a[*]"), JsonText(SHORT)),
        (asserting(Source.JSON_BODY, "$..[?count($..a)>1]"), JsonText("x" * 250)),
    ],
)
def test_long_texts_and_paths_that_go_over_everything_are_heavy(spec: ApiSpec, fact: Fact) -> None:
    assert is_cpu_bound(spec, {spec.assertions[0].source: fact})


@pytest.mark.parametrize(
    ("spec", "fact"),
    [
        (asserting(Source.TEXT_BODY), Text(SHORT)),
        (asserting(Source.JSON_BODY, "$.a"), JsonText(SHORT)),
        (asserting(Source.JSON_BODY, "$..a"), JsonText(SHORT)),
        (asserting(Source.STATUS_CODE), Number(200)),
    ],
)
def test_the_usual_judgement_is_light(spec: ApiSpec, fact: Fact) -> None:
    assert not is_cpu_bound(spec, {spec.assertions[0].source: fact})


def test_what_nothing_is_asserted_of_is_light() -> None:
    assert not is_cpu_bound(ApiSpec(request=an_http_request()), {Source.TEXT_BODY: Text(LONG)})
    assert not is_cpu_bound(asserting(Source.TEXT_BODY), {})
    assert not is_cpu_bound(HeartbeatSpec(period_s=60, grace_s=0, ping_token="t"), {})
