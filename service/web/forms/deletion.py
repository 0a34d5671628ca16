"""The page that asks whether something shall really be deleted."""

from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from service.web.visit import Visit

_UNPROCESSABLE: Final = 422


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What is to be deleted, in words."""

    noun: str
    """What it is, as in `check`."""
    name: str
    loss: str
    """What is lost with it."""
    place: str
    """What the page is called that `list_path` leads to."""
    list_path: str
    back: str
    """Where whoever keeps it goes."""
    is_named: bool = False
    """Whether its name has to be typed first."""


def ask_to_delete(visit: Visit, deletion: Deletion, *, problem: str = "") -> Response:
    """Ask; with a problem, once more."""
    return visit.page(
        "form_delete.html",
        status=_UNPROCESSABLE if problem else 200,
        deletion=deletion,
        problem=problem,
    )
