"""What to do about a module that a script did not find. Pure."""

import re
from typing import Final

from contract.near_names import near_name
from contract.runtimes import RUNTIMES

_MISSING: Final = re.compile(
    r"(?:\w{1,40}(?: \[\w{1,40}\])?: )?"
    r"(?:Cannot find (?:module|package) '(?P<module>[^'\n]{1,200})'"
    r"|(?P<library>\S{1,200}) is not a library of this runtime)"
)
"""Where the error begins with it: one may show such words of its target's."""
_ALIKE: Final = 0.8
"""Names of modules are short, and many: `express` is not meant as `expect`."""
_OWN: Final = (
    "Files of its own a check names in `dependencies`, or in `dependencyFiles` of a check file."
)
_LIBRARIES: Final = (
    "Scripts have the libraries of their runtime alone, which GET /v1/runtimes lists"
)


def advice(message: str) -> str | None:
    """A sentence to be told behind the error. None: it is of something else."""
    found = _MISSING.match(message)
    if found is None:
        return None
    name = found["module"] or found["library"]
    if name.startswith((".", "/")):
        return _OWN
    libraries = {library for one in RUNTIMES.values() for library in one.libraries}
    meant = near_name(name, libraries, alike=_ALIKE)
    return f"{_LIBRARIES}; did you mean {meant}?" if meant else f"{_LIBRARIES}."
