"""A clock that goes when it is told to."""

from sqlalchemy import Connection

from service.clock import Clock

START_MS = 1_795_255_200_000
"""A Saturday morning in November 2026, on the hour."""


class FakeClock(Clock):
    def __init__(self, now_ms: int = START_MS) -> None:
        self.now = now_ms

    def now_ms(self, _connection: Connection) -> int:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += round(seconds * 1000)
