"""Small texts of a zip archive, each cleaned in one go, so that threads clean several at once."""

import hashlib
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Final

from runners.kit.archives.bounds import Budget
from runners.kit.archives.search import Text
from runners.kit.archives.valid_lines import is_json_file
from runners.kit.archives.zip_directory import Member, unpacked_of
from runners.kit.archives.zip_writing import Packed, packed_of

HELD_BYTES: Final = 1 << 19
"""Of the longest. Four are in memory at once: packed, as they were, clean, and packed again."""


@dataclass(frozen=True, slots=True)
class CleanText:
    """A text without secrets."""

    replacements: int = 0
    packed: Packed | None = None
    """None: nothing was hidden, and it stays as it is packed."""
    was: str = ""
    """The hash of what it was, where it may be called by it."""
    is_now: str = ""
    is_broken: bool = False
    """It was JSON and would be none any more: it does not leave."""


def clean_held(
    member: Member, packed: bytes, text: Text, *, budget: Budget, has_hash: bool
) -> CleanText:
    """A member whose packed bytes these are.

    Raises:
        UnsearchableFileError: it is not what the archive says.
    """
    held = replace(member, content_at=0)
    content = b"".join(unpacked_of(BytesIO(packed), held, budget))
    clean = b"".join(text.cleaned((content,)))
    if not text.replacements:
        return CleanText()
    if text.is_json and not is_json_file(BytesIO(clean)) and is_json_file(BytesIO(content)):
        return CleanText(is_broken=True)
    hashes = map(_sha1, (content, clean)) if has_hash else ()
    return CleanText(text.replacements, packed_of(clean), *hashes)


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
