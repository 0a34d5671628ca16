"""EMAIL: a mail to one address, by the operator's SMTP server."""

from html import escape
from typing import Annotated, Final, Literal

from pydantic import Field

from service.alert_channels.kinds.kind import Kind
from service.alert_channels.model import ChannelType
from service.alert_channels.schemas import ChannelWrite
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alert_channels.sending.message import Message
from service.alert_channels.sending.outgoing import Outgoing
from service.http.schema import RequestModel, Text, judged_by
from service.mail.model import MailFailure
from service.mail.model import Message as Mail
from service.mail.rules import find_address_problem


class EmailConfig(RequestModel):
    """Where mails go."""

    address: Annotated[Text, Field(min_length=1, max_length=254), judged_by(find_address_problem)]


class EmailChannelWrite(ChannelWrite):
    """A channel that sends mails."""

    kind = ChannelType.EMAIL
    type: Literal["EMAIL"]
    config: EmailConfig


async def _send(outgoing: Outgoing) -> None:
    mailer = outgoing.tools.mailer
    if mailer is None:
        raise ChannelError(
            "This service has no mail server: its operator has to set SMTP_URL in the environment"
            " of the service (docs/service.md).",
            Fault.FINAL,
        )
    failure = await mailer.send(
        Mail(
            key=outgoing.id,
            to=outgoing.config["address"],
            subject=outgoing.message.title,
            text=f"{outgoing.message.text}\n",
            html=_render_html(outgoing.message),
            headers={"References": f"<{outgoing.incident_key}@picket>"},
        )
    )
    if failure is not None:
        raise ChannelError(failure.reason, _find_fault(failure))


def _find_fault(failure: MailFailure) -> Fault:
    """Only an address that is refused for good pauses; content is another one next time."""
    if failure.is_of_address:
        return Fault.PERMANENT
    return Fault.FINAL if failure.is_permanent else Fault.TEMPORARY


def _render_html(message: Message) -> str:
    rows = "".join(
        f'<tr><td style="padding:2px 12px 2px 0;color:#666;vertical-align:top">{escape(name)}</td>'
        f'<td style="white-space:pre-wrap">{escape(value)}</td></tr>'
        for name, value in message.facts
    )
    links = "".join(
        f'<p><a href="{escape(url)}">{escape(name)}</a></p>' for name, url in message.links
    )
    return (
        f'<div style="font-family:sans-serif"><h2 style="color:{message.tone.color}">'
        f"{escape(message.title)}</h2><table>{rows}</table>{links}</div>"
    )


EMAIL: Final = Kind(write=EmailChannelWrite, send=_send)
