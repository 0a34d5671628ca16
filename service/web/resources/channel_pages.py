"""`/channels`: where alerts go, whether they arrive, and a sample to try it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.alert_channels import actions as alert_channels
from service.alert_channels.kinds.kind import Kind
from service.alert_channels.kinds.registry import ALL
from service.alert_channels.model import ChannelRow, ChannelType, NotificationRow
from service.alert_channels.sending.outgoing import SendingTools
from service.alerting.model import Alert
from service.projects import rules as code
from service.web.alerts.alert_words import describe_delivery, name_channel, name_kind
from service.web.forms import choices
from service.web.forms.resource_form import Document, Form, Neighbor, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.resources.listing import PAGE, ListPage, number_of, show_rows
from service.web.states import State
from service.web.visit import Visit

_SENTENCES: Final[Mapping[ChannelType, tuple[str, str]]] = {
    ChannelType.EMAIL: ("Email", "Sends an email to one address."),
    ChannelType.SLACK: ("Slack", "Posts to a Slack channel through an incoming webhook."),
    ChannelType.WEBHOOK: (
        "Webhook",
        "Sends a request to Microsoft Teams, Discord, Telegram or your own address.",
    ),
    ChannelType.PAGERDUTY: ("PagerDuty", "Opens and resolves incidents in PagerDuty."),
    ChannelType.OPSGENIE: ("Opsgenie", "Creates and closes alerts in Opsgenie."),
    ChannelType.SMS: ("SMS", "Sends a text message through your gateway."),
    ChannelType.CALL: ("Phone call", "Calls a number through your gateway."),
}
_SECTIONS: Final = (
    Section(title="Receiver", fields=("config",)),
    Section(
        title="Notify of",
        fields=("sendFailure", "sendRecovery", "sendDegraded", "sslExpiry", "sslExpiryThreshold"),
    ),
    Section(
        title="Checks",
        fields=("autoSubscribe",),
        hint="Which checks send to it is chosen on a page of its own.",
    ),
)
_TESTED: Final[Mapping[str, State]] = {
    "SUCCESS": State.PASSING,
    "RATE_LIMITED": State.DEGRADED,
    "FAILURE": State.FAILING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel in the list."""

    id: int
    name: str
    kind: str
    checks: int
    """How many it names itself; those of its groups are not counted."""
    groups: int
    gets_new: bool
    """Whether new checks subscribe by themselves."""
    missing: str
    """The setting of the service without which it sends nothing. Empty: none is missing."""
    paused: str
    """Why it sends nothing. Empty: it sends."""
    last: tuple[State, str] | None
    """How its newest notification went, or its newest test. None: it has none."""
    last_outcome: str
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What became of a sample alert."""

    channel_id: int
    state: State
    answer: str
    """What the other side, or the API, said."""


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list and the forms of channels, and samples through them."""
    return (
        pages.show("/channels", _show),
        *resource_routes(pages, CHANNELS),
        pages.change("/channels/{id}/test", _test),
    )


async def _show(visit: Visit) -> Response:
    return await _list(visit)


async def _test(visit: Visit) -> Response:
    """Send a sample alert, and say what the other side answered."""
    channel_id = visit.request.path_params["id"]
    number = int(channel_id) if channel_id.isdecimal() else 0
    return await _list(visit, await send_test(visit, number))


async def send_test(visit: Visit, channel_id: int) -> Tested:
    """Send a sample alert through a channel."""
    answer = await visit.call(f"POST /v1/alert-channels/{channel_id}/test")
    if answer.is_error:
        return Tested(channel_id=channel_id, state=State.FAILING, answer=answer.message)
    return Tested(
        channel_id=channel_id,
        state=_TESTED[answer.body["status"]],
        answer=answer.body["notificationResult"],
    )


async def _list(visit: Visit, tested: Tested | None = None) -> Response:
    number = number_of(visit)
    missing = _list_missing(visit.backend.sending)

    def read(connection: Connection) -> tuple[list[Channel], int]:
        # Not by the API, which has the subscriptions of each, and there may be thousands.
        found = alert_channels.list_page(
            connection, visit.account_id, limit=PAGE, offset=(number - 1) * PAGE
        )
        ids = [one.id for one, _ in found]
        newest = alert_channels.list_newest(connection, visit.account_id, ids)
        rows = [_describe(one, senders, newest.get(one.id), missing) for one, senders in found]
        return rows, visit.now_ms(connection)

    rows, now_ms = await visit.read(read)
    return show_rows(
        visit,
        CHANNELS,
        ListPage(number, [{"channel": one} for one in rows]),
        "channels.html",
        channels=rows,
        tested=tested,
        now_ms=now_ms,
        has_links=visit.backend.sending.base_url is not None,
    )


def _list_missing(tools: SendingTools) -> Mapping[ChannelType, str]:
    """The settings that the operator has not made, by the type of channel that needs them."""
    needed = {
        ChannelType.EMAIL: (tools.mailer, "SMTP_URL"),
        ChannelType.SMS: (tools.sms_gateway, "SMS_GATEWAY_URL"),
        ChannelType.CALL: (tools.call_gateway, "CALL_GATEWAY_URL"),
    }
    return {kind: name for kind, (way, name) in needed.items() if way is None}


def _describe(
    channel: ChannelRow,
    senders: tuple[int, int],
    last: NotificationRow | None,
    missing: Mapping[ChannelType, str],
) -> Channel:
    checks, groups = senders
    return Channel(
        id=channel.id,
        name=name_channel(channel.type.value, channel.id, channel.config),
        kind=name_kind(channel.type.value, channel.config),
        checks=checks,
        groups=groups,
        gets_new=channel.auto_subscribe,
        missing=missing.get(channel.type, ""),
        paused=channel.pause.reason if channel.pause else "",
        last=_describe_last(last) if last else None,
        last_outcome=(last.outcome or "") if last else "",
        last_ms=last.created_ms if last else 0,
    )


def _describe_last(last: NotificationRow) -> tuple[State, str]:
    state, word = describe_delivery(last)
    is_test = isinstance(last.alert, Alert) and last.alert.is_test
    return state, f"test {word}" if is_test else word


def _form(kind: Kind) -> Form:
    title, sentence = _SENTENCES[kind.type]
    return Form(
        kind=kind.type.value,
        title=title if title.isupper() else f"{title} channel",
        sentence=sentence,
        model=kind.write,
        create="POST /v1/alert-channels",
        replace="PUT /v1/alert-channels/{id}",
        sections=_SECTIONS,
        fixed={"type": kind.type.value},
        # There may be thousands.
        left_out=frozenset({"subscriptions"}),
        neighbors=(Neighbor(path="/channels/{id}/senders", title="Checks that send to it"),),
    )


async def _kind_of(_visit: Visit, stored: Document) -> str:
    return str(stored["type"])


def _title_of(stored: Document) -> str:
    return choices.name_channel(stored)


CHANNELS: Final = Resource(
    path="/channels",
    noun="channel",
    place="Channels",
    code_types=(code.CHANNEL,),
    read="GET /v1/alert-channels/{id}",
    delete="DELETE /v1/alert-channels/{id}",
    forms=tuple(_form(kind) for kind in ALL),
    kind_of=_kind_of,
    title_of=_title_of,
    after_new="/channels/{id}/senders?new=1",
    loss="Its subscriptions and the log of its notifications are deleted with it, and nobody is"
    " notified through it any more. This cannot be undone.",
    placeholders={
        "config.address": "ops@shop.example",
        "config.number": "+4930123456",
        "config.channel": "#ops",
    },
)
