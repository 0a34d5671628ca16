"""Says which variables of a check are larger than the system hands to a program."""

import os
from collections.abc import Mapping
from typing import Final

from contract.result import FailureKind
from runners.kit.failures import CheckFailed

LONGEST_BYTES: Final = 128 * 1024 - 1
"""Of one variable, with its name and the sign between: the system's own figure."""
_OURS: Final = "PICKET_"


def require_variables(env: Mapping[str, str]) -> None:
    """Name the largest variable of an environment that the system has refused.

    Where it is one of ours that is too long, nobody else is to blame, and nothing is raised.

    Raises:
        CheckFailed: of kind SCRIPT: the check's own are too large.
    """
    sizes = {name: len(os.fsencode(f"{name}={value}")) for name, value in env.items()}
    told = {name: size for name, size in sizes.items() if not name.startswith(_OURS)}
    name = max(told, key=told.__getitem__, default=_OURS)
    if told.get(name, 0) > LONGEST_BYTES:
        raise _refused(
            f"The variable {name} has {told[name]} bytes with its name; a program can be given "
            f"one of {LONGEST_BYTES} bytes at most."
        )
    if told and max(sizes.values()) <= LONGEST_BYTES:
        raise _refused(
            f"The variables have {sum(told.values())} bytes together, which is more than a program "
            f"can be given; {name} is the largest."
        )


def _refused(message: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, message, {"code": "VARIABLES"})
