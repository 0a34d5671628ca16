"""What an alert says to people, whatever the channel: a title, lines, links."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from service.alert_channels.model import AnyAlert
from service.alerting.model import Alert, AlertType, LocationAlert, Mismatch
from service.http.times import format_time

_MOST_LETTERS: Final = 1_000
_MOST_NAMES: Final = 10
_SHOWN_FILES: Final = (("Trace", "trace"), ("Screenshot", "screenshot"), ("Video", "video"))


class Tone(Enum):
    """How bad it is."""

    FAILURE = "failure"
    DEGRADED = "degraded"
    RECOVERY = "recovery"

    @property
    def color(self) -> str:
        """In hex, for tools that show one."""
        return _COLORS[self]


_COLORS: Final = {Tone.FAILURE: "#d32f2f", Tone.DEGRADED: "#f9a825", Tone.RECOVERY: "#2e7d32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An alert in words."""

    title: str
    """One line."""
    tone: Tone
    facts: tuple[tuple[str, str], ...]
    """What a person needs to know, with what each is called."""
    links: tuple[tuple[str, str], ...]
    """Where there is more, with what each is called; the first is the result, or the check."""
    summary: str
    """What failed, in one sentence."""

    @property
    def link(self) -> str | None:
        """The most useful one. None: there are no links."""
        return self.links[0][1] if self.links else None

    @property
    def text(self) -> str:
        """All of it, in lines."""
        lines = [f"{name}: {value}" for name, value in (*self.facts, *self.links)]
        return "\n".join([self.title, "", *lines])


_TITLES: Final = {
    AlertType.NO_ALERT: "is as it was",
    AlertType.FAILURE: "has failed",
    AlertType.FAILURE_REMAIN: "is still failing",
    AlertType.FAILURE_DEGRADED: "no longer fails, but is degraded",
    AlertType.RECOVERY: "has recovered",
    AlertType.DEGRADED: "is degraded",
    AlertType.DEGRADED_REMAIN: "is still degraded",
    AlertType.DEGRADED_FAILURE: "was degraded and has failed",
    AlertType.DEGRADED_RECOVERY: "is no longer degraded",
}
_END: Final = "It was deleted before it passed again, so that no recovery follows."
_RECOVERIES: Final = frozenset({AlertType.RECOVERY, AlertType.DEGRADED_RECOVERY})
_DEGRADED: Final = frozenset(
    {AlertType.DEGRADED, AlertType.DEGRADED_REMAIN, AlertType.FAILURE_DEGRADED, AlertType.SSL}
)


def build_message(alert: AnyAlert, *, base_url: str | None) -> Message:
    """What an alert says. No base URL: it has no links."""
    if isinstance(alert, LocationAlert):
        return _about_location(alert, base_url)
    return Message(
        title=build_title(alert),
        tone=tone_of(alert),
        facts=tuple((name, clip(value)) for name, value in _facts(alert)),
        links=tuple(_links(alert, base_url)) if base_url else (),
        summary=_END if alert.check_deleted else clip(alert.error or build_title(alert)),
    )


def tone_of(alert: AnyAlert) -> Tone:
    """How bad an alert is."""
    if isinstance(alert, LocationAlert):
        return Tone.RECOVERY if alert.is_recovery else Tone.FAILURE
    if alert.alert_type in _RECOVERIES:
        return Tone.RECOVERY
    return Tone.DEGRADED if alert.alert_type in _DEGRADED else Tone.FAILURE


def build_title(alert: AnyAlert) -> str:
    """An alert in one line."""
    if isinstance(alert, LocationAlert):
        state = "has an agent again" if alert.is_recovery else "has no agent"
        return f'Location "{alert.location_name}" {state}'
    certificate = alert.certificate
    if certificate is not None:
        days = int(certificate.days_remaining)
        if certificate.days_remaining < 0:
            return f"The certificate of {certificate.domain} expired {-days} days ago"
        return f"The certificate of {certificate.domain} expires in {days} days"
    state = "was deleted" if alert.check_deleted else _TITLES[alert.alert_type]
    title = f'Check "{alert.check_name}" {state}'
    return f"Reminder {alert.reminder}: {title}" if alert.reminder else title


def _facts(alert: Alert) -> Iterator[tuple[str, str]]:
    group = f" in the group {alert.group_name}" if alert.group_name else ""
    yield "Check", f"{alert.check_name} ({alert.check_type.value}{group})"
    if alert.check_description:
        yield "Description", alert.check_description
    yield from _reasons(alert)
    if alert.mismatch is not None:
        yield from _compare(alert.mismatch)
    if alert.status_code:
        yield "Status code", " ".join(filter(None, (alert.status_code, alert.status_text)))
    if alert.response_time_ms is not None:
        yield "Response time", f"{alert.response_time_ms:.0f} ms"
    if alert.certificate is not None and alert.certificate.subject:
        yield "Certificate", alert.certificate.subject
    yield from _times(alert)
    yield from _places(alert)
    if alert.tags:
        yield "Tags", _join_names(alert.tags)


def _places(alert: Alert) -> Iterator[tuple[str, str]]:
    if alert.location:
        yield "Location", alert.location
    if alert.failing_locations:
        yield "Not well at", _join_names(alert.failing_locations)
    if alert.passing_locations:
        yield "Well at", _join_names(alert.passing_locations)


def _reasons(alert: Alert) -> Iterator[tuple[str, str]]:
    if alert.check_deleted:
        yield "What happened", _END
    if alert.error:
        yield "What failed", alert.error


def _compare(mismatch: Mismatch) -> Iterator[tuple[str, str]]:
    subject = " ".join(filter(None, (mismatch.source, mismatch.property)))
    yield "Expected", " ".join(filter(None, (subject, mismatch.comparison, mismatch.expected)))
    yield "Actual", mismatch.actual


def _times(alert: Alert) -> Iterator[tuple[str, str]]:
    if alert.certificate is None:
        until = f" until {_spell(alert.created_ms)}" if alert.alert_type in _RECOVERIES else ""
        yield "Since", _spell(alert.started_ms) + until
    if alert.alert_type not in _RECOVERIES and alert.certificate is None:
        last = alert.last_pass_ms
        yield "Last good run", "none is known" if last is None else _spell(last)


def _links(alert: Alert, base_url: str) -> Iterator[tuple[str, str]]:
    if alert.check_deleted:
        return
    yield "Result", result_link(alert, base_url)
    if alert.result_id is None:
        return
    for name, part in _SHOWN_FILES:
        found = next((file for file in alert.artifacts if part in file.lower()), None)
        if found is not None:
            yield f"{name} ({found})", f"{result_link(alert, base_url)}#{part}s"


def result_link(alert: Alert, base_url: str) -> str:
    """The page of the result, or of the check if there is none."""
    if alert.result_id is None:
        return f"{base_url}/checks/{alert.check_id}"
    return f"{base_url}/checks/{alert.check_id}/results/{alert.result_id}"


def _about_location(alert: LocationAlert, base_url: str | None) -> Message:
    title = build_title(alert)
    checks = _join_names(alert.check_names)
    more = alert.check_count - len(alert.check_names)
    names = f" ({checks}{f' and {more} more' if more > 0 else ''})" if checks else ""
    until = f" until {_spell(alert.created_ms)}" if alert.is_recovery else ""
    summary = (
        f"{alert.check_count} checks run at {alert.location} again."
        if alert.is_recovery
        else f"{alert.check_count} checks do not run at {alert.location}: start an agent there."
    )
    return Message(
        title=title,
        tone=tone_of(alert),
        facts=(
            ("Location", f"{alert.location_name} ({alert.location})"),
            ("Since", _spell(alert.since_ms) + until),
            ("Checks", clip(f"{alert.check_count}{names}")),
        ),
        links=(("Location", f"{base_url}/locations"),) if base_url else (),
        summary=summary,
    )


def spell_time(at_ms: int) -> str:
    """A time in ISO 8601."""
    return format_time(at_ms) or ""


def _spell(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _join_names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def clip(text: str, *, most: int = _MOST_LETTERS) -> str:
    """The text, or its beginning."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
