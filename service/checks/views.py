"""Checks as the API shows them: what was written, every default filled in, and what we know."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from contract.checks import CheckType
from service.alert_channels.model import ChannelType, CheckSubscriptions
from service.checks.model import CheckRow
from service.checks.schemas import VariablesWrite
from service.checks.secrets import decrypt, decrypt_for_people
from service.checks.types.registry import TYPES
from service.http.errors import UnreadableError
from service.http.times import format_time
from service.variables.schemas import compare as variable
from service.variables.schemas import render_doc
from service.vault.encryption import DecryptionError, Vault, Viewer

_SHOWN_CHANNELS: Final[Mapping[ChannelType, tuple[str, ...]]] = {
    ChannelType.EMAIL: ("address",),
    ChannelType.WEBHOOK: ("url", "name", "method", "headers", "queryParameters"),
    ChannelType.SLACK: ("url",),
    ChannelType.SMS: ("number", "name"),
}
"""The kinds that a check's answer names, with the fields of each; secrets are hidden in them."""


def render(
    row: CheckRow, *, base_url: str, viewer: Viewer, as_it_runs: bool = False
) -> dict[str, Any]:
    """A stored check, read with its variables, as its answer; what is not shown is not opened.

    `as_it_runs`: with its group's settings in the place of what it left open.

    Raises:
        UnreadableError: a secret is to be shown, and cannot be decrypted.
    """
    if not (row.effective if as_it_runs else row.doc):  # its text is no JSON
        return _render_broken(row, viewer)
    revealed = viewer.reveal(row, decrypt_for_people)
    doc = revealed.effective if as_it_runs else revealed.doc
    if not viewer.may_write:
        doc = _hide_ping_token(doc)
    answer: dict[str, Any] = {
        "id": row.id,
        "checkType": row.type,
        **doc,
        **_describe_alerts(row.alerts, as_it_runs=as_it_runs),
        "created_at": format_time(row.created_ms),
        "updated_at": format_time(row.updated_ms),
    }
    if issubclass(TYPES[CheckType(row.type)].write, VariablesWrite):
        answer["environmentVariables"] = [render_doc(one, viewer) for one in row.variables]
    if row.type == "HEARTBEAT":
        answer.update(_add_ping_url(doc["heartbeat"], base_url))
    return answer


def _describe_alerts(alerts: CheckSubscriptions, *, as_it_runs: bool) -> dict[str, Any]:
    choices = alerts.effective if as_it_runs else alerts.own
    return {
        "alertChannelSubscriptions": [choice.shown() for choice in choices],
        "alertChannels": {
            kind.value.lower(): [
                {name: channel.config.get(name) for name in fields}
                for channel in alerts.channels
                if channel.type is kind
            ]
            for kind, fields in _SHOWN_CHANNELS.items()
        },
    }


def _render_broken(row: CheckRow, viewer: Viewer) -> dict[str, Any]:
    """What is left of a check whose text in the database is no JSON."""
    if not viewer.hides_unreadable:
        raise UnreadableError(
            f"The stored check {row.id} cannot be read: its text in the database is not JSON."
            " Replace the check with PUT, or delete it."
        )
    return {
        "id": row.id,
        "checkType": row.type,
        "name": row.name,
        "activated": row.activated,
        "created_at": format_time(row.created_ms),
        "updated_at": format_time(row.updated_ms),
    }


def compare(row: CheckRow, *, base_url: str, vault: Vault) -> dict[str, Any]:
    """All of a check, its secrets too: to tell what a change changed, and never for an answer.

    Secrets that cannot be decrypted equal nothing, so that whatever takes their place is a change.
    """
    variables = [variable(one, vault) for one in row.variables]
    bare = replace(_decrypt_or_blank(row, vault), variables=())
    whole = render(bare, base_url=base_url, viewer=Viewer.writer(vault).hiding)
    return {**whole, "environmentVariables": variables}


def _hide_ping_token(doc: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is stored in clear, without what else opens a door: pings change states."""
    if "heartbeat" not in doc:
        return doc
    return {**doc, "heartbeat": {**doc["heartbeat"], "pingToken": ""}}


def _decrypt_or_blank(row: CheckRow, vault: Vault) -> CheckRow:
    try:
        return decrypt(row, vault)
    except DecryptionError:
        return replace(row, doc={**row.doc, "request": None}, secrets=None)


def _add_ping_url(heartbeat: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    token = heartbeat["pingToken"]
    url = f"{base_url}/ping/{token}" if token else ""
    return {"heartbeat": {**heartbeat, "pingUrl": url}, "pingUrl": url}
