import base64

import pytest

from service.vault.master_keys import KEY_BYTES, key_id, new_key, parse_keys

KEY = bytes(range(200, 200 + KEY_BYTES))


@pytest.mark.parametrize(
    "spelled",
    [
        KEY.hex(),
        KEY.hex().upper(),
        base64.b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode().rstrip("="),
    ],
)
def test_a_key_is_read_in_hex_and_in_base64_of_either_kind(spelled: str) -> None:
    assert parse_keys(f" {spelled}\n") == (KEY,)


def test_several_keys_stand_one_after_the_other_and_count_once() -> None:
    other = bytes(KEY_BYTES)
    assert parse_keys(f"{KEY.hex()},{other.hex()}\n{KEY.hex()}") == (KEY, other)


@pytest.mark.parametrize(
    "text", ["", " , ", "hunter2", KEY.hex()[:-2], f"{KEY.hex()}00", f"{KEY.hex()} hunter2", "ä"]
)
def test_what_is_no_key_is_told_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match="openssl rand -hex 32") as caught:
        parse_keys(text)
    assert "hunter2" not in str(caught.value)
    assert KEY.hex()[:8] not in str(caught.value)


def test_new_keys_differ_and_their_ids_show_nothing_of_them() -> None:
    (one,), (other,) = parse_keys(new_key()), parse_keys(new_key())
    assert one != other
    assert key_id(one) != key_id(other)
    assert key_id(one) not in one
