"""What the service needs to know of a kind of channels."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from service.alert_channels.model import ChannelType
from service.alert_channels.schemas import ChannelWrite
from service.alert_channels.sending.outgoing import Outgoing


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of channels."""

    write: type[ChannelWrite]
    """The body of its channels."""
    send: Callable[[Outgoing], Awaitable[None]]
    """Sends a notification; raises `ChannelError` where the receiver did not take it."""
    secret_fields: tuple[str, ...] = ()
    """Fields of the config that are encrypted and hidden, besides headers and parameters."""

    @property
    def type(self) -> ChannelType:
        """What it is called in the API."""
        return self.write.kind
