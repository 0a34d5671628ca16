"""SLACK: a message by an incoming webhook."""

from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import BeforeValidator, Field

from contract.targets import url_problem
from service.alert_channels.kinds.kind import Kind
from service.alert_channels.model import ChannelType
from service.alert_channels.schemas import ChannelWrite
from service.alert_channels.sending.errors import Fault
from service.alert_channels.sending.http_client import HttpRequest
from service.alert_channels.sending.message import Message, clip
from service.alert_channels.sending.outgoing import Outgoing
from service.http.schema import RequestModel, Text, blank_is_none, judged_by
from service.vault.texts import HIDDEN, NotEchoed

_FAULTS: Final = {
    400: Fault.FINAL,
    403: Fault.PERMANENT,
    404: Fault.PERMANENT,
    410: Fault.PERMANENT,
}
"""https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/#handling_errors"""
_MOST_TEXT: Final = 2_900
_MOST_TITLE: Final = 150


def secret_url_problem(url: str) -> str | None:
    """Why a text is no URL of a receiver. None: it is one, or keeps the stored one."""
    return None if url == HIDDEN else url_problem(url)


class SlackConfig(RequestModel):
    """Where messages go."""

    url: Annotated[
        Text, Field(min_length=1, max_length=2048), judged_by(secret_url_problem), NotEchoed
    ]
    """The address of an incoming webhook. Kept secret; may hold variables: `{{TOKEN}}`."""
    channel: Annotated[
        Annotated[Text, Field(max_length=200)] | None, BeforeValidator(blank_is_none)
    ] = None
    """A channel of Slack, such as #ops. Null: the webhook's own."""


class SlackChannelWrite(ChannelWrite):
    """A channel that writes to Slack."""

    kind = ChannelType.SLACK
    type: Literal["SLACK"]
    config: SlackConfig


async def _send(outgoing: Outgoing) -> None:
    body = _build_body(outgoing.message)
    if outgoing.config.get("channel"):
        body["channel"] = outgoing.config["channel"]
    request = HttpRequest(
        url=outgoing.setting("url"),
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(body),
    )
    answer = await outgoing.tools.http.send(request)
    answer.raise_for_status(_FAULTS)


def _build_body(message: Message) -> dict[str, Any]:
    """The title as text for notices, and all of it as blocks beside a coloured bar."""
    facts = "\n".join(f"*{_escape(name)}:* {_escape(value)}" for name, value in message.facts)
    links = " · ".join(f"<{url}|{_escape(name)}>" for name, url in message.links)
    title = {"type": "plain_text", "text": clip(message.title, most=_MOST_TITLE), "emoji": False}
    blocks: list[dict[str, Any]] = [{"type": "header", "text": title}]
    texts = [clip(facts, most=_MOST_TEXT), links]
    blocks += [
        {"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in texts if text
    ]
    return {
        "text": _escape(message.title),
        "attachments": [{"color": message.tone.color, "blocks": blocks}],
    }


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


SLACK: Final = Kind(write=SlackChannelWrite, send=_send, secret_fields=("url",))
