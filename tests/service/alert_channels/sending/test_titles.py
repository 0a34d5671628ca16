from typing import Any

import pytest

from service.alert_channels.sending.message import build_message, build_title
from service.alerting.model import AlertType
from tests.builders.alert_channels import a_certificate_alert, a_location_alert, an_alert

BAD: dict[str, Any] = {
    "mismatch": None,
    "error": "The response status is 503; anything below 400 passes.",
}


@pytest.mark.parametrize(
    ("alert", "title"),
    [
        (an_alert(), "[Failing] Orders: HTTP 503, expected 200"),
        (an_alert(**BAD), "[Failing] Orders: HTTP 503; anything below 400 passes"),
        (
            an_alert(AlertType.FAILURE_REMAIN, reminder=2, error="It hung.\nTwice.", mismatch=None),
            "[Still failing] Orders: It hung. Twice",
        ),
        (an_alert(AlertType.FAILURE_REMAIN, error=None, mismatch=None), "[Failing] Orders"),
        (an_alert(AlertType.RECOVERY), "[Recovered] Orders after 1 min"),
        (a_certificate_alert(-2.5), "[Certificate] Orders: shop.test expired 2 days ago"),
        (a_location_alert(is_recovery=True), "[Recovered] Cellar: an agent is connected again"),
        (an_alert(check_id="sample-1"), "[Test] Orders: HTTP 503, expected 200"),
    ],
)
def test_a_title_says_the_state_the_name_and_the_reason(alert: object, title: str) -> None:
    assert build_title(alert) == title  # type: ignore[arg-type]


def test_a_title_fits_into_a_subject_and_a_long_name_leaves_room_for_the_reason() -> None:
    title = build_title(an_alert(check_name="n" * 300, error="e" * 300, mismatch=None))
    assert len(title) == 120
    assert "n…: eee" in title


def test_a_location_is_named_once() -> None:
    names = [
        name for name, value in build_message(an_alert(), base_url=None).facts if value == "cellar"
    ]
    assert names == ["Affected locations"]


@pytest.mark.parametrize(("took_ms", "told"), [(0.4, "<1 ms"), (0.6, "1 ms"), (812.0, "812 ms")])
def test_a_quick_answer_did_not_take_no_time(took_ms: float, told: str) -> None:
    facts = dict(build_message(an_alert(response_time_ms=took_ms), base_url=None).facts)
    assert facts["Response time"] == told
