"""PAGERDUTY: incidents by the Events API v2."""

from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import BeforeValidator, Field

from service.alert_channels.kinds.kind import Kind
from service.alert_channels.model import ChannelType
from service.alert_channels.schemas import ChannelWrite
from service.alert_channels.sending.errors import Fault
from service.alert_channels.sending.http_client import HttpRequest
from service.alert_channels.sending.message import Tone, clip, spell_time
from service.alert_channels.sending.outgoing import Outgoing
from service.alerting.model import LocationAlert
from service.http.schema import RequestModel, Text, blank_is_none
from service.vault.texts import NotEchoed

_FAULTS: Final = {400: Fault.FINAL, 403: Fault.PERMANENT}
"""400 may be about the event alone, which is another one next time."""
_NO_SOURCE: Final = "picket"
"""PagerDuty takes no event without a source."""
_MOST_SUMMARY: Final = 1_024
_SEVERITIES: Final = {Tone.FAILURE: "critical", Tone.DEGRADED: "warning", Tone.RECOVERY: "info"}


class PagerDutyConfig(RequestModel):
    """Which service gets the incidents."""

    service_key: Annotated[Text, Field(min_length=1, max_length=500), NotEchoed]
    """The integration key; may be `{{VARIABLE}}`."""
    account: Annotated[
        Annotated[Text, Field(max_length=200)] | None, BeforeValidator(blank_is_none)
    ] = None
    """For people; it is not sent."""
    service_name: Annotated[
        Annotated[Text, Field(max_length=200)] | None, BeforeValidator(blank_is_none)
    ] = None
    """For people; it is not sent."""


class PagerDutyChannelWrite(ChannelWrite):
    """A channel that opens and resolves incidents in PagerDuty."""

    kind = ChannelType.PAGERDUTY
    type: Literal["PAGERDUTY"]
    config: PagerDutyConfig


async def _send(outgoing: Outgoing) -> None:
    event: dict[str, Any] = {
        "routing_key": outgoing.setting("serviceKey"),
        "event_action": "resolve" if outgoing.is_recovery else "trigger",
        "dedup_key": outgoing.incident_key,
    }
    if not outgoing.is_recovery:
        event |= _describe(outgoing)
    request = HttpRequest(
        url=outgoing.tools.pagerduty_url,
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(event),
    )
    answer = await outgoing.tools.http.send(request)
    answer.raise_for_status(_FAULTS)


def _describe(outgoing: Outgoing) -> dict[str, Any]:
    message, alert = outgoing.message, outgoing.alert
    payload: dict[str, Any] = {
        "summary": clip(message.summary, most=_MOST_SUMMARY),
        "source": alert.location or _NO_SOURCE,
        "severity": _SEVERITIES[message.tone],
        "timestamp": spell_time(alert.created_ms),
        "custom_details": dict(message.facts),
    }
    if not isinstance(alert, LocationAlert):
        payload |= {"component": alert.check_name, "class": alert.check_type.value}
        payload |= {"group": alert.group_name} if alert.group_name else {}
    links = [{"href": url, "text": name} for name, url in message.links]
    client_url = {"client_url": message.link} if message.link else {}
    return {"client": "Picket", **client_url, "links": links, "payload": payload}


PAGERDUTY: Final = Kind(write=PagerDutyChannelWrite, send=_send, secret_fields=("serviceKey",))
