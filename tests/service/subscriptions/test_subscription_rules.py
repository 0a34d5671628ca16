import pytest

from service.accounts.keys import Pepper
from service.subscriptions.rules import find_wait_ms, make_signature, make_token

PEPPER = Pepper(b"one")


@pytest.mark.parametrize(
    ("attempts", "chance", "wait_s"),
    [(1, 0, 30), (2, 0, 60), (3, 0, 120), (8, 0, 3600), (99, 0, 3600), (1, 1, 15), (99, 1, 1800)],
)
def test_a_mail_is_tried_again_later_each_time(attempts: int, chance: float, wait_s: float) -> None:
    assert find_wait_ms(attempts=attempts, waited_ms=0, chance=chance) == wait_s * 1000


def test_a_mail_is_given_up_after_a_day() -> None:
    day_ms = 86_400_000
    assert find_wait_ms(attempts=40, waited_ms=day_ms - 1, chance=0) == 3_600_000
    assert find_wait_ms(attempts=40, waited_ms=day_ms, chance=0) is None


def test_a_link_can_be_made_again_with_the_pepper_alone() -> None:
    token = make_token(PEPPER, "s1", b"salt")
    assert token == make_token(PEPPER, "s1", b"salt")
    others = {
        make_token(Pepper(b"two"), "s1", b"salt"),
        make_token(PEPPER, "s2", b"salt"),
        make_token(PEPPER, "s1", b"other"),
        make_signature(PEPPER, "s1"),
    }
    assert len({token, *others}) == 5
