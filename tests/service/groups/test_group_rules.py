"""What a check has from its group: the check wins, then the group, then the account."""

from typing import Any, Final

import pytest

from contract.checks import CheckType
from service.checks.resolve import build_doc
from service.checks.types.api import ApiCheckWrite
from service.checks.types.heartbeat import HeartbeatCheckWrite
from service.checks.types.url import UrlCheckWrite
from service.groups.model import Form, GroupRow
from service.groups.rules import apply_group
from service.jobs.rules import strategy_of
from tests.builders.check_bodies import LEAST
from tests.builders.groups import a_group

FIXED: Final = {"type": "FIXED", "baseBackoffSeconds": 5}
LINEAR: Final = {"type": "LINEAR", "baseBackoffSeconds": 7}
STRICT: Final = {"runBasedEscalation": {"failedRunThreshold": 3}}
FORMS: Final = tuple(Form)


def a_doc(kind: str = "url", **fields: Any) -> dict[str, Any]:
    model = {"url": UrlCheckWrite, "api": ApiCheckWrite, "heartbeat": HeartbeatCheckWrite}[kind]
    return build_doc(model.model_validate({**LEAST[kind], **fields}))


def in_group(group: GroupRow, kind: str = "url", **fields: Any) -> dict[str, Any]:
    return apply_group(a_doc(kind, **fields), CheckType(kind.upper()), group)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["url", "api", "heartbeat"])
def test_a_group_that_says_nothing_changes_nothing(form: Form, kind: str) -> None:
    assert in_group(a_group(form), kind) == a_doc(kind)


@pytest.mark.parametrize("of_check", [True, False])
@pytest.mark.parametrize("of_group", [True, False])
def test_a_check_runs_while_it_and_its_group_are_activated(
    *, of_check: bool, of_group: bool
) -> None:
    found = in_group(a_group(activated=of_group), activated=of_check)
    assert found["activated"] == (of_check and of_group)


@pytest.mark.parametrize("of_check", [True, False])
@pytest.mark.parametrize("of_group", [True, False])
def test_a_check_is_muted_when_it_or_its_group_is(*, of_check: bool, of_group: bool) -> None:
    found = in_group(a_group(muted=of_group), muted=of_check)
    assert found["muted"] == (of_check or of_group)


def test_a_check_without_places_runs_at_those_of_its_group() -> None:
    group = a_group(locations=["eu-west-1"], privateLocations=["cellar"])
    found = in_group(group)
    assert (found["locations"], found["privateLocations"]) == (["eu-west-1"], ["cellar"])


def test_one_place_of_its_own_is_all_of_a_checks_places() -> None:
    group = a_group(locations=["eu-west-1"], privateLocations=["cellar"])
    found = in_group(group, privateLocations=["attic"])
    assert (found["locations"], found["privateLocations"]) == ([], ["attic"])
    found = in_group(group, locations=["us-east-1"])
    assert (found["locations"], found["privateLocations"]) == (["us-east-1"], [])


@pytest.mark.parametrize(
    ("of_check", "of_group", "parallel"),
    [
        (False, False, False),
        (False, True, True),
        (True, False, True),
        (True, None, True),
        (False, None, False),
    ],
)
def test_a_check_runs_everywhere_at_once_when_it_or_its_group_says_so(
    *, of_check: bool, of_group: bool | None, parallel: bool
) -> None:
    found = in_group(a_group(Form.V2, runParallel=of_group), runParallel=of_check)
    assert found["runParallel"] is parallel


def test_the_runtime_of_a_check_wins_over_its_groups() -> None:
    group = a_group(runtimeId="2025.04")
    assert in_group(group)["runtimeId"] == "2025.04"
    assert in_group(group, runtimeId="2026.04")["runtimeId"] == "2026.04"
    assert in_group(a_group())["runtimeId"] is None


def test_tags_of_the_group_come_after_the_checks_own_and_each_once() -> None:
    assert in_group(a_group(tags=["shop", "eu"]), tags=["eu", "fast"])["tags"] == [
        "eu",
        "fast",
        "shop",
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("of_check", "of_group", "kind"),
    [
        ({"retryStrategy": LINEAR}, FIXED, "LINEAR"),
        ({}, FIXED, "FIXED"),
        ({"retryStrategy": LINEAR}, "FALLBACK", "LINEAR"),
        ({"retryStrategy": LINEAR}, None, "LINEAR"),
        ({}, "FALLBACK", "SINGLE_RETRY"),
        ({}, None, "SINGLE_RETRY"),
        ({"doubleCheck": False}, FIXED, None),
        ({"doubleCheck": False}, "FALLBACK", None),
        ({"doubleCheck": False}, None, None),
    ],
)
def test_a_checks_retries_win_then_those_of_its_group_then_the_one_of_double_check(
    form: Form, of_check: dict[str, Any], of_group: Any, kind: str | None
) -> None:
    found = strategy_of(in_group(a_group(form, retryStrategy=of_group), **of_check), CheckType.URL)
    assert (found.type.value if found else None) == kind


def test_double_check_of_a_group_counts_in_its_first_form_and_without_a_strategy_only() -> None:
    def retried(group: GroupRow) -> bool:
        return strategy_of(in_group(group), CheckType.URL) is not None

    assert not retried(a_group(Form.V1, doubleCheck=False))
    assert retried(a_group(Form.V2, doubleCheck=False))
    assert retried(a_group(Form.V1, doubleCheck=False, retryStrategy="FALLBACK"))
    assert retried(a_group(Form.V1, doubleCheck=False, retryStrategy=FIXED))


def test_a_heartbeat_takes_no_retries_from_its_group() -> None:
    assert in_group(a_group(retryStrategy=FIXED), "heartbeat")["retryStrategy"] is None


@pytest.mark.parametrize(
    ("form", "fields", "given"),
    [
        (Form.V1, {"alertSettings": STRICT, "useGlobalAlertSettings": False}, True),
        (Form.V1, {"alertSettings": STRICT}, False),
        (Form.V1, {"alertSettings": None, "useGlobalAlertSettings": False}, False),
        (Form.V2, {"alertSettings": STRICT}, True),
        (Form.V2, {"alertSettings": STRICT, "useGlobalAlertSettings": True}, False),
        (Form.V2, {}, False),
    ],
)
def test_alert_settings_of_a_group_count_for_checks_that_have_none_of_their_own(
    form: Form, fields: dict[str, Any], *, given: bool
) -> None:
    found = in_group(a_group(form, **fields))
    assert found["useGlobalAlertSettings"] is not given
    threshold = found["alertSettings"]["runBasedEscalation"]["failedRunThreshold"]
    assert threshold == (3 if given else 1)
    own = in_group(a_group(form, **fields), useGlobalAlertSettings=False)
    assert own["alertSettings"]["runBasedEscalation"]["failedRunThreshold"] == 1


def test_an_api_check_joins_its_request_with_its_groups_defaults() -> None:
    status = {"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}
    fast = {"source": "RESPONSE_TIME", "comparison": "LESS_THAN", "target": "100"}
    defaults = {
        "headers": [{"key": "X-Tenant", "value": "group"}, {"key": "x-team", "value": "blue"}],
        "queryParameters": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
        "assertions": [fast],
        "basicAuth": {"username": "u", "password": "p"},
    }
    request = {
        **LEAST["api"]["request"],
        "headers": [{"key": "x-tenant", "value": "check"}],
        "queryParameters": [{"key": "A", "value": "0"}, {"key": "b", "value": "3"}],
        "assertions": [status],
    }
    found = in_group(a_group(apiCheckDefaults=defaults), "api", request=request)["request"]
    assert [(one["key"], one["value"]) for one in found["headers"]] == [
        ("x-tenant", "check"),
        ("x-team", "blue"),
    ]
    assert [(one["key"], one["value"]) for one in found["queryParameters"]] == [
        ("A", "0"),
        ("b", "3"),
        ("a", "1"),
    ]
    assert [one["source"] for one in found["assertions"]] == ["STATUS_CODE", "RESPONSE_TIME"]
    assert found["basicAuth"] == {"username": "u", "password": "p"}


def test_the_credentials_of_a_check_win_and_empty_ones_of_a_group_are_none() -> None:
    own = {"username": "mine", "password": "x"}
    group = a_group(apiCheckDefaults={"basicAuth": {"username": "u", "password": "p"}})
    request = {**LEAST["api"]["request"], "basicAuth": own}
    assert in_group(group, "api", request=request)["request"]["basicAuth"] == own
    empty = a_group(apiCheckDefaults={"basicAuth": {"username": "", "password": ""}})
    assert in_group(empty, "api")["request"]["basicAuth"] is None


def test_only_api_checks_take_the_defaults_of_requests() -> None:
    group = a_group(apiCheckDefaults={"headers": [{"key": "a", "value": "b"}]})
    assert in_group(group, "url") == a_doc("url")
