"""Groups as they are stored and asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from service.alert_channels.model import ChannelChoice
from service.variables.model import VariableRow
from service.vault.encryption import Place

BASE_URL: Final = "GROUP_BASE_URL"
"""What scripts and templates call a group's `apiCheckDefaults.url`."""
GIVES_NO_RETRIES: Final = "FALLBACK"
"""The retry strategy of a group that leaves retries to its checks."""


class Form(IntEnum):
    """Which kind of body wrote a group: in the second, null leaves a setting to the checks."""

    V1 = 1
    V2 = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFilter:
    """Which groups a list shows; empty fields let all through."""

    tag: str | None = None
    """None: any tags."""
    name: str | None = None
    """Part of the name. None: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group as it is stored: what is secret in it stands apart (`service.vault.bodies`)."""

    id: int
    account_id: str
    name: str
    form: Form
    doc: Mapping[str, Any]
    created_ms: int
    updated_ms: int | None
    """None: never changed."""
    variables: Sequence[VariableRow] = ()
    """Its own; read by `actions.complete` alone."""
    channels: Sequence[ChannelChoice] = ()
    """What it says about alert channels; read as above."""
    secrets: bytes | None = field(default=None, repr=False)
    """What is missing in `doc`, encrypted. None: nothing is."""

    @property
    def place(self) -> Place:
        """Where its secrets are encrypted for."""
        return place_of(self.account_id, self.id)


def place_of(account_id: str, group_id: int) -> Place:
    """Where the secrets of a group are encrypted for."""
    return ("check_group", account_id, str(group_id), "secrets")
