"""Faults of the service as a whole; refusals of the public API are in `service.http.errors`."""


class SettingsError(Exception):
    """Settings that the service cannot start with: one sentence per problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class CommandError(Exception):
    """A command cannot be carried out: one sentence."""

    def __init__(self, message: str, *, own_fault: bool = False) -> None:
        super().__init__(message)
        self.own_fault = own_fault
        """Whether another try may do it as it stands."""
