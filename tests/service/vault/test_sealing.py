import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.vault.encryption import HEAD_BYTES, OVERHEAD_BYTES, DecryptionError, Vault
from tests.builders.vaults import MASTER_KEY, a_vault

OTHER_KEY = bytes(32)
PLACE = ("variable", "account-1", "check", "check-1", "TOKEN", "secret")


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=5).map(tuple))
def test_what_is_sealed_opens_at_its_place(text: str, place: tuple[str, ...]) -> None:
    sealed = a_vault().encrypt(text, place)
    assert a_vault().decrypt(sealed, place) == text
    assert len(sealed) == len(text.encode()) + OVERHEAD_BYTES


@pytest.mark.parametrize("part", range(len(PLACE)))
def test_a_value_that_was_moved_elsewhere_does_not_open(part: int) -> None:
    sealed = a_vault().encrypt("s3cr3t", PLACE)
    elsewhere = (*PLACE[:part], "other", *PLACE[part + 1 :])
    with pytest.raises(DecryptionError):
        a_vault().decrypt(sealed, elsewhere)


def test_two_places_whose_parts_read_alike_are_two_places() -> None:
    sealed = a_vault().encrypt("s3cr3t", ("a", "bc"))
    with pytest.raises(DecryptionError):
        a_vault().decrypt(sealed, ("ab", "c"))


@pytest.mark.parametrize("position", [0, 1, HEAD_BYTES, HEAD_BYTES + 12, -1])
def test_a_changed_value_does_not_open(position: int) -> None:
    sealed = bytearray(a_vault().encrypt("s3cr3t", PLACE))
    sealed[position] ^= 1
    with pytest.raises(DecryptionError):
        a_vault().decrypt(bytes(sealed), PLACE)


@pytest.mark.parametrize("size", [0, HEAD_BYTES, OVERHEAD_BYTES - 1])
def test_a_value_that_was_cut_does_not_open(size: int) -> None:
    with pytest.raises(DecryptionError):
        a_vault().decrypt(a_vault().encrypt("s3cr3t", PLACE)[:size], PLACE)


def test_the_same_text_is_sealed_differently_each_time() -> None:
    assert a_vault().encrypt("s3cr3t", PLACE) != a_vault().encrypt("s3cr3t", PLACE)


def test_an_older_key_still_opens_and_the_first_one_seals() -> None:
    old = Vault([MASTER_KEY]).encrypt("s3cr3t", PLACE)
    both = Vault([OTHER_KEY, MASTER_KEY])
    assert both.decrypt(old, PLACE) == "s3cr3t"
    assert both.knows(old[:HEAD_BYTES])
    assert not both.is_current(old[:HEAD_BYTES])
    assert both.is_current(both.encrypt("s3cr3t", PLACE)[:HEAD_BYTES])
    with pytest.raises(DecryptionError):
        Vault([OTHER_KEY]).decrypt(old, PLACE)


def test_a_vault_shows_no_key() -> None:
    assert MASTER_KEY.hex() not in repr(a_vault())
