"""Take secrets out of a run's file: what cannot be searched does not leave."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from contract.agent_api import MAX_ARTIFACT_BYTES
from contract.result import Artifact
from runners.kit.secrets.pattern import SecretPattern
from runners.kit.workspace import RunFile, open_plain

_PICTURES: Final = frozenset({"screenshot", "video"})
_PICTURE_STARTS: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"\x1aE\xdf\xa3")
"""How PNG, JPEG and WebM begin."""


class UnsearchableFileError(Exception):
    """A secret could be in the file and not be found; the text says why."""


class NoTextError(UnsearchableFileError):
    """The file is an archive or the like: it could leave if there were no secrets."""


def hide_in_file(
    file: RunFile, pattern: SecretPattern | None, *, rounds: int
) -> tuple[RunFile, int]:
    """Hide what the pattern finds, in the file itself; the file as it is now, and how often.

    No pattern: there are no secrets. A file that is too long to be uploaded is not read whole.

    Raises:
        UnsearchableFileError: it is no plain text, or too long, and there are secrets.
        OSError: it cannot be read or written.
    """
    if pattern is None or _is_picture(file):
        return _as_it_is(file), 0
    with open_plain(file.path) as opened:
        content = opened.read(MAX_ARTIFACT_BYTES + 1)
    if len(content) > MAX_ARTIFACT_BYTES:
        raise UnsearchableFileError(f"it has more than {MAX_ARTIFACT_BYTES} bytes")
    if not _is_text(content):
        raise NoTextError("only text in UTF-8 can be searched for secrets")
    content, replacements = _hidden(content, pattern, rounds=rounds)
    if replacements:
        _replace(file, content)
    return _described(file, len(content), hashlib.sha256(content).hexdigest()), replacements


def _is_picture(file: RunFile) -> bool:
    """Whether it is called one and begins like one."""
    if file.artifact.kind not in _PICTURES:
        return False
    with open_plain(file.path) as opened:
        return opened.read(8).startswith(_PICTURE_STARTS)


def _is_text(content: bytes) -> bool:
    """Archives, compressed data and other encodings hide a secret from the search."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _as_it_is(file: RunFile) -> RunFile:
    with open_plain(file.path) as opened:
        digest = hashlib.file_digest(opened, hashlib.sha256)
        return _described(file, opened.tell(), digest.hexdigest())


def _hidden(content: bytes, pattern: SecretPattern, *, rounds: int) -> tuple[bytes, int]:
    total = 0
    for _ in range(rounds):
        content, count = pattern.hide(content)
        if not count:
            break
        total += count
    return content, total


def _replace(file: RunFile, content: bytes) -> None:
    """Never in place: the name may be one of several of the same file."""
    # A new file for certain: a name that could be guessed might be a link already.
    handle, unfinished = tempfile.mkstemp(dir=file.path.parent)
    with os.fdopen(handle, "wb") as opened:
        opened.write(content)
    Path(unfinished).replace(file.path)


def _described(file: RunFile, size_bytes: int, sha256: str) -> RunFile:
    artifact: Artifact = msgspec.structs.replace(
        file.artifact, size_bytes=size_bytes, sha256=sha256
    )
    return RunFile(file.path, artifact)
