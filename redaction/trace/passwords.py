"""Finds out whether secrets of a trace were typed into password fields, which show dots."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from redaction.policy import shortest_prefix
from redaction.trace.typed import BACKSPACE, letter_of

HEAD_BYTES: Final = 600
"""How many bytes of an event tell what it is."""
SNAPSHOT: Final = b'"type":"frame-snapshot"'
AFTER: Final = re.compile(rb'"phase":"after"|"snapshotName":"after@')
_CALL: Final = re.compile(rb'"callId":"([^"]+)"')
_TYPING: Final = re.compile(
    rb'"method":"(?:type|press|keyboardType|keyboardPress|keyboardDown|keyboardInsertText)"'
)
_VALUES: Final = frozenset({"__playwright_value_", "value"})
"""Attributes in which a snapshot has the value of a field."""


class TypedPasswords:
    """Whether secrets that were typed letter by letter can be read on a page.

    They cannot if a snapshot follows each call that types, one of them has each secret in a
    password field, and none has the beginning of one anywhere else.

    Args:
        typed: the secrets that were typed.
    """

    def __init__(self, typed: Iterable[str]) -> None:
        self._unproven = set(typed)
        """Secrets that no password field had yet after they were typed."""
        found = (shortest_prefix(secret) or secret for secret in self._unproven)
        self._begun = tuple(json.dumps(one, ensure_ascii=False)[1:-1].lower() for one in found)
        """How they begin, in lower case, as they are encoded in a line."""
        self._typing: dict[bytes, bool] = {}
        """By call that types: whether a snapshot followed it."""
        self._is_readable = False

    @property
    def may_be_readable(self) -> bool:
        """Whether a picture of any page may show one of them, or its beginning."""
        return self._is_readable or bool(self._unproven) or not all(self._typing.values())

    def collect(self, block: bytes) -> None:
        """Collect what calls type, and what snapshots have."""
        if not self._begun or self._is_readable:
            return
        for line in block.split(b"\n"):
            head = line[:HEAD_BYTES]
            if SNAPSHOT in head:
                self._note_snapshot(line, head)
            elif _TYPING.search(head) is not None and _types(line):
                self._note_typing(call_of(head) or b"")

    def _note_typing(self, call: bytes) -> None:
        # Two processes may have calls of the same name, whose snapshots nothing tells apart.
        self._is_readable = self._is_readable or call in self._typing
        self._typing[call] = False

    def _note_snapshot(self, line: bytes, head: bytes) -> None:
        call = call_of(head)
        follows = call in self._typing and AFTER.search(head) is not None
        if not follows and not self._has_beginning(line):
            return
        rest, passwords = without_texts(line, ())
        self._is_readable = self._is_readable or self._has_beginning(rest)
        if follows and call is not None:
            self._typing[call] = True
            self._unproven.difference_update(passwords)

    def _has_beginning(self, line: bytes) -> bool:
        text = line.decode("utf-8", "replace").lower()
        return any(one in text for one in self._begun)


def _types(line: bytes) -> bool:
    """Whether a call types anything that can be seen. What cannot be read may do so."""
    try:
        given = msgspec.json.decode(line)["params"]
        text = given["text"] if "text" in given else letter_of(given["key"], is_shifted=False)
        return bool(text.strip()) and text != BACKSPACE
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError, AttributeError):
        return True


def call_of(head: bytes) -> bytes | None:
    """The call that an event belongs to, by its head. None: it does not say."""
    found = _CALL.search(head)
    return None if found is None else found[1]


def without_texts(line: bytes, texts: Iterable[str]) -> tuple[bytes, list[str]]:
    """A snapshot without the values of its password fields, which come too, and without texts.

    Only a text or value that is the same as a whole goes: another secret may contain it.
    A snapshot that cannot be read stays as it is.
    """
    try:
        event = msgspec.json.decode(line)
        passwords: list[str] = []
        event["snapshot"]["html"] = _strip(event["snapshot"]["html"], [*texts], passwords)
        return msgspec.json.encode(event), passwords
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError, ValueError):
        return line, []


def _strip(node: Any, texts: list[str], passwords: list[str]) -> Any:
    """A copy of a node, which is a text, or an element as [name, attributes, child, …]."""
    if isinstance(node, str):
        return "" if node in texts else node
    if isinstance(node, dict):
        return {name: _strip(value, texts, passwords) for name, value in node.items()}
    if not isinstance(node, list):
        return node
    match node:
        case [str(name), dict(attributes), *children] if _is_password_field(name, attributes):
            found = {value: attributes[value] for value in _VALUES & attributes.keys()}
            passwords += [value for value in found.values() if isinstance(value, str)]
            node = [name, {k: v for k, v in attributes.items() if k not in found}, *children]
        case _:
            pass
    return [_strip(child, texts, passwords) for child in node]


def _is_password_field(name: str, attributes: dict[str, Any]) -> bool:
    kind = attributes.get("type")
    return name.upper() == "INPUT" and isinstance(kind, str) and kind.lower() == "password"
