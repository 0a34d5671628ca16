"""Who can have asked for a change: API keys and users, as pages name them."""

from collections.abc import Iterable, Mapping

from service.accounts.model import KeyRow
from service.users.model import UserRow


def name_people(keys: Iterable[KeyRow], users: Iterable[UserRow]) -> Mapping[str, str]:
    """Their names, by what `key_of_person` makes of them."""
    named = {f"key:{key.id}": f"{key.name or 'API key'} ({key.masked})" for key in keys}
    return {**named, **{f"user:{user.id}": user.shown_name for user in users}}


def key_of_person(key_id: str | None, user_id: str | None) -> str:
    """A user or an API key in one text, as addresses of pages have it."""
    return f"user:{user_id}" if user_id else f"key:{key_id}"
