"""What the members of a zip archive look like, and in which order they are written."""

from dataclasses import dataclass
from typing import Final

from runners.kit.archives.kinds import Kind, is_json, kind_of
from runners.kit.archives.resource_names import is_by_hash
from runners.kit.archives.unsearchable import UnsearchableFileError
from runners.kit.archives.zip_directory import Member

_LINES: Final = (".trace", ".network", ".stacks", ".jsonl")
LINKED: Final = (*_LINES, ".har", ".json")
"""Members that may call others by their names, so they are written after them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a member looks like."""

    kind: Kind | None
    """None: one in which secrets cannot be found."""
    is_json: bool
    is_events: bool
    """Whether it is one of a trace's, with an event in each line."""


def shape_of(start: bytes, name: str) -> Shape:
    """By what it begins with, and by its name."""
    return Shape(
        kind=_kind_of(start, name),
        is_json=is_json(start),
        is_events=is_json(start) and name.endswith(_LINES),
    )


def turn(member: Member) -> int:
    """Those that call others by their names come after them."""
    if member.name.endswith(_LINES):
        return 2
    return 1 if member.name.endswith(LINKED) and not is_by_hash(member.name) else 0


def _kind_of(start: bytes, name: str) -> Kind | None:
    try:
        return kind_of(start, name)
    except UnsearchableFileError:
        return None
