"""Notifications on their way, without a database."""

from typing import Any

from service.alert_channels.kinds.registry import KINDS
from service.alert_channels.model import AnyAlert, ChannelType
from service.alert_channels.rules import incident_key
from service.alert_channels.sending.egress import EgressRule, parse_networks
from service.alert_channels.sending.http_client import HttpClient
from service.alert_channels.sending.message import build_message
from service.alert_channels.sending.outgoing import Outgoing, SendingTools
from service.alert_channels.templates.values import template_values
from tests.builders.alert_channels import CONFIGS, an_alert
from tests.fakes.clock import START_MS

BASE_URL = "https://picket.test"
LOOPBACK = EgressRule(parse_networks("127.0.0.0/8"))


def tools(*, limit_s: float = 10.0, **more: Any) -> SendingTools:
    """What channels of tests send by: they may reach servers of tests."""
    return SendingTools(http=HttpClient(LOOPBACK, limit_s), **{"base_url": BASE_URL, **more})


def outgoing(
    kind: str,
    alert: AnyAlert | None = None,
    *,
    by: SendingTools | None = None,
    variables: dict[str, str] | None = None,
    **config: Any,
) -> Outgoing:
    """An alert on its way through a channel with this config."""
    alert = alert or an_alert()
    write = KINDS[ChannelType(kind)].write
    body = {"type": kind, "config": {**CONFIGS[kind], **config}}
    whole = write.model_validate(body).model_dump(mode="json", by_alias=True)["config"]
    by = by or tools()
    return Outgoing(
        id="notification-1",
        incident_key=incident_key(alert),
        alert=alert,
        config=whole,
        message=build_message(alert, base_url=by.base_url),
        values={**(variables or {}), **template_values(alert, base_url=by.base_url)},
        now_ms=START_MS,
        tools=by,
    )
