"""Configs of channels: stored encrypted as a whole, beside what keys are shown that only read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from sqlalchemy import Row

from service.alert_channels import store
from service.alert_channels.kinds.registry import KINDS
from service.alert_channels.model import ChannelRow, ChannelType, place_of
from service.http.errors import InvalidError, UnreadableError
from service.vault.encryption import DecryptionError, Vault
from service.vault.reencrypt import EncryptedTable
from service.vault.texts import HIDDEN

PAIRS: Final = ("headers", "queryParameters")
"""Lists of keys and values; all values are secret, locked or not."""
Config = Mapping[str, Any]


def hide(kind: ChannelType, config: Config) -> dict[str, Any]:
    """A config as it is shown to keys that only read."""
    shown = dict(config)
    for name in KINDS[kind].secret_fields:
        if shown.get(name):
            shown[name] = HIDDEN
    for name in PAIRS:
        if name in shown:
            pairs = shown[name]
            shown[name] = [{**pair, "value": pair["value"] and HIDDEN} for pair in pairs]
    return shown


def restore(kind: ChannelType, config: Config, stored: Config) -> dict[str, Any]:
    """A config with what is stored where `HIDDEN` was sent.

    Raises:
        InvalidError: nothing is stored there.
    """
    whole = dict(config)
    for name in KINDS[kind].secret_fields:
        if whole.get(name) == HIDDEN:
            whole[name] = _require_stored(stored.get(name), f"config.{name}")
    for name in PAIRS:
        if name in whole:
            whole[name] = _restore_pairs(whole[name], stored.get(name) or (), name)
    return whole


def _restore_pairs(sent: Sequence[Config], stored: Sequence[Config], name: str) -> list[Config]:
    """By its key; of several with one key the first of the stored ones that is left."""
    left = [pair for pair in stored if pair.get("value")]
    whole: list[Config] = []
    for order, pair in enumerate(sent):
        same = next((one for one in left if one["key"] == pair["key"]), None)
        if same is not None:
            left.remove(same)
        if pair["value"] == HIDDEN:
            value = _require_stored(same and same["value"], f"config.{name}[{order}].value")
            whole.append({**pair, "value": value})
        else:
            whole.append(pair)
    return whole


def _require_stored(found: Any, field: str) -> str:
    if not found:
        raise InvalidError(
            f'"{field}" holds {HIDDEN}, which keeps the stored value, and nothing is stored here.'
            " Send the value.",
            keys=(field,),
        )
    return str(found)


def encrypt(
    kind: ChannelType, config: Config, vault: Vault, *, account_id: str, channel_id: int
) -> dict[str, Any]:
    """The columns of a config."""
    text = msgspec.json.encode(config).decode()
    sealed = vault.encrypt(text, place_of(account_id, channel_id))
    return {"config": hide(kind, config), "secrets": sealed}


def decrypt(row: ChannelRow, vault: Vault) -> dict[str, Any]:
    """The whole config of a channel.

    Raises:
        DecryptionError: it cannot be decrypted.
    """
    whole: dict[str, Any] = msgspec.json.decode(vault.decrypt(row.secrets, row.place))
    return whole


def decrypt_for_people(row: ChannelRow, vault: Vault) -> ChannelRow:
    """The channel with its whole config, or an error that tells a person how to repair it.

    Raises:
        UnreadableError: it cannot be decrypted.
    """
    try:
        return replace(row, config=decrypt(row, vault))
    except DecryptionError as problem:
        raise UnreadableError(
            f"The stored config of the alert channel {row.id} cannot be read: {problem}."
            " Replace the channel with PUT, or delete it."
        ) from problem


def _reencrypt(row: Row[Any], vault: Vault) -> Mapping[str, Any]:
    place = place_of(row.account_id, row.id)
    return {"secrets": vault.encrypt(vault.decrypt(row.secrets, place), place)}


ENCRYPTED: Final = EncryptedTable(
    column=store.SECRETS,
    unreadable="alert_channels.unreadable",
    reencrypt=_reencrypt,
    describe=lambda row: {"channel_id": str(row.id)},
)
