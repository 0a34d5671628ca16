"""What a soak finds amiss with alerts shows, and what is as it should be does not."""

from dataclasses import replace

import pytest

from service.alerting.model import AlertPolicy, AlertType
from service.alerting.replay import Replay
from service.results.model import FinalRun, RunStatus
from tests.soak.alerting.comparison import Made, Notification, Told, compare
from tests.soak.alerting.unreliable_site import Arrival

FAILED = Made("shop", AlertType.FAILURE, "r1", 0, notified=True)
PASSED = Made("shop", AlertType.RECOVERY, "r2", 0, notified=True)
STATUSES = (RunStatus.PASSED, RunStatus.FAILED, RunStatus.PASSED)
WELL = Told(
    replays={
        "shop": Replay(
            runs=[
                FinalRun(f"r{at}", "cellar", status, None, at, at, at)
                for at, status in enumerate(STATUSES)
            ],
            policy=AlertPolicy(),
            locations=1,
            until_ms=3,
        )
    },
    channels={
        "all": {"sendFailure": True, "sendRecovery": True},
        "failures": {"sendFailure": True, "sendRecovery": False},
    },
    alerts={"a1": FAILED, "a2": PASSED},
    notifications=[
        Notification("n1", "a1", "all", "SUCCESS", 2, "The receiver took it."),
        Notification("n2", "a1", "failures", "SUCCESS", 1, "The receiver took it."),
        Notification("n3", "a2", "all", "SUCCESS", 1, "The receiver took it."),
    ],
    arrivals=[
        Arrival("all", "n1", sender=1),
        Arrival("failures", "n2", sender=1, is_taken=True),
        Arrival("all", "n1", sender=1, is_taken=True),
        Arrival("all", "n3", sender=1, is_taken=True),
    ],
)
FIRST, SECOND, THIRD = WELL.notifications


def test_what_is_as_it_should_be_is_no_fault() -> None:
    compared = compare(WELL)
    assert compared.faults == ()
    assert compared.line() == "alerts=2 lost_alerts=0 extra_alerts=0 undelivered=0 out_of_order=0"


def with_arrivals(*arrivals: Arrival) -> Told:
    return replace(WELL, arrivals=arrivals)


def with_first(**changes: object) -> Told:
    """Only the first notification, which is about the failure, and nobody got it."""
    given = {"status": "FAILURE", "attempts": 1, "outcome": None, **changes}
    return replace(
        WELL, notifications=[FIRST._replace(**given), SECOND, THIRD], arrivals=WELL.arrivals[1::2]
    )


@pytest.mark.parametrize(
    ("told", "lost", "extra"),
    [
        pytest.param(
            replace(WELL, alerts={"a1": FAILED}, notifications=[FIRST, SECOND]),
            ["not made"],
            ["sent for nothing"],
            id="a recovery that was not made",
        ),
        pytest.param(
            replace(WELL, alerts={**WELL.alerts, "a3": FAILED._replace(notified=False)}),
            [],
            ["made for nothing"],
            id="an alert that the results do not lead to",
        ),
        pytest.param(
            replace(WELL, notifications=[SECOND, THIRD], arrivals=WELL.arrivals[1::2]),
            ["not queued"],
            [],
            id="a notification that was not queued",
        ),
        pytest.param(
            replace(
                WELL, notifications=[*WELL.notifications, SECOND._replace(id="n4", alert_id="a2")]
            ),
            [],
            ["queued for nothing"],
            id="a recovery for a channel that wants none",
        ),
    ],
)
def test_alerts_and_notifications_are_what_results_and_subscriptions_lead_to(
    told: Told, lost: list[str], extra: list[str]
) -> None:
    compared = compare(told)
    assert [fault.split(":")[0] for fault in compared.lost] == lost
    assert [fault.split(":")[0] for fault in compared.extra] == extra


@pytest.mark.parametrize(
    "outcome",
    [
        "Not sent: a later notification about the check follows this reminder.",
        "Not sent: the channel is paused, because: it is gone.",
        "The receiver answered 410 Gone.",
    ],
)
def test_a_notification_that_was_ended_need_not_arrive(outcome: str) -> None:
    assert compare(with_first(outcome=outcome)).faults == ()


def test_a_notification_that_was_refused_ten_times_need_not_arrive() -> None:
    assert compare(with_first(attempts=10)).faults == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "IN_PROGRESS"},
        {"status": "SUCCESS"},
        {"outcome": "The service failed to send it; its log says why."},
        {"outcome": "The receiver answered 500 Internal Server Error."},
    ],
)
def test_any_other_notification_that_nobody_took_is_undelivered(changes: dict[str, str]) -> None:
    assert len(compare(with_first(**changes)).undelivered) == 1


def test_deliveries_follow_the_order_of_the_notifications() -> None:
    first, *_, last = WELL.arrivals
    assert len(compare(with_arrivals(*WELL.arrivals, first)).out_of_order) == 1
    assert len(compare(with_arrivals(last, *WELL.arrivals[1:3])).out_of_order) == 1


def test_what_was_taken_is_sent_again_by_another_process_alone() -> None:
    last = WELL.arrivals[-1]
    assert len(compare(with_arrivals(*WELL.arrivals, last)).out_of_order) == 1
    assert compare(with_arrivals(*WELL.arrivals, replace(last, sender=2))).faults == ()


@pytest.mark.parametrize(("swallowed", "lost"), [({}, 2), ({"shop": 1}, 1), ({"shop": 5}, 0)])
def test_reminders_of_a_time_without_database_are_not_missed(
    swallowed: dict[str, int], lost: int
) -> None:
    failing = replace(
        WELL.replays["shop"],
        runs=WELL.replays["shop"].runs[:2],
        policy=AlertPolicy(reminders=2, reminder_ms=1),
        until_ms=5,
    )
    told = replace(WELL, replays={"shop": failing}, swallowed=swallowed)
    assert sum(fault.startswith("not made") for fault in compare(told).lost) == lost
