"""OPSGENIE: alerts by the Alert API v2."""

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

import msgspec
from pydantic import Field

from service.alert_channels.kinds.kind import Kind
from service.alert_channels.model import ChannelType
from service.alert_channels.schemas import ChannelWrite
from service.alert_channels.sending.errors import Fault
from service.alert_channels.sending.http_client import HttpRequest
from service.alert_channels.sending.message import clip
from service.alert_channels.sending.outgoing import Outgoing
from service.alerting.model import Alert
from service.http.schema import RequestModel, Text
from service.vault.texts import NotEchoed

_FAULTS: Final = {401: Fault.PERMANENT, 403: Fault.PERMANENT, 422: Fault.FINAL}
_MOST_MESSAGE: Final = 130
_MOST_DESCRIPTION: Final = 15_000
_MOST_TAGS: Final = 20
_MOST_TAG: Final = 50


class OpsgenieConfig(RequestModel):
    """Which team gets the alerts."""

    name: Annotated[Text, Field(max_length=200)] = ""
    """For people; it is not sent."""
    api_key: Annotated[Text, Field(min_length=1, max_length=500), NotEchoed]
    """The key of an API integration; may be `{{VARIABLE}}`."""
    region: Literal["EU", "US"] = "US"
    """Where the account is kept."""
    priority: Literal["P1", "P2", "P3", "P4", "P5"] = "P3"
    """The priority of its alerts."""


class OpsgenieChannelWrite(ChannelWrite):
    """A channel that creates and closes alerts in Opsgenie."""

    kind = ChannelType.OPSGENIE
    type: Literal["OPSGENIE"]
    config: OpsgenieConfig


async def _send(outgoing: Outgoing) -> None:
    base = outgoing.tools.opsgenie_urls[outgoing.config["region"]]
    alias = quote(outgoing.incident_key, safe="")
    close = f"/{alias}/close?identifierType=alias" if outgoing.is_recovery else ""
    body = _build_note(outgoing) if outgoing.is_recovery else _build_alert(outgoing)
    request = HttpRequest(
        url=f"{base}/v2/alerts{close}",
        headers={
            "content-type": "application/json",
            "authorization": f"GenieKey {outgoing.setting('apiKey')}",
        },
        body=msgspec.json.encode(body),
    )
    answer = await outgoing.tools.http.send(request)
    answer.raise_for_status(_FAULTS)


def _build_note(outgoing: Outgoing) -> dict[str, Any]:
    return {"source": "Picket", "note": clip(outgoing.message.text, most=_MOST_DESCRIPTION)}


def _build_alert(outgoing: Outgoing) -> dict[str, Any]:
    message, alert = outgoing.message, outgoing.alert
    tags = alert.tags if isinstance(alert, Alert) else ()
    return {
        "message": clip(message.title, most=_MOST_MESSAGE),
        "alias": outgoing.incident_key,
        "description": clip(message.text, most=_MOST_DESCRIPTION),
        "priority": outgoing.config["priority"],
        "source": "Picket",
        "entity": alert.check_name if isinstance(alert, Alert) else alert.location_name,
        "tags": [clip(tag, most=_MOST_TAG) for tag in tags[:_MOST_TAGS]],
        "details": dict(message.facts),
    }


OPSGENIE: Final = Kind(write=OpsgenieChannelWrite, send=_send, secret_fields=("apiKey",))
