"""What a suite's test command starts, and what is added to it. Pure."""

import itertools
import re
import shlex
from collections.abc import Iterable
from typing import Final

DEFAULTS: Final = (("workers", "4"), ("retries", "2"))
"""Of a suite that does not say otherwise."""
ALWAYS: Final = ("--trace", "on")
"""Whatever the suite says: each run leaves traces."""

_SHELL_SIGNS: Final = frozenset(";&|<>()$`\\*?[]{}~#!\n")
_STARTS: Final = (
    ("npx", "playwright", "test"),
    ("npx", "--no", "playwright", "test"),
    ("npx", "--no-install", "playwright", "test"),
    ("npx", "--yes", "playwright", "test"),
    ("npx", "-y", "playwright", "test"),
    ("npm", "exec", "playwright", "test"),
    ("npm", "exec", "--", "playwright", "test"),
    ("pnpm", "playwright", "test"),
    ("pnpm", "exec", "playwright", "test"),
    ("bunx", "playwright", "test"),
    ("bun", "x", "playwright", "test"),
    ("yarn", "playwright", "test"),
    ("yarn", "run", "playwright", "test"),
    ("playwright", "test"),
)
"""Ways to write the same thing, longest first where one begins like another."""
_LONGEST: Final = 50_000
"""Linux hands a program no text of more than 128 KiB."""
_CONFIG_OPTION: Final = ("--config", "-c")
CONFIG_NAMES: Final = tuple(
    f"playwright.config.{ending}" for ending in ("ts", "js", "mts", "mjs", "cts", "cjs")
)
"""Which Playwright takes by itself, in its order."""


class CommandError(Exception):
    """The test command cannot be read; the text says why. The fault of whoever wrote it."""


def playwright_arguments(command: str) -> tuple[str, ...] | None:
    """The arguments of `playwright test`. None: it is another command, for a shell.

    Raises:
        CommandError: it is empty, or a quotation has no end.
    """
    words = _words(command)
    if "--bun" in words:
        raise CommandError(
            "The test command asks for Bun's own runtime by --bun; leave it out, as Playwright "
            "runs on Node."
        )
    if _has_shell_signs(command):
        return None
    for start in _STARTS:
        if tuple(words[: len(start)]) == start:
            return tuple(words[len(start) :])
    return None


def config_named(words: Iterable[str]) -> str | None:
    """The configuration that the arguments name. None: they name none."""
    for option, value in itertools.pairwise((*words, "")):
        name, equals, joined = option.partition("=")
        if name in _CONFIG_OPTION:
            return (joined if equals else value) or None
    return None


def added_arguments(texts: Iterable[str], *, is_complete: bool) -> tuple[str, ...]:
    """What is added to `playwright test`.

    `texts`: all that may set something, such as the configuration and what it imports; with
    `is_complete` false there is more that could not be read, and nothing is assumed.
    """
    said = "\n".join(texts)
    unset = [
        word
        for name, value in DEFAULTS
        if is_complete and not re.search(rf"\b{name}\b", said) and not _has_short(name, said)
        for word in (f"--{name}", value)
    ]
    return (*ALWAYS, *unset)


def _has_short(name: str, said: str) -> bool:
    return name == "workers" and re.search(r"(?:^|\s)-j\b", said) is not None


def _words(command: str) -> list[str]:
    if "\0" in command or len(command) > _LONGEST:
        raise CommandError(
            f"The test command has a NUL, or more than {_LONGEST} characters: {command[:80]!r}."
        )
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise CommandError(
            f"The test command {command!r} has a quotation without end."
        ) from problem
    if not words:
        raise CommandError("The test command is empty; use for example `npx playwright test`.")
    return words


def _has_shell_signs(command: str) -> bool:
    """Whether a shell would do more than split it into words."""
    if re.match(r"\s*[A-Za-z_][A-Za-z0-9_]*=", command):
        return True
    outside = re.sub(r"'[^']*'", "", command)
    # Within double quotes a shell still expands these; the rest is plain there.
    inside = "".join(re.findall(r'"[^"]*"', outside))
    return bool(
        _SHELL_SIGNS & set(re.sub(r'"[^"]*"', "", outside)) or frozenset("$`\\") & set(inside)
    )
