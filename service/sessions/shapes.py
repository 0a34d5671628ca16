"""The shapes of sessions in requests and answers."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from contract.checks import CheckType
from service.http.strict import Shown, Strict, Text, field_error
from service.sessions.model import SessionStatus

MAX_TAG_GROUPS: Final = 100
MAX_TAGS: Final = 20
"""Every check is held against every group, and meanwhile nobody else writes."""
MAX_CHECK_IDS: Final = 10_000

TagGroup = Annotated[list[Text], Field(max_length=MAX_TAGS)]


class _Closed(Strict):
    """A value in which an unknown field is refused, with those that are known."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _knows_every_field(cls, body: Any) -> Any:
        known = [info.alias or name for name, info in cls.model_fields.items()]
        unknown = (name for name in body if name not in known) if isinstance(body, dict) else ()
        if (name := next(iter(unknown), None)) is not None:
            raise field_error(str(name), f"is no field here; use {' or '.join(known)}")
        return body


class TargetWrite(_Closed):
    """Which checks to run; both selectors must hold, and an empty list chooses none.

    An unknown field is refused: a selector that is passed over would run every check.
    """

    match_tags: Annotated[list[TagGroup], Field(max_length=MAX_TAG_GROUPS)] | None = None
    """Any of these groups; a group matches when all of its tags are there. `!tag`: is not there.
    A group without tags, and a `!` without one, match none. Null: whatever the tags."""
    check_id: Annotated[list[Text], Field(max_length=MAX_CHECK_IDS)] | None = None
    """Any of these checks. Null: whichever the check."""


class TriggerWrite(_Closed):
    """What to run now. An unknown field is refused here too."""

    target: TargetWrite | None = None
    """Null or without selectors: every check that is activated."""
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
    not_run: list[str] = Field(default_factory=list)
    """Those of `target.checkId` that it started none for: there is no such check, it is not
    activated, it has other tags, or it is a heartbeat. Left out where there are none."""
