"""When a location counts as unavailable, and which part of its past can be asked for: pure."""

from typing import Final

UNAVAILABLE_AFTER_MS: Final = 600_000
"""How long a location may be without an agent before its runs no longer wait for one."""
RETURN_MS: Final = 120_000
"""After the service's start its agents, who wait up to a minute between tries, have this long."""
SAMPLE_MS: Final = 60_000
"""The queues are looked at once in it."""
KEPT_MS: Final = 15 * 86_400_000
"""How far back the samples go."""


def is_deserted(
    *, created_ms: int, last_seen_ms: int | None, watched_since_ms: int, now_ms: int
) -> bool:
    """Whether no agent has been at a location for too long.

    `last_seen_ms`: None when no agent ever was. Nobody could come while the service was away, so
    it says nothing before it has run for a while.
    """
    if now_ms - watched_since_ms < RETURN_MS:
        return False
    heard_ms = created_ms if last_seen_ms is None else max(created_ms, last_seen_ms)
    return now_ms - heard_ms >= UNAVAILABLE_AFTER_MS


def window_problem(*, from_ms: int, until_ms: int, now_ms: int) -> str | None:
    """Why a window of the samples cannot be asked for. None: it can."""
    if from_ms >= until_ms:
        return '"from" must be earlier than "to".'
    if from_ms < now_ms - KEPT_MS - SAMPLE_MS:
        return f'"from" must be at most {KEPT_MS // 86_400_000} days in the past.'
    return None
