"""One notification on its way, and what channels send by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from service.alert_channels.model import AnyAlert
from service.alert_channels.sending.egress import EgressRule, parse_networks
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alert_channels.sending.http_client import HttpClient
from service.alert_channels.sending.message import Message, Tone
from service.alert_channels.templates.filling import Budget, fill
from service.alert_channels.templates.functions import Surroundings
from service.alert_channels.templates.parser import TemplateError, parse
from service.mail.mailer import Mailer

_LOCAL_REFUSED: Final = EgressRule()
_ANYWHERE: Final = EgressRule(parse_networks("0.0.0.0/0,::/0"))
_OPSGENIE: Final = {"US": "https://api.opsgenie.com", "EU": "https://api.eu.opsgenie.com"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingTools:
    """What all channels of the service send by."""

    http: HttpClient = field(default_factory=lambda: HttpClient(_LOCAL_REFUSED))
    """Goes to addresses that people choose."""
    gateway_http: HttpClient = field(default_factory=lambda: HttpClient(_ANYWHERE))
    """Goes to the addresses that the operator chose."""
    mailer: Mailer | None = None
    """None: there is no mail server."""
    sms_gateway: str | None = field(default=None, repr=False)
    """The URL that takes text messages. None: there is none."""
    call_gateway: str | None = field(default=None, repr=False)
    """The URL that takes calls. None: there is none."""
    pagerduty_url: str = "https://events.pagerduty.com/v2/enqueue"
    opsgenie_urls: Mapping[str, str] = field(default_factory=lambda: _OPSGENIE)
    """By region."""
    base_url: str | None = None
    """Where people reach the service. None: messages have no links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A notification as a channel sends it."""

    id: str
    """Each try has the same."""
    incident_key: str
    """All alerts of one trouble have the same, from the first to the recovery."""
    alert: AnyAlert
    config: Mapping[str, Any] = field(repr=False)
    """The channel's config."""
    message: Message
    values: Mapping[str, Any] = field(repr=False)
    """Variables of templates: those of the alert, of the account and of the check's group."""
    now_ms: int
    tools: SendingTools
    budget: Budget = field(default_factory=Budget, repr=False)
    """What is left for the templates of all its fields together."""

    @property
    def is_recovery(self) -> bool:
        """Whether it ends an incident."""
        return self.message.tone is Tone.RECOVERY

    def setting(self, name: str) -> str:
        """A text of the config, with its variables filled in.

        Raises:
            ChannelError: it cannot be filled in.
        """
        return self.fill(str(self.config.get(name) or ""), f"config.{name}", encodes=False)

    def fill(self, template: str, field_name: str, *, encodes: bool) -> str:
        """A text with its variables filled in; `encodes`: `{{x}}` is URI-encoded.

        Raises:
            ChannelError: it cannot be filled in.
        """
        now = datetime.fromtimestamp(self.now_ms / 1000, UTC)
        # Each try sends the same: chance comes from what stays the same.
        around = Surroundings(now, Random(f"{self.id} {field_name}"))  # noqa: S311 - no secret
        try:
            parse(template)
        except TemplateError:  # it quotes the text, which may be a secret, and readers see this
            raise ChannelError(
                f'"{field_name}" cannot be read as a template.', Fault.FINAL
            ) from None
        try:
            return fill(template, self.values, around, encodes=encodes, budget=self.budget)
        except TemplateError as problem:
            raise ChannelError(f'"{field_name}" {problem}.', Fault.FINAL) from None
