"""What is stored of passwords, and that a refusal tells nothing."""

import asyncio

import pytest
from argon2 import PasswordHasher, extract_parameters

from service.http.errors import InvalidError, TooManyError
from service.users import passwords
from service.users.passwords import Passwords, Verdict, hash_password, verify_password
from service.users.rules import fold_email, require_password

PASSWORD = "correct horse battery"


def test_a_password_is_right_and_another_one_is_not() -> None:
    stored = hash_password(PASSWORD)

    assert stored.startswith("$argon2id$")
    assert PASSWORD not in stored
    assert verify_password(stored, PASSWORD) == Verdict(is_right=True)
    assert verify_password(stored, PASSWORD + " ") == Verdict(is_right=False)


def test_a_password_is_the_same_from_every_keyboard() -> None:
    assert verify_password(
        hash_password("caf\u00e9 caf\u00e9 caf\u00e9"), "cafe\u0301 cafe\u0301 cafe\u0301"
    ).is_right


def test_where_there_is_no_password_the_same_work_is_done() -> None:
    decoy = extract_parameters(passwords._decoy())

    assert decoy == extract_parameters(hash_password(PASSWORD))
    assert verify_password(None, PASSWORD) == Verdict(is_right=False)


def test_a_password_longer_than_any_is_wrong_and_costs_as_much_as_others() -> None:
    assert not verify_password(hash_password(PASSWORD), "x" * 1_000_000).is_right


def test_a_hash_of_other_costs_is_renewed_once_the_password_is_known() -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=1024).hash(PASSWORD)

    verdict = verify_password(weak, PASSWORD)

    assert verdict.is_right
    assert verdict.renewed is not None
    assert verify_password(verdict.renewed, PASSWORD) == Verdict(is_right=True)
    assert verify_password(weak, "wrong") == Verdict(is_right=False)


def test_what_is_stored_and_cannot_be_read_is_right_for_nobody() -> None:
    assert not verify_password("no hash", PASSWORD).is_right


async def test_when_too_many_wait_the_next_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_MOST_WAITING", 3)
    pool = Passwords()
    asked = [asyncio.create_task(pool.verify(None, PASSWORD)) for _ in range(4)]

    ended = await asyncio.gather(*asked, return_exceptions=True)

    assert [type(one) for one in ended] == [Verdict, Verdict, Verdict, TooManyError]
    assert not (await pool.verify(None, PASSWORD)).is_right


async def test_strangers_leave_places_to_those_who_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passwords, "_MOST_STRANGERS", 2)
    pool = Passwords()
    asked = [
        asyncio.create_task(pool.verify(None, PASSWORD, by_stranger=by_stranger))
        for by_stranger in (True, True, True, False)
    ]

    ended = await asyncio.gather(*asked, return_exceptions=True)

    assert [type(one) for one in ended] == [Verdict, Verdict, TooManyError, Verdict]


@pytest.mark.parametrize("password", ["", "eleven sign", "x" * 257])
def test_a_password_that_is_too_short_or_too_long_is_refused(password: str) -> None:
    with pytest.raises(InvalidError, match="use 12 to 256"):
        require_password(password)


@pytest.mark.parametrize(
    "password", ["aaaaaaaaaaaa", "twelve signs", "日本語日本語日本語日本語", "x" * 256]
)
def test_nothing_but_the_length_of_a_password_counts(password: str) -> None:
    require_password(password)


def test_addresses_are_compared_without_their_capitals() -> None:
    assert fold_email(" Ann@Example.COM ") == fold_email("ann@example.com")


def test_a_password_that_is_far_too_long_is_refused_before_it_is_normalized(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One megabyte of accents takes minutes, in which the service does nothing else.
    def fail(_password: str) -> str:
        raise AssertionError

    monkeypatch.setattr("service.users.rules.normalize_password", fail)
    with pytest.raises(InvalidError):
        require_password("a" + "\u0301\u0316" * 500_000)
