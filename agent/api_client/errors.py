"""What can go wrong between the agent and its service."""


class ServiceError(Exception):
    """The service did not do what it was asked; the text is one sentence without secrets."""


class ServiceAwayError(ServiceError):
    """It could not be reached or could not serve us now; it is worth trying again."""

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, is_unreachable: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        """What the service asked for. None: it did not say."""
        self.is_unreachable = is_unreachable
        """Whether nothing of the service's own came back, so that no call can succeed."""


class KeyRefusedError(ServiceError):
    """The service does not know our key (any more)."""


class VersionRefusedError(ServiceError):
    """This version of the agent is below the service's floor."""


class ElsewhereError(ServiceError):
    """A piece of a file begins elsewhere than where the service's bytes of it end."""

    def __init__(self, message: str, *, offset: int) -> None:
        super().__init__(message)
        self.offset = offset
        """Where to go on."""


class LinkedError(ServiceError):
    """The file is elsewhere, behind a link that needs no key."""

    def __init__(self, url: str) -> None:
        super().__init__("The file is elsewhere.")
        self.url = url


class StoreError(ServiceError):
    """A file store that the service named cannot be used; the service itself can."""


class JobGoneError(ServiceError):
    """The service does not know the job (any more), or another agent has it."""


class RequestRefusedError(ServiceError):
    """The service says that the request is wrong: a mistake of ours, the same each time."""
