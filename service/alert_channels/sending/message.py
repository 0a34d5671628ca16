"""What an alert says to people, whatever the channel: a title, lines, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from service.alert_channels.model import AnyAlert
from service.alerting.model import Alert, AlertType, LocationAlert, Mismatch
from service.http.times import format_time

_MOST_LETTERS: Final = 1_000
_MOST_TITLE: Final = 120
_MOST_NAME: Final = 60
_MOST_NAMES: Final = 10
_MINUTE_MS: Final = 60_000
_ACRONYMS: Final = frozenset({"JSON", "TLS"})
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
    """The title with the whole of its reason, however long."""

    @property
    def link(self) -> str | None:
        """The most useful one. None: there are no links."""
        return self.links[0][1] if self.links else None

    @property
    def text(self) -> str:
        """All of it, in lines."""
        lines = [f"{name}: {value}" for name, value in (*self.facts, *self.links)]
        return "\n".join([self.title, "", *lines])


_STATES: Final = {
    AlertType.NO_ALERT: "Unchanged",
    AlertType.FAILURE: "Failing",
    AlertType.FAILURE_REMAIN: "Failing",
    AlertType.FAILURE_DEGRADED: "Degraded",
    AlertType.RECOVERY: "Recovered",
    AlertType.DEGRADED: "Degraded",
    AlertType.DEGRADED_REMAIN: "Degraded",
    AlertType.DEGRADED_FAILURE: "Failing",
    AlertType.DEGRADED_RECOVERY: "Recovered",
    AlertType.SSL: "Certificate",
}
_STATUS: Final = re.compile(r"The response status is (?=\d)")
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
        summary=build_summary(alert),
    )


def tone_of(alert: AnyAlert) -> Tone:
    """How bad an alert is."""
    if isinstance(alert, LocationAlert):
        return Tone.RECOVERY if alert.is_recovery else Tone.FAILURE
    if alert.alert_type in _RECOVERIES:
        return Tone.RECOVERY
    return Tone.DEGRADED if alert.alert_type in _DEGRADED else Tone.FAILURE


def build_title(alert: AnyAlert) -> str:
    """An alert in one line, which fits into the subject of a mail."""
    return clip(build_summary(alert), most=_MOST_TITLE)


def build_summary(alert: AnyAlert) -> str:
    """An alert in one line, with the whole of its reason."""
    if isinstance(alert, LocationAlert):
        state, reason = "No agent", f"{alert.check_count} checks do not run"
        if alert.is_recovery:
            state, reason = "Recovered", "an agent is connected again"
        return f"[{state}] {_shorten(alert.location_name)}: {reason}"
    line = f"[{_name_state(alert)}] {_shorten(alert.check_name)}"
    return clip(f"{line}{_find_reason(alert)}".removesuffix("."))


def _shorten(name: str) -> str:
    """A name that leaves room for the reason."""
    return clip(" ".join(name.split()), most=_MOST_NAME)


def _name_state(alert: Alert) -> str:
    if alert.is_test:
        return "Test"
    if alert.check_deleted:
        return "Deleted"
    state = _STATES[alert.alert_type]
    return f"Still {state.lower()}" if alert.reminder else state


def _find_reason(alert: Alert) -> str:
    """What follows the name of the check."""
    if alert.certificate is not None:
        days = int(alert.certificate.days_remaining)
        when = f"expired {-days} days ago" if days < 0 else f"expires in {days} days"
        return f": {alert.certificate.domain} {when}"
    if alert.check_deleted:
        return " before it passed again"
    if alert.alert_type in _RECOVERIES:
        return f" after {_spell_duration(alert.created_ms - alert.started_ms)}"
    mismatch = alert.mismatch
    if mismatch and (mismatch.source, mismatch.comparison) == ("STATUS_CODE", "EQUALS"):
        return f": HTTP {mismatch.actual}, expected {mismatch.expected}"
    error = " ".join((alert.error or "").split())
    return f": {_STATUS.sub('HTTP ', error)}" if error else ""


def _spell_duration(lasts_ms: int) -> str:
    minutes = round(lasts_ms / _MINUTE_MS)
    if minutes < 1:
        return f"{max(lasts_ms, 0) // 1000} s"
    hours, rest = divmod(minutes, 60)
    if hours < 1:
        return f"{minutes} min"
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def _facts(alert: Alert) -> Iterator[tuple[str, str]]:
    group = f" in the group {alert.group_name}" if alert.group_name else ""
    yield "Check", f"{alert.check_name} ({alert.check_type.value}{group})"
    if alert.check_description:
        yield "Description", alert.check_description
    if alert.reminder:
        yield "Reminder", str(alert.reminder)
    yield from _reasons(alert)
    if alert.mismatch is not None:
        yield from _compare(alert.mismatch)
    if alert.status_code:
        yield "Status code", " ".join(filter(None, (alert.status_code, alert.status_text)))
    if alert.response_time_ms is not None:
        yield "Response time", f"{round(alert.response_time_ms) or '<1'} ms"
    if alert.certificate is not None and alert.certificate.subject:
        yield "Certificate", alert.certificate.subject
    yield from _times(alert)
    yield from _places(alert)
    if alert.tags:
        yield "Tags", _join_names(alert.tags)


def _places(alert: Alert) -> Iterator[tuple[str, str]]:
    if alert.location and alert.location not in alert.failing_locations:
        yield "Location", alert.location
    if alert.failing_locations:
        yield "Affected locations", _join_names(alert.failing_locations)
    if alert.passing_locations:
        yield "Passing at", _join_names(alert.passing_locations)


def _reasons(alert: Alert) -> Iterator[tuple[str, str]]:
    if alert.check_deleted:
        yield "What happened", _END
    if alert.error:
        yield "What failed", alert.error


def _compare(mismatch: Mismatch) -> Iterator[tuple[str, str]]:
    source = " ".join(
        word if word in _ACRONYMS else word.lower() for word in mismatch.source.split("_")
    )
    subject = " ".join(filter(None, (f"{source[:1].upper()}{source[1:]}", mismatch.property)))
    comparison = mismatch.comparison.replace("_", " ").lower()
    yield "Expected", " ".join(filter(None, (subject, comparison, mismatch.expected)))
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
    if alert.is_test:
        yield "Channels", result_link(alert, base_url)
        return
    yield "Result", result_link(alert, base_url)
    if alert.result_id is None:
        return
    for name, part in _SHOWN_FILES:
        found = next((file for file in alert.artifacts if part in file.lower()), None)
        if found is not None:
            yield f"{name} ({found})", f"{result_link(alert, base_url)}#{part}s"


def result_link(alert: Alert, base_url: str) -> str:
    """The page of the result, or of the check if there is none; of a sample, the channels."""
    if alert.is_test:
        return f"{base_url}/channels"
    if alert.result_id is None:
        return f"{base_url}/checks/{alert.check_id}"
    return f"{base_url}/checks/{alert.check_id}/results/{alert.result_id}"


def _about_location(alert: LocationAlert, base_url: str | None) -> Message:
    checks = _join_names(alert.check_names)
    more = alert.check_count - len(alert.check_names)
    names = f" ({checks}{f' and {more} more' if more > 0 else ''})" if checks else ""
    until = f" until {_spell(alert.created_ms)}" if alert.is_recovery else ""
    return Message(
        title=build_title(alert),
        tone=tone_of(alert),
        facts=(
            ("Location", f"{alert.location_name} ({alert.location})"),
            ("Since", _spell(alert.since_ms) + until),
            ("Checks", clip(f"{alert.check_count}{names}")),
        ),
        links=(("Location", f"{base_url}/locations"),) if base_url else (),
        summary=build_summary(alert),
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
