"""Each kind of archive and each door of text is needed: one that is lost is seen."""

import json
from pathlib import Path
from typing import Any

import pytest

from redaction.archives import cleaner
from redaction.archives.cleaner import Cleaner
from redaction.archives.compressed import Kind, detect_kind
from redaction.archives.limits import UnsearchableFileError
from redaction.policy import HIDDEN
from tests.builders.archives import hidden_bytes
from tests.builders.secret_doors import DIGITS, DOORS, EDITS, PACKED, SECRET, TEXT

ARCHIVES = [kind for kind in Kind if kind not in (Kind.PLAIN, Kind.PICTURE)]
PLACES = [
    pytest.param(is_json, place, name, id=name)
    for is_json, names in EDITS
    for place, name in enumerate(names)
]


def is_cleaned(folder: Path, kind: Kind) -> bool:
    """Whether it holds the text without the secret, and can be opened."""
    name, pack, unpack = PACKED[kind]
    left = hidden_bytes(folder, pack(TEXT), SECRET, name=name)
    try:
        return unpack(left) == TEXT.replace(SECRET.encode(), HIDDEN.encode())
    except Exception:  # noqa: BLE001 - each library has its own way to say that it is broken
        return False


@pytest.mark.parametrize("kind", ARCHIVES)
def test_each_kind_of_archive_is_cleaned_by_nothing_but_itself(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_cleaned(tmp_path, kind)

    def forgetful(start: bytes, name: str = "") -> Kind:
        known = detect_kind(start, name)
        return Kind.PLAIN if known is kind else known

    monkeypatch.setattr(cleaner, "detect_kind", forgetful)
    assert not is_cleaned(tmp_path, kind)


def is_door_shut(folder: Path, name: str) -> bool:
    door = DOORS[name]
    try:
        left = hidden_bytes(folder, door.text, SECRET, DIGITS, name=door.name)
    except UnsearchableFileError:  # nobody can read on in what is no JSON any more
        return False
    return door.gone not in left and (not door.name.endswith(".json") or is_json(left))


def is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("is_json", "place", "name"), PLACES)
def test_each_door_of_text_is_shut_by_nothing_but_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_json: bool, place: int, name: str
) -> None:
    assert is_door_shut(tmp_path, name)
    edits = Cleaner.edits

    def without(self: Cleaner, search: Any, headers: Any, *, depth: int) -> Any:
        made = edits(self, search, headers, depth=depth)
        return made if (headers is not None) is not is_json else made[:place] + made[place + 1 :]

    monkeypatch.setattr(Cleaner, "edits", without)
    assert not is_door_shut(tmp_path, name)


def test_each_edit_of_a_text_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: dict[bool, int] = {}
    edits = Cleaner.edits

    def counting(self: Cleaner, search: Any, headers: Any, *, depth: int) -> Any:
        made = edits(self, search, headers, depth=depth)
        counts[headers is not None] = len(made)
        return made

    monkeypatch.setattr(Cleaner, "edits", counting)
    for name, text in (("a.json", b'{"a":1}'), ("a.txt", b"a")):
        hidden_bytes(tmp_path, text, SECRET, name=name)
    assert counts == {is_json: len(names) for is_json, names in EDITS}
