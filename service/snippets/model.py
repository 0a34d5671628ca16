"""Snippets as they are stored, sent and seen."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from contract.scripts import MAX_SCRIPT_BYTES, script_problem, snippet_name_problem
from service.http.schema import RequestModel, ResponseModel, Text, judged_by
from service.http.times import Moment, moment, optional_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetRow:
    """A snippet as it is stored."""

    id: int
    name: str
    script: str
    created_ms: int
    updated_ms: int | None
    """None: never changed."""


class SnippetWrite(RequestModel):
    """A snippet in a request."""

    name: Annotated[Text, Field(min_length=1), judged_by(snippet_name_problem)]
    """Its unique name; scripts import it as `./snippets/<name>.js`."""
    script: Annotated[Text, Field(min_length=1), judged_by(script_problem)] = Field(
        description=f"Node.js code, of at most {MAX_SCRIPT_BYTES} bytes."
    )


class SnippetShown(ResponseModel):
    """A snippet."""

    id: int
    name: str
    script: str
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(alias="updated_at")
    """Null: never changed."""


def render(row: SnippetRow) -> SnippetShown:
    """A stored snippet as its answer."""
    return SnippetShown(
        id=row.id,
        name=row.name,
        script=row.script,
        created_at=moment(row.created_ms),
        updated_at=optional_moment(row.updated_ms),
    )
