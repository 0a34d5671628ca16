"""Sends one notification through its channel, and says what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from sqlalchemy import Connection

from service.alert_channels.kinds.registry import KINDS
from service.alert_channels.model import AnyAlert, ChannelRow
from service.alert_channels.rules import incident_key
from service.alert_channels.secrets import decrypt
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alert_channels.sending.message import build_message
from service.alert_channels.sending.outgoing import Outgoing, SendingTools
from service.alert_channels.templates.values import template_values
from service.alerting.model import Alert
from service.variables.model import Owner
from service.variables.secrets import variables_for_jobs
from service.vault.encryption import DecryptionError, Vault

log = structlog.get_logger()

TAKEN: Final = "The receiver took it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """An alert, and all that its channel needs of the database to send it."""

    id: str
    """The notification's; each try has the same."""
    channel: ChannelRow
    alert: AnyAlert
    config: Mapping[str, Any] | None = field(repr=False)
    """None: it cannot be decrypted."""
    variables: Mapping[str, str] = field(repr=False)
    """Those of the account, and of the check's group if it is in one."""


def read_envelope(
    connection: Connection,
    vault: Vault,
    *,
    notification_id: str,
    channel: ChannelRow,
    alert: AnyAlert,
) -> Envelope:
    """Read what sending needs."""
    try:
        config = decrypt(channel, vault)
    except DecryptionError as problem:
        log.exception("alert_channels.unreadable", channel_id=channel.id, reason=str(problem))
        config = None
    return Envelope(
        id=notification_id,
        channel=channel,
        alert=alert,
        config=config,
        variables=_read_variables(connection, vault, alert),
    )


def _read_variables(connection: Connection, vault: Vault, alert: AnyAlert) -> dict[str, str]:
    owners = [Owner.account(alert.account_id)]
    if isinstance(alert, Alert) and alert.group_id is not None:
        owners.append(Owner.group(alert.account_id, alert.group_id))
    known = variables_for_jobs(connection, vault, alert.account_id, owners=owners)
    return {variable.key: variable.value for variable in known.of(owners)}


async def send(envelope: Envelope, tools: SendingTools, *, now_ms: int) -> None:
    """Send a notification; returns once the receiver has taken it.

    Raises:
        ChannelError: it did not.
    """
    if envelope.config is None:
        raise ChannelError(
            "The stored config of the channel cannot be read; replace the channel with PUT.",
            Fault.FINAL,
        )
    alert, base_url = envelope.alert, tools.base_url
    outgoing = Outgoing(
        id=envelope.id,
        incident_key=incident_key(alert),
        alert=alert,
        config=envelope.config,
        message=build_message(alert, base_url=base_url),
        # Nobody's variable takes the place of one of the alert's.
        values={**envelope.variables, **template_values(alert, base_url=base_url)},
        now_ms=now_ms,
        tools=tools,
    )
    await KINDS[envelope.channel.type].send(outgoing)
