"""`picket keys`, `accounts`, `audit` and `openapi`: commands of the service, under our name."""

from collections.abc import Sequence

from picket.errors import CommandError, ExitCode
from service.cli import commands
from service.errors import CommandError as NotDoneError


def at_service(arguments: Sequence[str]) -> int:
    """Carry a command of the service out; its exit code."""
    try:
        ended = commands.main(list(arguments), prog_name="picket", standalone_mode=False)
    except NotDoneError as problem:
        code = ExitCode.OWN_FAULT if problem.own_fault else ExitCode.BAD_INPUT
        raise CommandError(str(problem), code) from problem
    return int(ended or ExitCode.OK)
