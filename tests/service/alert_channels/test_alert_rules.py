from typing import Any

import pytest

from service.alert_channels.model import ChannelChoice, ChannelRow, ChannelType
from service.alert_channels.rules import (
    DAY_MS,
    backoff_ms,
    choose_for_new_check,
    expiry_ms,
    is_same_certificate,
    join_choices,
    wants,
)
from service.alerting.model import AlertType
from tests.builders.alert_channels import a_certificate_alert, a_location_alert, an_alert


def a_row(**changes: Any) -> ChannelRow:
    fields: dict[str, Any] = {
        "id": 1,
        "account_id": "account",
        "type": ChannelType.EMAIL,
        "config": {},
        "secrets": b"",
        "send_recovery": False,
        "send_failure": False,
        "send_degraded": False,
        "ssl_expiry": False,
        "ssl_expiry_threshold": 10,
        "auto_subscribe": False,
        "pause": None,
        "created_ms": 0,
        "updated_ms": None,
    }
    return ChannelRow(**{**fields, **changes})


@pytest.mark.parametrize(
    ("alert_type", "needed"),
    [
        (AlertType.FAILURE, {"send_failure"}),
        (AlertType.FAILURE_REMAIN, {"send_failure"}),
        (AlertType.DEGRADED_FAILURE, {"send_failure"}),
        (AlertType.DEGRADED, {"send_degraded"}),
        (AlertType.DEGRADED_REMAIN, {"send_degraded"}),
        (AlertType.FAILURE_DEGRADED, {"send_degraded"}),
        (AlertType.RECOVERY, {"send_recovery"}),
        (AlertType.DEGRADED_RECOVERY, {"send_recovery"}),
    ],
)
def test_each_type_is_sent_by_its_flags_alone(alert_type: AlertType, needed: set[str]) -> None:
    flags = {"send_failure", "send_degraded", "send_recovery"}
    alert = an_alert(alert_type)
    assert wants(a_row(**dict.fromkeys(needed, True)), alert)
    for flag in needed:
        assert not wants(a_row(**dict.fromkeys(flags - {flag}, True)), alert)


def test_no_alert_is_never_sent() -> None:
    every = a_row(send_failure=True, send_degraded=True, send_recovery=True, ssl_expiry=True)
    assert not wants(every, an_alert(AlertType.NO_ALERT))


def test_a_certificate_is_reported_from_the_channels_threshold_on() -> None:
    row = a_row(ssl_expiry=True)
    assert [wants(row, a_certificate_alert(days)) for days in (10.1, 10.0, -1)] == [
        False,
        True,
        True,
    ]
    assert not wants(a_row(send_failure=True), a_certificate_alert(1))


def test_a_certificate_is_the_same_from_day_to_day_and_another_once_renewed() -> None:
    today = a_certificate_alert(9.0, created_ms=0)
    tomorrow = a_certificate_alert(7.99, created_ms=DAY_MS)
    renewed = a_certificate_alert(30.0, created_ms=DAY_MS)
    assert is_same_certificate(expiry_ms(today), expiry_ms(tomorrow))
    assert not is_same_certificate(expiry_ms(today), expiry_ms(renewed))
    assert not is_same_certificate(None, expiry_ms(today))


def test_a_location_is_reported_as_a_failure_and_its_recovery() -> None:
    failing, recovering = a_row(send_failure=True), a_row(send_recovery=True)
    assert wants(failing, a_location_alert())
    assert not wants(failing, a_location_alert(is_recovery=True))
    assert wants(recovering, a_location_alert(is_recovery=True))


def test_what_a_check_says_of_a_channel_wins_over_its_group() -> None:
    own = [ChannelChoice(1, activated=False)]
    of_group = [ChannelChoice(1, activated=True), ChannelChoice(2, activated=True)]
    assert join_choices(own, of_group) == (own[0], of_group[1])


def test_a_new_check_takes_all_channels_or_those_that_take_it() -> None:
    own = [ChannelChoice(1, activated=False)]
    channels = {1: True, 2: True, 3: False}
    chosen = choose_for_new_check(own, channels, auto_assign=False)
    assert chosen == (own[0], ChannelChoice(2, activated=True))
    chosen = choose_for_new_check(own, channels, auto_assign=True)
    assert [one.channel_id for one in chosen] == [1, 2, 3]


def test_waits_are_spread_and_double_up_to_five_minutes() -> None:
    longest = [backoff_ms(failures, 1.0, demanded_s=None) for failures in (1, 2, 3, 4, 5, 6, 500)]
    assert longest == [20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]
    assert backoff_ms(1, 0.0, demanded_s=None) == 0
    assert backoff_ms(1, 0.25, demanded_s=None) == 5_000


def test_a_receiver_that_demands_a_wait_gets_it_up_to_an_hour() -> None:
    assert backoff_ms(1, 0.5, demanded_s=90) == 90_000
    assert backoff_ms(1, 1.0, demanded_s=5) == 20_000
    assert backoff_ms(1, 0.5, demanded_s=1e9) == 3_600_000
