"""Request and response bodies of test sessions."""

from collections.abc import Mapping
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, create_model, model_validator

from contract.checks import CheckType
from service.checks.fields import RetryStrategy
from service.checks.schemas import CheckWrite
from service.checks.types.definition import TypeDefinition
from service.checks.types.registry import DEFINITIONS
from service.groups.schemas import GroupV2Write, GroupWrite
from service.http.schema import RequestModel, ResponseModel, Text, check_pattern
from service.sessions.ad_hoc.rules import complete_jobs
from service.sessions.model import TestStatus

MOST_JOBS: Final = 1_000
MOST_FILES: Final = 5_000
MOST_TAG_GROUPS: Final = 100
MOST_TAGS: Final = 20
MOST_CHECK_IDS: Final = 1_000
_LEVEL: Final = r"^[^/+#\x00]+$"

TopicLevel = Annotated[
    str,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": _LEVEL}),
    check_pattern(_LEVEL, "must not contain /, + or #, as topics have it"),
]
"""What a client calls its runs: a level of the topics at which it follows them."""
ShortText = Annotated[Text, Field(max_length=2_000)]


class RunLocationWrite(RequestModel):
    """Where to run."""

    type: Literal["PRIVATE", "PUBLIC"]
    """PRIVATE: `slugName` or `id` says where. PUBLIC: `region` does."""
    slug_name: Text | None = None
    """The slug of a private location."""
    id: Text | None = None
    """The id of a private location, which comes before `slugName`."""
    region: Text | None = None
    """A region that a private location serves, by its slug or by the setting REGION_LOCATIONS."""


class SourceInfo(RequestModel):
    """By which names a client follows a run."""

    check_run_suite_id: TopicLevel | None = None
    """Names all runs of the session. Null: nobody follows single runs."""
    check_run_id: TopicLevel | None = None
    """Names the run. Null: the session of the check does."""
    update_snapshots: bool = False
    """Take new snapshots as the expected ones."""


def _tell_form(group: Any) -> str:
    is_v2 = isinstance(group, Mapping) and group.get("v") == GroupV2Write.form
    return "[v2]" if is_v2 or isinstance(group, GroupV2Write) else "[v1]"


AnyGroup = Annotated[
    Annotated[GroupWrite, Tag("[v1]")] | Annotated[GroupV2Write, Tag("[v2]")],
    Discriminator(_tell_form),
]


class JobFields(RequestModel):
    """What a run says besides its check."""

    logical_id: Annotated[ShortText | None, Field(exclude=True)] = None
    """What the client calls the check. Null: its number in the list, from 0."""
    file_path: Annotated[ShortText | None, Field(exclude=True)] = None
    """The file that the client has the check from."""
    source_info: Annotated[SourceInfo | None, Field(exclude=True)] = None
    """By which names the client follows the run. Null: it follows none."""
    test_retry_strategy: Annotated[RetryStrategy | None, Field(exclude=True)] = None
    """How a failed run is retried, whatever the check and its group say. Null: it is final."""
    group: Annotated[AnyGroup | None, Field(exclude=True)] = None
    """A group that is not stored, as in `POST /v1/check-groups` or, with `"v": 2`, as in
    `POST /v2/check-groups`. Its settings apply, but for its locations. Null: none."""


def _job(definition: TypeDefinition) -> Any:
    typed = definition.typed
    return create_model(
        f"{typed.__name__.removeprefix('Typed')}Job",
        __base__=(JobFields, typed),
        __doc__=f"{definition.noun[0].upper()}{definition.noun[1:]} to run once.",
        __module__=typed.__module__,
    )


ANY_JOB: Final[Any] = reduce(or_, map(_job, DEFINITIONS))


class SharedFile(RequestModel):
    """A file that several checks may import."""

    path: Text
    content: Text


class ProjectName(RequestModel):
    """The project that the checks come from."""

    logical_id: ShortText


class RepoInfo(RequestModel):
    """The state of the repository that the checks come from."""

    repo_url: ShortText | None = None
    commit_id: ShortText | None = None
    branch_name: ShortText | None = None
    commit_owner: ShortText | None = None
    commit_message: ShortText | None = None


class SessionFields(RequestModel):
    """What a test session says besides its checks."""

    name: Annotated[Text, Field(max_length=1_000)] | None = None
    """Its name in lists. Null: that of its first check."""
    repo_info: RepoInfo | None = None
    """Kept with it."""
    environment: ShortText | None = None
    """Kept with it."""
    should_record: bool = True
    """Whether lists show it, and its id is told."""
    refresh_cache: bool = False
    """Playwright suites install their packages anew, instead of taking kept ones."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What is kept with it."""
        repo = self.repo_info
        told = repo.model_dump(by_alias=True, exclude_none=True) if repo else None
        return {"repoInfo": told, "environment": self.environment}

    @property
    def prints_logs(self) -> bool:
        """Whether its client prints logs by themselves."""
        return False


class AdHocRunWrite(SessionFields):
    """Checks to run once."""

    check_run_jobs: Annotated[
        list[Annotated[ANY_JOB, Field(discriminator="check_type")]],
        Field(min_length=1, max_length=MOST_JOBS),
    ]
    """The checks, as in `POST /v1/checks`. They run at `runLocation`, whatever their locations.
    `dependencies` may be numbers of `sharedFiles`, from 0; `groupId` may be any object beside a
    `group`."""
    shared_files: Annotated[list[SharedFile], Field(max_length=MOST_FILES)] | None = None
    """Files that checks import. Null: none."""
    run_location: RunLocationWrite
    """Where to run them."""
    project: ProjectName | None = None
    """Kept with the session."""
    stream_logs: bool = False
    """Whether the log of a suite that passed is published before its result. Logs of others come
    with their results."""
    hidden_values_of: Text | None = None
    """The id of a stored check: where the only job has `*********`, and where a secret is empty,
    the values of that check are used. Null: the job hides none."""

    @model_validator(mode="before")
    @classmethod
    def _complete_jobs(cls, body: Any) -> Any:
        return complete_jobs(body) if isinstance(body, dict) else body

    @property
    def metadata(self) -> dict[str, Any]:
        """What is kept with it."""
        project = self.project.logical_id if self.project else None
        return {**super().metadata, "project": project}

    @property
    def prints_logs(self) -> bool:
        """Whether its client prints logs by themselves."""
        return self.stream_logs


class TriggerVariable(RequestModel):
    """A variable for all runs of a session."""

    key: Annotated[Text, Field(min_length=1, max_length=255)]
    value: Text
    locked: bool = False
    secret: bool = False


class AdHocTriggerWrite(SessionFields):
    """Stored checks to run once; both selectors must hold."""

    target_tags: Annotated[
        list[Annotated[list[Text], Field(max_length=MOST_TAGS)]], Field(max_length=MOST_TAG_GROUPS)
    ] = Field(default_factory=list)
    """Any of these groups of tags, of which all must be there. Empty: whatever the tags."""
    check_id: Annotated[list[Text], Field(max_length=MOST_CHECK_IDS)] | None = None
    """Any of these checks. Null: whichever the check."""
    run_location: RunLocationWrite | None = None
    """Where to run them, instead of at their own locations. Null: at those."""
    check_run_suite_id: TopicLevel | None = None
    """By which name the client follows the runs. Null: it follows none."""
    environment_variables: Annotated[list[TriggerVariable], Field(max_length=50)] | None = None
    """They override those of each check."""
    test_retry_strategy: RetryStrategy | None = None
    """How a failed run is retried, whatever the check says. Null: it is final."""


class CancelWrite(RequestModel):
    """What to cancel."""

    sequence_id: Text | None = None
    """The session of one check. Null: all checks."""


class AdHocStarted(ResponseModel):
    """What was started."""

    scheduling_id: str
    test_session_id: str | None
    """Left out unless the session is recorded."""
    test_session_link: str | None
    """Left out likewise."""
    test_result_ids: dict[str, str] | None
    """The id of the result that each check will have, by its `logicalId`. Left out likewise."""
    sequence_ids: dict[str, str]
    """The session of each check by its `logicalId`."""


class TriggeredTests(ResponseModel):
    """The stored checks of which copies run."""

    checks: list[dict[str, Any]]
    """Each as in `GET /v1/checks/{id}`."""
    test_session_id: str | None
    """Null unless the session is recorded."""
    test_result_ids: dict[str, str] | None
    """By the id of the check. Null likewise."""
    sequence_ids: dict[str, str]
    """By the id of the check."""


class SchedulingShown(ResponseModel):
    """How far the runs of a session are handed out: they wait in the queue at once."""

    scheduling_id: str
    test_session_id: str | None
    """Null: the session is not recorded."""
    status: Literal["SUCCEEDED"]
    checks_total: int
    error: None
    created_at: datetime
    started_at: datetime
    ended_at: datetime


class AdHocResultShown(ResponseModel):
    """The result of a run of a test session."""

    test_session_result_id: str
    test_session_result_link: str
    check_id: str | None
    """The stored check of which a copy ran. Null: none."""
    check_type: CheckType
    name: str
    run_location: str
    result_type: Literal["FINAL", "ATTEMPT"]
    status: TestStatus
    has_errors: bool
    has_failures: bool
    is_degraded: bool
    aborted: bool


class AdHocSessionShown(ResponseModel):
    """A test session."""

    test_session_id: str
    test_session_link: str
    name: str
    status: TestStatus
    started_at: datetime
    stopped_at: datetime | None
    """Null: it has not ended."""
    time_elapsed: int
    """Milliseconds; until now if it has not ended."""
    metadata: dict[str, Any]
    """What its client said of project, repository and environment."""


class AdHocSessionListed(AdHocSessionShown):
    """A test session in a list; what its client did not say of the commit is null."""

    id: str
    """Its id again, by the name that lists of the established service have."""
    provider: Literal["API"]
    created_at: datetime = Field(alias="created_at")
    repo_url: str | None
    commit_id: str | None
    commit_owner: str | None
    commit_message: str | None
    branch_name: str | None
    environment: str | None
    running: list[str]
    """The runs that have not ended: ids of results, once there are any."""
    passed: list[str]
    failed: list[str]
    """Those that timed out or that nobody did, too."""
    cancelled: list[str]


class AdHocSessionWithResults(AdHocSessionShown):
    """A test session with its results so far."""

    results: list[AdHocResultShown]


class AdHocSessionsShown(ResponseModel):
    """Test sessions by a cursor."""

    length: int
    """Number of sessions in `entries`."""
    entries: list[AdHocSessionListed]
    """Newest first."""
    next_id: str | None
    """Send it with the next request. Null: there are no more."""


class ResultLinks(ResponseModel):
    """Where people see a result."""

    test_result_link: str
    test_trace_links: list[str]
    video_links: list[str]
    screenshot_links: list[str]


class SessionLink(ResponseModel):
    """Where people see a test session."""

    link: str


def unwrap(job: BaseModel) -> tuple[JobFields, CheckWrite]:
    """What a job says of its run, and its check."""
    if not isinstance(job, JobFields) or not isinstance(job, CheckWrite):
        raise TypeError(type(job).__name__)
    return job, job
