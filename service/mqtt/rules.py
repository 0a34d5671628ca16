"""Topics: which filters a client may subscribe to, and which topics they match."""

from typing import Final

from service.sessions.model import RunProgressed

_ACCOUNT: Final = "account"
_RESULTS: Final = "ad-hoc-check-results"
_ONE: Final = "+"
_REST: Final = "#"
_LEAST_LEVELS: Final = 5
"""A filter goes on below the suite."""
LONGEST_FILTER: Final = 512
"""In characters; an id has 36."""


def suite_of(topic_filter: str, account_id: str) -> str | None:
    """The suite whose runs a filter is about. None: it is not one for this account.

    A filter is `account/{accountId}/ad-hoc-check-results/{suite}/…`, and names the suite: to be
    told of every suite of an account is no use that any client has.
    """
    levels = topic_filter.split("/")
    if len(topic_filter) > LONGEST_FILTER or len(levels) < _LEAST_LEVELS or not _is_valid(levels):
        return None
    suite = levels[3]
    own = levels[:3] == [_ACCOUNT, account_id, _RESULTS]
    return suite if own and suite not in ("", _ONE) else None


def _is_valid(levels: list[str]) -> bool:
    """Whether wildcards stand alone in their level, and `#` in the last (4.7.1)."""
    return all(
        level in ("", _ONE)
        or (level == _REST and at == len(levels) - 1)
        or not (_ONE in level or _REST in level)
        for at, level in enumerate(levels)
    )


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a filter that is valid means a topic (4.7)."""
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == _REST:
        wanted = wanted[:-1]
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(
        one in (_ONE, level) for one, level in zip(wanted, levels, strict=True)
    )


def topic_of(event: RunProgressed, subtopic: str) -> str:
    """Where a message about a run is published."""
    place = f"{_ACCOUNT}/{event.account_id}/{_RESULTS}/{event.suite_id}"
    return f"{place}/{event.sequence_id}/{event.run_id}/{subtopic}"
