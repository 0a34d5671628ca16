"""Compares the alerts of a soak with a replay of its results, and with what receivers got. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from service.alert_channels.rules import MOST_REFUSALS
from service.alerting.model import AlertType
from service.alerting.replay import Replay, replay
from tests.soak.alerting.unreliable_site import Arrival

_ENDS: Final = (
    "Not sent: a later notification",
    "Not sent: the channel is paused",
    "The receiver answered 410",
)
"""How what is said of a notification begins that was ended for a good reason."""
_SWITCHES: Final[Mapping[AlertType, str]] = {
    AlertType.FAILURE: "sendFailure",
    AlertType.FAILURE_REMAIN: "sendFailure",
    AlertType.DEGRADED_FAILURE: "sendFailure",
    AlertType.DEGRADED: "sendDegraded",
    AlertType.DEGRADED_REMAIN: "sendDegraded",
    AlertType.FAILURE_DEGRADED: "sendDegraded",
    AlertType.RECOVERY: "sendRecovery",
    AlertType.DEGRADED_RECOVERY: "sendRecovery",
}


class Made(NamedTuple):
    """What an alert of a check is known by."""

    check_id: str
    alert_type: AlertType
    result_id: str | None
    """None: no result caused it."""
    reminder: int
    notified: bool


class Notification(NamedTuple):
    """A notification as the service keeps it."""

    id: str
    alert_id: str
    channel: str
    status: str
    attempts: int
    outcome: str | None
    """None: it was not tried yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All that a soak left of alerts; each part in the order in which it was made."""

    replays: Mapping[str, Replay]
    """By check: its results and its settings."""
    channels: Mapping[str, Mapping[str, bool]]
    """By channel, which every check is subscribed to: what it gets."""
    alerts: Mapping[str, Made]
    """By id."""
    notifications: Sequence[Notification]
    arrivals: Sequence[Arrival]
    swallowed: Mapping[str, int] = field(default_factory=dict)
    """By check: how many reminders became due while the database was away, of which one is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What became of alerts; what is amiss, in words."""

    alerts: int
    """Those that the service made."""
    lost: tuple[str, ...] = ()
    """Alerts of the replay that were not made, and notifications of alerts that are not there."""
    extra: tuple[str, ...] = ()
    """Alerts and notifications that there should not be."""
    undelivered: tuple[str, ...] = ()
    """Notifications that no receiver took, and that nothing ended."""
    out_of_order: tuple[str, ...] = ()
    """Deliveries before an older one of their channel, and repeated ones that are no retries."""

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is amiss."""
        return self.lost + self.extra + self.undelivered + self.out_of_order

    def line(self) -> str:
        """The part of the last line that is about alerts."""
        return (
            f"alerts={self.alerts} lost_alerts={len(self.lost)} extra_alerts={len(self.extra)} "
            f"undelivered={len(self.undelivered)} out_of_order={len(self.out_of_order)}"
        )


def compare(told: Told) -> Compared:
    """Compare alerts with the replay, notifications with alerts, arrivals with notifications."""
    made, wanted = Counter(told.alerts.values()), Counter(_replay_all(told))
    queued = Counter((one.alert_id, one.channel) for one in told.notifications)
    due = Counter(_find_due(told))
    unknown = {one.id for one in told.arrivals} - {one.id for one in told.notifications}
    return Compared(
        alerts=made.total(),
        lost=(
            *(f"not made: {one}" for one in _find_missing(told, wanted - made)),
            *(f"not queued: {one}" for one in (due - queued).elements()),
        ),
        extra=(
            *(f"made for nothing: {one}" for one in (made - wanted).elements()),
            *(f"queued for nothing: {one}" for one in (queued - due).elements()),
            *(f"sent for nothing: {one}" for one in unknown),
        ),
        undelivered=tuple(f"undelivered: {one}" for one in _find_undelivered(told)),
        out_of_order=tuple(
            fault for channel in told.channels for fault in _find_disorder(told, channel)
        ),
    )


def _find_missing(told: Told, missing: Counter[Made]) -> Iterator[Made]:
    """Alerts that were not made, without reminders that became due while nobody could send them."""
    swallowed = Counter(told.swallowed)
    for one in missing.elements():
        if one.reminder and swallowed[one.check_id] > 0:
            swallowed[one.check_id] -= 1
        else:
            yield one


def _replay_all(told: Told) -> Iterator[Made]:
    for check_id, given in told.replays.items():
        for one in replay(given):
            yield Made(check_id, one.alert_type, one.result_id, one.reminder, one.notifies)


def _find_due(told: Told) -> Iterator[tuple[str, str]]:
    """Alert and channel of each notification that there should be.

    A recovery goes to those who were notified that the check had failed, or was degraded.
    """
    alarmed: dict[str, set[str]] = defaultdict(set)
    for alert_id, alert in told.alerts.items():
        if not alert.notified:
            continue
        waiting, switch = alarmed[alert.check_id], _SWITCHES[alert.alert_type]
        among = set(waiting) if alert.alert_type.is_recovery else set(told.channels)
        getting = {channel for channel in among if told.channels[channel][switch]}
        alarmed[alert.check_id] = (
            waiting - getting if alert.alert_type.is_recovery else waiting | getting
        )
        yield from ((alert_id, channel) for channel in getting)


def _find_undelivered(told: Told) -> list[Notification]:
    """Notifications that no receiver took, and that nothing ended."""
    taken = {one.id for one in told.arrivals if one.is_taken}
    return [one for one in told.notifications if not _is_settled(one, taken)]


def _is_settled(one: Notification, taken: set[str]) -> bool:
    if one.status == "SUCCESS":
        return one.id in taken
    # There is no day in a soak after which anything is given up for its age.
    is_over = one.attempts >= MOST_REFUSALS or (one.outcome or "").startswith(_ENDS)
    return one.status == "FAILURE" and is_over


def _find_disorder(told: Told, channel: str) -> Iterator[str]:
    """Where the requests of a channel do not follow the order of its notifications.

    The next one waits for the end of the one before, so that tries are repeated in a row.
    """
    came = [one for one in told.arrivals if one.channel == channel]
    place = {one.id: number for number, one in enumerate(told.notifications)}
    taken = set[tuple[str, int]]()
    for before, after in pairwise(came):
        if before.is_taken:
            taken.add((before.id, before.sender))
        if place.get(after.id, 0) < place.get(before.id, 0):
            yield f"overtaken: {after}"
        elif (after.id, after.sender) in taken:
            yield f"sent again, though it was taken: {after}"
