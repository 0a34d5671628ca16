"""How resources of one type are read, made, compared and deleted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection

from service.accounts.keys import Pepper
from service.http.errors import ApiError, InvalidError, NotFoundError
from service.http.validation import problems_of
from service.projects.model import Resource, ResourceError, ResourceProblem
from service.vault.encryption import Scope

View = Mapping[str, Any]
"""All of a thing, its secrets too: to tell what a change changes, and never for an answer."""
OWN_FIELDS: Final = frozenset(
    {"id", "account_id", "accountId", "created_at", "updated_at", "created_ms", "updated_ms"}
)
"""What no code says of a thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """In which transaction a deployment is made, for whom, and when."""

    connection: Connection
    scope: Scope
    pepper: Pepper


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """One type; its functions are part of the deployment's transaction."""

    placeholder: object
    """What stands for an id of the type while a payload is checked beforehand."""
    is_number: bool
    """Whether its ids are numbers."""
    read: Callable[[Mapping[str, Any]], Any]
    """A payload, with ids for references, as the body of its API."""
    view: Callable[[Work, str], View | None]
    """The thing as it is. None: there is none with this id."""
    create: Callable[[Work, Any], str]
    """Makes one; its id."""
    replace: Callable[[Work, str, Any], str]
    """Sets one up anew; its id, which may be another one."""
    delete: Callable[[Work, str], None]

    def read_id(self, physical_id: str) -> str | int:
        """An id as its API answers it."""
        return int(physical_id) if self.is_number and physical_id.isdecimal() else physical_id


def reader(model: Any) -> Callable[[Mapping[str, Any]], Any]:
    """Reads payloads as this model."""

    @cache
    def adapter() -> TypeAdapter[Any]:
        """Built at the first use: the service starts without."""
        return TypeAdapter(model)

    return lambda payload: adapter().validate_python(payload)


def look(find: Callable[[], View]) -> View | None:
    """What is found. None: it is not there."""
    try:
        return find()
    except NotFoundError:
        return None


def blamed(resource: Resource, problem: Exception) -> ResourceError | None:
    """What is wrong with a resource, where its own API says so. None: that is not the problem."""
    if isinstance(problem, ResourceError):
        return problem
    if isinstance(problem, ValidationError):
        errors = problem.errors(include_url=False)
        found = problems_of([{**error, "loc": ("body", *error["loc"])} for error in errors])
        message = " ".join(one.sentence for one in found)
        keys = tuple(one.path for one in found if one.path)
    elif isinstance(problem, InvalidError):
        message, keys = problem.message, problem.keys
    elif isinstance(problem, ApiError):
        message, keys = problem.message, ()
    else:
        return None
    return ResourceError((ResourceProblem(resource=resource, message=message, keys=keys),))
