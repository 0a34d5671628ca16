"""Attempts to sign in are counted in the database."""

import time

import pytest
from sqlalchemy import Connection, func, select

from service.clock import Clock
from service.db.tables.sign_in import sign_in_limit
from service.http.rate_limits.rate_limit import Allowance, RateClass
from service.sign_in import actions
from service.sign_in.attempts import SignInLimits
from tests.servers.public_api import PEPPER, PublicApi

PLACE, USER = (RateClass.SIGN_INS, "192.0.2.1"), (RateClass.SIGN_INS_OF_USER, "ann")
PATIENCE_S = 0.3


class SetClock(Clock):
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ms = 1_790_000_000_000

    def now_ms(self, _connection: Connection) -> int:
        return self.ms


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def limits(api: PublicApi, clock: SetClock) -> SignInLimits:
    allowances = {
        RateClass.SIGN_INS: Allowance(2, 20),
        RateClass.SIGN_INS_OF_USER: Allowance(3, 3 * PATIENCE_S, patience_s=PATIENCE_S),
    }
    return SignInLimits(api.database, clock, PEPPER, allowances)


async def test_one_that_a_limit_refuses_is_counted_by_no_other(limits: SignInLimits) -> None:
    assert [await limits.wait_s(PLACE) for _ in range(3)] == [0, 0, 10]
    assert await limits.wait_s(USER, PLACE) == 10
    assert [await limits.wait_s(USER) for _ in range(3)] == [0] * 3


async def test_a_class_without_a_limit_refuses_nothing(api: PublicApi, clock: SetClock) -> None:
    unlimited = SignInLimits(
        api.database, clock, PEPPER, {RateClass.SIGN_INS: Allowance(0), USER[0]: Allowance(1)}
    )
    assert [await unlimited.wait_s(PLACE) for _ in range(3)] == [0] * 3
    assert await unlimited.wait_s(PLACE, USER) == 0
    assert await unlimited.wait_s(PLACE, USER) > 0


async def test_they_pass_again_as_time_goes_on_and_when_the_clock_was_set_back(
    limits: SignInLimits, clock: SetClock
) -> None:
    assert [await limits.wait_s(PLACE) for _ in range(3)] == [0, 0, 10]
    clock.ms += 10_000
    assert [await limits.wait_s(PLACE) for _ in range(2)] == [0, 10]
    clock.ms -= 3_600_000
    assert await limits.wait_s(PLACE) == 10


async def test_a_user_whom_many_guess_at_waits_for_a_turn_instead_of_being_locked_out(
    limits: SignInLimits,
) -> None:
    assert [await limits.wait_s(USER) for _ in range(3)] == [0] * 3
    began_s = time.monotonic()
    assert await limits.wait_s(USER) == 0
    assert time.monotonic() - began_s >= PATIENCE_S
    assert await limits.wait_s(USER) == pytest.approx(PATIENCE_S)


async def test_what_is_used_up_is_so_until_it_is_over(
    limits: SignInLimits, clock: SetClock
) -> None:
    until_ms = clock.ms + 1_000
    assert [await limits.use_up("state", until_ms=until_ms) for _ in range(2)] == [True, False]
    clock.ms = until_ms
    assert await limits.use_up("state", until_ms=until_ms + 1)


async def test_no_row_stays_once_it_counts_no_longer(
    api: PublicApi, limits: SignInLimits, clock: SetClock
) -> None:
    def count(connection: Connection) -> int:
        return connection.execute(select(func.count()).select_from(sign_in_limit)).scalar_one()

    await limits.wait_s(PLACE, USER)
    await limits.use_up("state", until_ms=clock.ms + 1_000)
    assert await api.database.read(count) == 3
    clock.ms += 10_000
    await api.database.write(lambda c: actions.forget_expired(c, now_ms=clock.ms))
    assert await api.database.read(count) == 0
