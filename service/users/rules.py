"""Which addresses, names and passwords users may have."""

import unicodedata

from service.http.errors import InvalidError
from service.mail.rules import find_address_problem
from service.users.model import (
    LEAST_PASSWORD_LETTERS,
    MOST_NAME_LETTERS,
    MOST_PASSWORD_LETTERS,
    NewUser,
)


def fold_email(email: str) -> str:
    """An address as it is compared: people write theirs in capitals or not."""
    return unicodedata.normalize("NFKC", email.strip()).casefold()


def normalize_password(password: str) -> str:
    """A password as it is hashed: one keyboard sends é as one sign, another as two."""
    return unicodedata.normalize("NFKC", password)


def require_password(password: str) -> None:
    """Check a password that somebody chooses.

    Raises:
        InvalidError: it is too short, or too long to be hashed.
    """
    # The raw length first: to normalize a long text of accents takes time of its square.
    letters = len(password)
    if letters <= MOST_PASSWORD_LETTERS:
        letters = len(normalize_password(password))
    if not LEAST_PASSWORD_LETTERS <= letters <= MOST_PASSWORD_LETTERS:
        raise InvalidError(
            f"The password has {letters} characters; use {LEAST_PASSWORD_LETTERS} to"
            f" {MOST_PASSWORD_LETTERS}.",
            keys=("password",),
        )


def require_user(new: NewUser) -> None:
    """Check who is to be added.

    Raises:
        InvalidError: the address is none, or the name is too long.
    """
    problem = find_address_problem(new.email)
    if problem is not None:
        raise InvalidError(f'"{new.email[:MOST_NAME_LETTERS]}" {problem}.', keys=("email",))
    if len(new.name) > MOST_NAME_LETTERS:
        raise InvalidError(
            f"The name has {len(new.name)} characters; use at most {MOST_NAME_LETTERS}.",
            keys=("name",),
        )
