"""The set-up of this machine is in the way, and what to do about it is known."""


class HostError(OSError):
    """Reads `cause; remedy`, each without a full stop."""

    def __init__(self, cause: str, *, remedy: str) -> None:
        super().__init__(f"{cause}; {remedy}")
        self.cause = cause
        self.remedy = remedy
