"""SMS and CALL: text messages and calls, by the operator's HTTP gateway."""

from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import Field

from service.alert_channels.kinds.kind import Kind
from service.alert_channels.model import ChannelType
from service.alert_channels.schemas import ChannelWrite
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alert_channels.sending.http_client import HttpRequest
from service.alert_channels.sending.message import clip
from service.alert_channels.sending.outgoing import Outgoing
from service.http.schema import RequestModel, Text, check_pattern

_FAULTS: Final = {400: Fault.FINAL, 422: Fault.PERMANENT}
"""422 says that the number is none; other refusals are about the gateway, not the channel."""
_MOST_SMS: Final = 320
"""Two parts of a long message."""
_MOST_SPOKEN: Final = 500
_NUMBER: Final = r"^\+?[0-9][0-9 ().-]{3,28}$"


class PhoneConfig(RequestModel):
    """Whom it reaches."""

    number: Annotated[
        Text,
        Field(max_length=30, json_schema_extra={"pattern": _NUMBER, "examples": ["+4930123456"]}),
        check_pattern(_NUMBER, "must be a phone number, as in +4930123456"),
    ]
    """With the country's code."""
    name: Annotated[Text, Field(max_length=200)] = ""
    """For people."""


class SmsChannelWrite(ChannelWrite):
    """A channel that sends text messages."""

    kind = ChannelType.SMS
    type: Literal["SMS"]
    config: PhoneConfig


class CallChannelWrite(ChannelWrite):
    """A channel that calls."""

    kind = ChannelType.CALL
    type: Literal["CALL"]
    config: PhoneConfig


async def _send_sms(outgoing: Outgoing) -> None:
    message = outgoing.message
    link = f" {message.link}" if message.link else ""
    # What is cut is the reason: half a link leads nowhere.
    text = clip(message.summary, most=max(_MOST_SMS - len(link), 0)) + link
    await _hand_over(outgoing, outgoing.tools.sms_gateway, "SMS_GATEWAY_URL", text)


async def _send_call(outgoing: Outgoing) -> None:
    message = outgoing.message
    spoken = clip(message.summary, most=_MOST_SPOKEN)
    await _hand_over(outgoing, outgoing.tools.call_gateway, "CALL_GATEWAY_URL", spoken)


async def _hand_over(outgoing: Outgoing, gateway: str | None, setting: str, text: str) -> None:
    if gateway is None:
        raise ChannelError(
            f"This service has no such gateway: its operator has to set {setting} in the"
            " environment of the service (docs/service.md).",
            Fault.FINAL,
        )
    body: dict[str, Any] = {
        "id": outgoing.id,
        "to": outgoing.config["number"],
        "name": outgoing.config["name"],
        "text": text,
    }
    request = HttpRequest(
        url=gateway,
        headers={"content-type": "application/json", "idempotency-key": outgoing.id},
        body=msgspec.json.encode(body),
    )
    answer = await outgoing.tools.gateway_http.send(request)
    answer.raise_for_status(_FAULTS)


SMS: Final = Kind(write=SmsChannelWrite, send=_send_sms)
CALL: Final = Kind(write=CallChannelWrite, send=_send_call)
