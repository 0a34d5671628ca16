"""Says which variables of a check are larger than the system hands to a program.

They are looked at before anything starts: a program that gets its variables otherwise, as a process
that waited does, could not hand them on to a browser.
"""

import os
import resource
from collections.abc import Mapping
from typing import Final

from contract.result import FailureKind
from runners.kit.failures import CheckFailed

LONGEST_BYTES: Final = 128 * 1024 - 1
"""Of one variable, with its name and the sign between: the system's own figure."""
_OURS: Final = "PICKET_"
_MOST_BYTES: Final = 6 * 1024 * 1024
"""The system hands no more to a program, however large its stack may be."""
_FOR_THE_REST_BYTES: Final = 128 * 1024
"""Arguments, and what a script's own programs are told beside."""
_EACH_BYTES: Final = 9
"""A variable has an end and an address."""


def require_variables(env: Mapping[str, str]) -> None:
    """Refuse what no program can be given; what is too long of ours is not told here.

    Raises:
        CheckFailed: of kind SCRIPT, with the largest one's name.
    """
    sizes = {
        name: len(os.fsencode(f"{name}={value}"))
        for name, value in env.items()
        if not name.startswith(_OURS)
    }
    name = max(sizes, key=sizes.__getitem__, default="")
    if sizes.get(name, 0) > LONGEST_BYTES:
        raise _refused(
            f"The variable {name} has {sizes[name]} bytes with its name; a program can be given "
            f"one of {LONGEST_BYTES} bytes at most."
        )
    together = sum(sizes.values()) + _EACH_BYTES * len(sizes)
    if together > _room_bytes():
        raise _refused(
            f"The variables have {together} bytes together; a program can be given "
            f"{_room_bytes()} at most. The largest is {name}."
        )


def _room_bytes() -> int:
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    share = _MOST_BYTES if stack == resource.RLIM_INFINITY else min(stack // 4, _MOST_BYTES)
    return share - _FOR_THE_REST_BYTES


def _refused(message: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, message, {"code": "VARIABLES"})
