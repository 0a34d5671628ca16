"""All kinds of channels."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import Discriminator, Tag

from service.alert_channels.kinds.email import EMAIL
from service.alert_channels.kinds.kind import Kind
from service.alert_channels.kinds.opsgenie import OPSGENIE
from service.alert_channels.kinds.pagerduty import PAGERDUTY
from service.alert_channels.kinds.phone import CALL, SMS
from service.alert_channels.kinds.slack import SLACK
from service.alert_channels.kinds.webhook import WEBHOOK

ALL: Final[tuple[Kind, ...]] = (EMAIL, SLACK, WEBHOOK, PAGERDUTY, OPSGENIE, SMS, CALL)
"""Adding a kind adds a line here."""
KINDS: Final = MappingProxyType({kind.type: kind for kind in ALL})


def _tag(kind: str) -> str:
    """A refusal passes over what has brackets when it names a field."""
    return f"[{kind}]"


def _tell_kind(body: Any) -> str | None:
    kind = body.get("type") if isinstance(body, Mapping) else None
    return _tag(kind) if isinstance(kind, str) else None


_BODIES: Final[Any] = reduce(or_, (Annotated[kind.write, Tag(_tag(kind.type))] for kind in ALL))
_NAMES: Final = ", ".join(kind.type for kind in ALL)
ANY_WRITE: Final[Any] = Annotated[
    _BODIES,
    Discriminator(
        _tell_kind,
        custom_error_type="rule",
        custom_error_message="{sentence}",
        custom_error_context={"field": "type", "sentence": f"must be one of {_NAMES}"},
    ),
]
"""The body of a channel of any kind."""
