"""Secrets that scripts set come on the channel of facts, and nothing else is lost on it."""

import base64
import json

from runners.kit.told_secrets import ToldSecrets


def piece(text: bytes, *, number: int = 1, last: bool = True, process: int = 7) -> bytes:
    told = {"at": 1, "fact": "secret", "from": process, "number": number}
    said = {**told, "piece": text.decode(), "last": last}
    return json.dumps(said, separators=(",", ":")).encode()


class Others:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.is_stopped = False

    def take(self, line: bytes) -> None:
        self.lines.append(line)

    def stop(self) -> None:
        self.is_stopped = True


class Keeper:
    """Remembers what it is to keep."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def keep_secret(self, value: str) -> None:
        self.kept.append(value)

    def keep_picture(self, sha256: str, *, is_masked: bool) -> None:
        self.kept.append(f"{sha256[:2]} {is_masked}")


def heard(*lines: bytes) -> tuple[list[str], list[bytes]]:
    keeper, others = Keeper(), Others()
    told = ToldSecrets(keeper, others=others)
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
    assert heard(*lines) == (["a long secret/ü"] * 2, [])


def test_other_facts_go_on() -> None:
    other = b'{"fact":"log","message":"a"}'
    assert heard(other, b"garbage") == ([], [other, b"garbage"])


def test_a_forged_flood_is_bounded() -> None:
    lines = [piece(b"QUJDREVG", number=n % 60, process=n) for n in range(500)]
    endless = [piece(b"QUJD" * 1000, last=False)] * 100
    kept, _ = heard(*lines, *endless, piece(b"not base64"))
    assert len(kept) == 64


def test_pictures_that_show_no_secret_are_kept_in_mind() -> None:
    def told(fact: str, digest: str) -> bytes:
        return json.dumps({"fact": fact, "sha256": digest}, separators=(",", ":")).encode()

    lines = (told("masked", "ab" * 32), told("unshowing", "cd" * 32), told("masked", "no digest"))
    assert heard(*lines) == (["ab True", "cd False"], [])
