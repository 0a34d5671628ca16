"""Snippets as the API shows them; pure."""

from service.http.times import maybe_moment, moment
from service.snippets.model import SnippetRow, SnippetShown


def shown(row: SnippetRow) -> SnippetShown:
    """A stored snippet as its answer."""
    return SnippetShown(
        id=row.id,
        name=row.name,
        script=row.script,
        created_at=moment(row.created_ms),
        updated_at=maybe_moment(row.updated_ms),
    )
