"""Bodies of webhooks in the form that their receivers read."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from pydantic.alias_generators import to_camel

from service.alert_channels.sending.message import Tone, clip, spell_time
from service.alert_channels.sending.outgoing import Outgoing
from service.alert_channels.templates.values import template_values
from service.alerting.model import Alert

Body = dict[str, Any]
_MOST_TEXT: Final = 3_500
_MOST_SHORT: Final = 500
_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"


def build_preset(outgoing: Outgoing, webhook_type: str | None) -> tuple[bytes, str]:
    """The body in the form of this receiver, and its type. None: in our own form."""
    if webhook_type == "WEBHOOK_TELEGRAM":
        return urlencode(_telegram(outgoing)).encode(), _FORM
    build = _own if webhook_type is None else _PRESETS[webhook_type]
    return msgspec.json.encode(build(outgoing)), _JSON


def _own(outgoing: Outgoing) -> Body:
    """Each variable of an alert, then what a person reads."""
    values = template_values(outgoing.alert, base_url=outgoing.tools.base_url)
    message = outgoing.message
    return {
        "notificationId": outgoing.id,
        "incidentKey": outgoing.incident_key,
        **{to_camel(name.lower()): value for name, value in values.items()},
        "isRecovery": outgoing.is_recovery,
        "facts": [{"name": name, "value": value} for name, value in message.facts],
        "links": [{"name": name, "url": url} for name, url in message.links],
    }


def _description(outgoing: Outgoing) -> str:
    return clip(outgoing.message.text, most=_MOST_TEXT)


def _subject(outgoing: Outgoing) -> str:
    alert = outgoing.alert
    return alert.check_name if isinstance(alert, Alert) else alert.location_name


def _started_ms(outgoing: Outgoing) -> int:
    alert = outgoing.alert
    return alert.started_ms if isinstance(alert, Alert) else alert.since_ms


def _telegram(outgoing: Outgoing) -> dict[str, str]:
    """The chat is a query parameter of the channel: `chat_id`."""
    message = outgoing.message
    facts = "\n".join(f"<b>{escape(name)}:</b> {escape(value)}" for name, value in message.facts)
    links = "\n".join(f'<a href="{escape(url)}">{escape(name)}</a>' for name, url in message.links)
    text = f"<b>{escape(message.title)}</b>\n{facts}\n{links}"
    # A tag that is cut in two would be refused.
    if len(text) > _MOST_TEXT:
        text = f"<b>{escape(clip(message.summary, most=_MOST_SHORT))}</b>\n{links}"
    return {"parse_mode": "HTML", "text": text}


def _discord(outgoing: Outgoing) -> Body:
    message = outgoing.message
    embed: Body = {
        "title": clip(message.title, most=250),
        "description": clip("\n".join(f"**{n}:** {v}" for n, v in message.facts), most=_MOST_TEXT),
        "color": int(message.tone.color[1:], 16),
    }
    return {"embeds": [embed | ({"url": message.link} if message.link else {})]}


def _teams(outgoing: Outgoing) -> Body:
    """An adaptive card, as workflows of Teams take it."""
    message = outgoing.message
    colors = {Tone.FAILURE: "Attention", Tone.DEGRADED: "Warning", Tone.RECOVERY: "Good"}
    title = {
        "type": "TextBlock",
        "size": "Large",
        "weight": "Bolder",
        "wrap": True,
        "text": message.title,
        "color": colors[message.tone],
    }
    facts = {
        "type": "FactSet",
        "facts": [{"title": name, "value": value} for name, value in message.facts],
    }
    actions = [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in message.links]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [title, facts],
        "actions": actions,
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _incidentio(outgoing: Outgoing) -> Body:
    alert = outgoing.alert
    return {
        "title": outgoing.message.title,
        "description": _description(outgoing),
        "deduplication_key": alert.check_id if isinstance(alert, Alert) else outgoing.incident_key,
        "status": "resolved" if outgoing.is_recovery else "firing",
        "metadata": dict(outgoing.message.facts),
        **({"source_url": outgoing.message.link} if outgoing.message.link else {}),
    }


def _firehydrant(outgoing: Outgoing) -> Body:
    levels = {Tone.FAILURE: "ERROR", Tone.DEGRADED: "WARN", Tone.RECOVERY: "INFO"}
    message = outgoing.message
    return {
        "summary": message.title,
        "body": _description(outgoing),
        "level": levels[message.tone],
        "status": "CLOSED" if outgoing.is_recovery else "OPEN",
        "idempotency_key": outgoing.incident_key,
        "links": [{"href": url, "text": name} for name, url in message.links],
        "annotations": dict(message.facts),
    }


def _gitlab(outgoing: Outgoing) -> Body:
    severities = {Tone.FAILURE: "critical", Tone.DEGRADED: "medium", Tone.RECOVERY: "info"}
    ended = {"end_time": spell_time(outgoing.alert.created_ms)} if outgoing.is_recovery else {}
    return {
        "title": _subject(outgoing),
        "description": _description(outgoing),
        "start_time": spell_time(_started_ms(outgoing)),
        **ended,
        "service": _subject(outgoing),
        "monitoring_tool": "Picket",
        "severity": severities[outgoing.message.tone],
        "fingerprint": outgoing.incident_key,
    }


def _ilert(outgoing: Outgoing) -> Body:
    message = outgoing.message
    return {
        "eventType": "RESOLVE" if outgoing.is_recovery else "ALERT",
        "alertKey": outgoing.incident_key,
        "summary": message.title,
        "details": _description(outgoing),
        "priority": "HIGH" if message.tone is Tone.FAILURE else "LOW",
        "links": [{"href": url, "text": name} for name, url in message.links],
    }


def _splunk(outgoing: Outgoing) -> Body:
    kinds = {Tone.FAILURE: "CRITICAL", Tone.DEGRADED: "WARNING", Tone.RECOVERY: "RECOVERY"}
    return {
        "message_type": kinds[outgoing.message.tone],
        "entity_id": outgoing.incident_key,
        "entity_display_name": outgoing.message.title,
        "state_message": _description(outgoing),
        "state_start_time": _started_ms(outgoing) // 1000,
        "monitoring_tool": "Picket",
    }


def _coralogix(outgoing: Outgoing) -> Body:
    severities = {Tone.FAILURE: 5, Tone.DEGRADED: 4, Tone.RECOVERY: 3}
    entry = {
        "timestamp": outgoing.alert.created_ms,
        "severity": severities[outgoing.message.tone],
        "text": msgspec.json.encode(_own(outgoing)).decode(),
    }
    return {
        "applicationName": "picket",
        "subsystemName": _subject(outgoing),
        "logEntries": [entry],
    }


def _status(outgoing: Outgoing) -> Body:
    """For receivers that read any JSON by rules of their own."""
    return {
        "title": outgoing.message.title,
        "message": _description(outgoing),
        "status": "RESOLVED" if outgoing.is_recovery else "ALERT",
        "id": outgoing.incident_key,
        **_own(outgoing),
    }


_PRESETS: Final[Mapping[str, Callable[[Outgoing], Body]]] = {
    "WEBHOOK_CORALOGIX": _coralogix,
    "WEBHOOK_DISCORD": _discord,
    "WEBHOOK_FIREHYDRANT": _firehydrant,
    "WEBHOOK_GITLAB_ALERT": _gitlab,
    "WEBHOOK_ILERT": _ilert,
    "WEBHOOK_INCIDENTIO": _incidentio,
    "WEBHOOK_MSTEAMS": _teams,
    "WEBHOOK_ROOTLY": _status,
    "WEBHOOK_SPIKESH": _status,
    "WEBHOOK_SPLUNK": _splunk,
}
