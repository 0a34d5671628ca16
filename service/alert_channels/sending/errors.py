"""Why a notification was not taken."""

from enum import Enum


class Fault(Enum):
    """What follows from it."""

    TEMPORARY = "temporary"
    """The receiver cannot be reached, or takes nothing for now; it is tried again for a day."""
    RATE_LIMITED = "rate_limited"
    """The receiver takes no more for now; it is tried again for a day."""
    REFUSED = "refused"
    """The receiver answered and did not take it, which the next may fare better with; it is tried
    again a few times."""
    FINAL = "final"
    """This one is given up; the next may do better."""
    PERMANENT = "permanent"
    """The receiver takes nothing any more from this channel, which is paused."""


class ChannelError(Exception):
    """The receiver did not take a notification."""

    def __init__(
        self, message: str, fault: Fault = Fault.TEMPORARY, *, retry_after_s: float | None = None
    ) -> None:
        """Take one sentence, which people read: it has no URL, no header and no secret."""
        super().__init__(message)
        self.message = message
        self.fault = fault
        self.retry_after_s = retry_after_s

    @property
    def is_permanent(self) -> bool:
        """Whether it pauses the channel."""
        return self.fault is Fault.PERMANENT
