"""Errors in the set-up of this machine, each with its remedy."""


class HostError(OSError):
    """An error of the host, whose text is `cause; remedy`, each without a full stop."""

    def __init__(self, cause: str, *, remedy: str) -> None:
        super().__init__(f"{cause}; {remedy}")
        self.cause = cause
        self.remedy = remedy
