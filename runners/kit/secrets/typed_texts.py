"""What a run's scripts typed letter by letter: pages see such a text grow, and may tell each state.

It is compared with secrets in the end, for one may be told, by another process, after it was typed.
"""

from collections.abc import Callable, Iterable
from typing import Final

from runners.kit.secrets.job_secrets import beginning_of

_MOST_CHARS: Final = 1 << 20
"""Of one run; a script that types more may have typed anything."""

_BACKSPACE: Final = "\b"
"""Takes the letter before it off, if both were typed into one field."""

TypedAmong = Callable[[Iterable[str]], tuple[str, ...]]
"""Which of these secrets were typed letter by letter, or their beginnings were."""


def none_typed(_: Iterable[str]) -> tuple[str, ...]:
    """Of a run in which nothing was typed."""
    return ()


class TypedTexts:
    """Of one run, by the process that typed."""

    def __init__(self) -> None:
        self._texts: dict[int, list[str]] = {}
        self._chars = 0
        self._is_unknown = False
        """Whether any text may have been typed."""

    def note(self, process: int, text: str) -> None:
        """This was typed behind what the process typed before."""
        self._chars += len(text) + 1
        if self._chars > _MOST_CHARS:
            self.note_unknown()
        else:
            self._texts.setdefault(process, []).append(text)

    def note_unknown(self) -> None:
        """Something was typed, and nobody heard what."""
        self._is_unknown = True
        self._texts.clear()

    def among(self, secrets: Iterable[str]) -> tuple[str, ...]:
        """Which of these were typed, or their beginnings were."""
        typed = tuple("".join(pieces) for pieces in self._texts.values())
        texts = (*(one.replace(_BACKSPACE, "") for one in typed), *map(_corrected, typed))
        return tuple(secret for secret in secrets if self._is_typed(secret, texts))

    def _is_typed(self, secret: str, texts: tuple[str, ...]) -> bool:
        beginning = beginning_of(secret)
        if beginning is None:
            return False
        return self._is_unknown or any(beginning in text for text in texts)


def _corrected(text: str) -> str:
    if _BACKSPACE not in text:
        return text
    letters: list[str] = []
    for letter in text:
        if letter != _BACKSPACE:
            letters.append(letter)
        elif letters:
            letters.pop()
    return "".join(letters)
