"""Where the pepper of all keys comes from: a setting, or a file that the first start makes."""

import secrets
from pathlib import Path
from typing import Final

from service.accounts.keys import Pepper
from service.data_dir import make_own_file
from service.errors import SettingsError
from service.settings import Settings

FILE: Final = "key-pepper"


def pepper_of(settings: Settings) -> Pepper:
    """The pepper; made and kept in the data directory when no setting gives one.

    Raises:
        SettingsError: its file can neither be read nor made.
    """
    file = settings.data_dir / FILE
    try:
        if settings.key_pepper is None and not file.exists():
            make_own_file(file, secrets.token_urlsafe(32).encode())
    except OSError as problem:
        raise _unusable(file, problem) from problem
    return read_kept_pepper(settings)


def read_kept_pepper(settings: Settings) -> Pepper:
    """The pepper of a service that has started before.

    Raises:
        SettingsError: its file cannot be read, or is empty.
    """
    if settings.key_pepper is not None:
        return Pepper(settings.key_pepper.encode())
    file = settings.data_dir / FILE
    try:
        kept = file.read_bytes().strip()
    except OSError as problem:
        raise _unusable(file, problem) from problem
    if not kept:
        raise SettingsError((f"{file} is empty; restore what it held, or set KEY_PEPPER",))
    return Pepper(kept)


def _unusable(file: Path, problem: OSError) -> SettingsError:
    why = f"cannot be used: {problem.strerror}"
    return SettingsError((f"{file}, which holds the pepper of all keys, {why}",))


def wrong_pepper(settings: Settings) -> SettingsError:
    """The refusal to go on with another pepper than the one that the keys were stored with."""
    if settings.key_pepper is not None:
        return SettingsError(
            ("KEY_PEPPER is not the one that this database's keys were stored with; set that one",)
        )
    file = settings.data_dir / FILE
    sentence = f"{file} does not hold the pepper that this database's keys were stored with"
    return SettingsError((f"{sentence}; restore that file, or set KEY_PEPPER",))
