"""Secrets that scripts set come on the channel of facts, and nothing else is lost on it."""

import base64
import json

from runners.scripting.playwright.secret_messages import SecretMessages
from sandbox.workspace import Workspace


def piece(text: bytes, *, number: int = 1, last: bool = True, process: int = 7) -> bytes:
    told = {"at": 1, "fact": "secret", "from": process, "number": number}
    said = {**told, "piece": text.decode(), "last": last}
    return json.dumps(said, separators=(",", ":")).encode()


def encoded(value: str) -> bytes:
    return base64.b64encode(value.encode())


MISSED = (
    "missed: the run set more than 64 different secrets, or too long ones, "
    "so its texts and files could not be searched for all secrets"
)


class Others:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.is_stopped = False

    def take(self, line: bytes) -> None:
        self.lines.append(line)

    def stop(self) -> None:
        self.is_stopped = True


class Keeper(Workspace):
    """Remembers what it is to keep."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    def add_secret(self, value: str) -> None:
        self.kept.append(value)

    def mark_unsearchable(self, because: str) -> None:
        self.kept.append(f"missed: {because}")

    def add_typed(self, process: int, text: str | None) -> None:
        self.kept.append(f"{process} typed {text}")

    def record_picture(self, sha256: str, *, is_masked: bool, knew: tuple[str, ...]) -> None:
        self.kept.append(f"{sha256[:2]} {is_masked} {len(knew)}")


def heard(*lines: bytes) -> tuple[list[str], list[bytes]]:
    keeper, others = Keeper(), Others()
    told = SecretMessages(keeper, receiver=others)
    for line in lines:
        told.take(line)
    told.stop()
    assert others.is_stopped
    return keeper.kept, others.lines


def test_pieces_of_several_processes_are_put_together() -> None:
    whole = base64.b64encode("a long secret/ü".encode())
    first, second = whole[:8], whole[8:]
    lines = (
        piece(first, last=False), piece(first, last=False, process=8),
        piece(second), piece(second, process=8),
    )  # fmt: skip
    assert heard(*lines) == (["a long secret/ü"], [])


def test_other_facts_go_on() -> None:
    other = b'{"fact":"log","message":"a"}'
    assert heard(other, b"garbage") == ([], [other, b"garbage"])


def test_a_forged_flood_is_bounded() -> None:
    lines = [piece(encoded(f"secret {n}"), number=n % 60, process=n) for n in range(500)]
    kept, _ = heard(*lines, piece(b"not base64"))
    assert kept[:64] == [f"secret {n}" for n in range(64)]
    assert set(kept[64:]) == {MISSED}


def test_a_value_that_is_known_does_not_count_again() -> None:
    same = [piece(encoded("same token"), process=n) for n in range(200)]
    kept, _ = heard(*same, piece(encoded("new token"), process=200))
    assert kept == ["same token", "new token"]


def test_a_value_that_is_too_long_is_missed_and_said_to_be() -> None:
    endless = [piece(b"QUJD" * 1000, last=False)] * 51
    assert heard(*endless) == ([MISSED], [])


def test_of_values_that_come_in_pieces_at_once_those_beyond_the_bound_are_missed() -> None:
    begun = [piece(b"QUJD", last=False, process=n) for n in range(65)]
    assert heard(*begun) == ([MISSED], [])


def test_pictures_that_show_no_secret_are_kept_in_mind() -> None:
    def told(fact: str, digest: str) -> bytes:
        said = {"fact": fact, "sha256": digest, "knew": ["ab", "cd"]}
        return json.dumps(said, separators=(",", ":")).encode()

    lines = (told("masked", "ab" * 32), told("unshowing", "cd" * 32), told("masked", "no digest"))
    assert heard(*lines) == (["ab True 2", "cd False 2"], [])


def test_what_is_typed_letter_by_letter_is_kept_in_mind() -> None:
    def told(text: bytes | None, process: int = 7) -> bytes:
        encoded = None if text is None else base64.b64encode(text).decode()
        said = {"fact": "typed", "from": process, "text": encoded}
        return json.dumps(said, separators=(",", ":")).encode()

    lines = (told("Zü".encode()), told(b"e", 8), told(None), told(b"x", -1))
    assert heard(*lines) == (["7 typed Zü", "8 typed e", "7 typed None"], [])
