"""The shapes of sessions in requests and answers."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict

from contract.checks import CheckType
from service.http.strict import Shown, Strict, Text
from service.sessions.model import SessionStatus


class TargetWrite(Strict):
    """Which checks to run; both selectors must hold, an empty one lets all through.

    An unknown field is refused: a selector that is passed over would run every check.
    """

    model_config = ConfigDict(extra="forbid")

    match_tags: list[list[Text]] | None = None
    """Any of these groups; a group matches when all of its tags are there. `!tag`: is not there.
    Null or empty: whatever the tags."""
    check_id: list[Text] | None = None
    """Any of these checks. Null or empty: whichever the check."""


class TriggerWrite(Strict):
    """What to run now. An unknown field is refused here too."""

    model_config = ConfigDict(extra="forbid")

    target: TargetWrite | None = None
    """Null or empty: every check that is activated."""
    refresh_cache: bool = False
    """Playwright suites install their packages anew, instead of taking kept ones."""


class SessionResultShown(Shown):
    """A result of a session: one FINAL per location, one ATTEMPT per failed earlier attempt."""

    check_result_id: str
    check_result_link: str
    check_id: str
    check_type: CheckType
    name: str
    run_location: str
    result_type: Literal["FINAL", "ATTEMPT"]
    has_errors: bool
    has_failures: bool
    is_degraded: bool
    aborted: bool


class SessionShown(Shown):
    """A check session."""

    check_session_id: str
    check_session_link: str
    check_id: str
    check_type: CheckType
    name: str
    status: SessionStatus
    started_at: datetime
    stopped_at: datetime | None
    """Null: it goes on."""
    time_elapsed: int
    """Milliseconds; until now while it goes on."""
    run_locations: list[str]


class SessionWithResults(SessionShown):
    """A check session and what came of it so far."""

    results: list[SessionResultShown]


class TriggeredShown(Shown):
    """The sessions that a trigger started, one per check."""

    sessions: list[SessionShown]
