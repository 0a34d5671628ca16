"""What is spelled in parts is found in time and memory that do not grow with what came before."""

import json
from bisect import bisect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redaction.trace.typed import (
    LONGEST_SECRET_CHARS,
    MOST_OF_CALL,
    TypedSecrets,
    TypedTextReader,
    TypedWords,
    hide_typed,
)

SECRET = "Zq7w-Kp2"


def output(text: str) -> dict[str, Any]:
    return {"type": "stdout", "text": text}


def key(number: int, text: str) -> dict[str, Any]:
    """An event of a key that is pressed, in a call of its own."""
    params = {"key": text}
    return {
        "type": "before", "callId": f"call@{number}", "method": "keyboardPress", "params": params
    }  # fmt: skip


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events)


def typed_secrets(block: bytes, *secrets: str) -> TypedSecrets:
    reader = TypedTextReader(TypedWords(secrets))
    reader.read(block)
    return reader.found


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_long_secret_is_found_in_output_that_comes_in_parts(size: int) -> None:
    secret = "".join(chr(97 + number % 23) for number in range(LONGEST_SECRET_CHARS))
    parts = [output("before")]
    parts += [output(secret[at : at + size]) for at in range(0, len(secret), size)]
    clean, count = hide_typed(lines(*parts), typed_secrets(lines(*parts), secret))
    assert (count, b"abc" in clean) == (len(parts) - 1, False)


def test_parts_of_two_secrets_are_found_one_after_the_other_and_within() -> None:
    text = f"xx{SECRET}{SECRET[:-1]}yhunter22"
    parts = [{**output(char), "at": at} for at, char in enumerate(text)]
    clean, count = hide_typed(lines(*parts), typed_secrets(lines(*parts), SECRET, "hunter22"))
    assert count == len(SECRET) + len("hunter22")
    left = [json.loads(line)["text"] for line in clean.splitlines()]
    assert "".join(left).replace("*", "") == f"xx{SECRET[:-1]}y"


def test_many_parts_take_no_longer_for_a_secret_that_nobody_types() -> None:
    parts = lines(*(output(chr(97 + number % 23)) for number in range(60_000)))
    assert not typed_secrets(parts, "q" * 100_000, SECRET).lines


@given(
    secrets=st.sets(st.text("ab", min_size=2, max_size=7), min_size=1, max_size=4),
    parts=st.lists(st.text("ab", min_size=1, max_size=9), max_size=12),
    is_long=st.booleans(),
)
def test_every_part_is_found_in_which_a_secret_stands_that_goes_over_several(
    secrets: set[str], parts: list[str], *, is_long: bool
) -> None:
    """Long ones are looked for in another way."""
    if is_long:
        secrets = {one + "a" * 300 for one in secrets}
        parts = [*parts, *["a" * 150] * 3]
    text, marked = "".join(parts), set()
    begins = [sum(map(len, parts[:number])) for number in range(len(parts) + 1)]
    for secret in secrets:
        for at in (at for at in range(len(text)) if text.startswith(secret, at)):
            inside = range(at, at + len(secret))
            numbers = {bisect(begins, place) - 1 for place in inside}
            marked |= numbers if len(numbers) > 1 else set()
    pieces = (key(number, "") | {"params": {"text": part}} for number, part in enumerate(parts))
    typed = lines(*pieces)
    found = {int(call.removeprefix(b"call@")) for call in typed_secrets(typed, *secrets).calls}
    assert found == marked


def test_of_a_call_that_types_more_than_any_nothing_is_left() -> None:
    secret = "".join(map(chr, range(0x4E00, 0x4E00 + MOST_OF_CALL + 1)))
    typed = lines(*(key(7, char) for char in secret), key(8, "a"))
    clean, count = hide_typed(typed, typed_secrets(typed, secret))
    assert count == len(secret)
    assert clean == b"{}\n" * len(secret) + lines(key(8, "a"))


def keys(*names: str) -> bytes:
    return lines(*(key(number, name) for number, name in enumerate(names)))


def left_keys(typed: bytes, secret: str) -> list[str]:
    clean, _ = hide_typed(typed, typed_secrets(typed, secret))
    return [json.loads(line)["params"]["key"] for line in clean.splitlines()]


def test_keys_by_their_code_spell_a_secret() -> None:
    typed = keys("p", "Shift+Digit7", "KeyS", "s", "Quote", "Shift+KeyW", "o", "Escape", "9", "x")
    assert left_keys(typed, "p&ss'Wo9") == ["*********"] * 7 + ["Escape", "*********", "x"]


def test_a_secret_that_is_corrected_while_it_is_typed_is_spelled() -> None:
    typed = keys("Z", "q", "x", "y", "Backspace", "Backspace", *SECRET[2:])
    hidden = ["*********"]
    assert left_keys(typed, SECRET) == [*hidden * 2, "x", "y", *["Backspace"] * 2, *hidden * 6]


def test_keys_are_read_with_the_shift_that_is_held() -> None:
    typed = keys("Shift", "Digit7", "Shift", "Digit7", "Slash", "Comma")
    events = [json.loads(line) for line in typed.splitlines()]
    events[0]["method"], events[2]["method"] = "keyboardDown", "keyboardUp"
    hidden = ["*********"]
    assert left_keys(lines(*events), "&7/,") == ["Shift", *hidden, "Shift", *hidden * 3]
