"""Request and response bodies of groups."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from service.checks.fields import (
    AlertSettings,
    AlertSubscription,
    Id,
    KeyValue,
    Listing,
    MaybeText,
    Name,
    PhaseScript,
    Region,
    RetryStrategy,
    RuntimeId,
    TagText,
    check_headers,
)
from service.checks.rules import phase_problem
from service.checks.types.api import ApiAssertion
from service.groups.model import BASE_URL, Form, GroupRow
from service.groups.secrets import decrypt, decrypt_for_people
from service.http.errors import UnreadableError
from service.http.schema import JsonNumber, RequestModel, Text, field_error
from service.http.times import format_time
from service.variables.model import VariableRow
from service.variables.schemas import EnvironmentVariable, EnvironmentVariables, render_doc
from service.variables.schemas import compare as variable
from service.vault.encryption import DecryptionError, Vault, Viewer
from service.vault.texts import URL_CREDENTIALS, NotEchoed


def _tell_strategy(given: Any) -> str:
    return "[word]" if isinstance(given, str) else "[strategy]"


GroupRetryStrategy = (
    Annotated[
        Annotated[RetryStrategy, Tag("[strategy]")] | Annotated[Literal["FALLBACK"], Tag("[word]")],
        Discriminator(_tell_strategy),
    ]
    | None
)


class GroupBasicAuth(RequestModel):
    """Credentials for API checks that have none of their own; the password is redacted."""

    username: Text = ""
    password: Annotated[Text, NotEchoed] = ""
    """`*********` keeps the stored password."""


class ApiCheckDefaults(RequestModel):
    """What API checks of the group have in addition to their own."""

    url: Annotated[MaybeText, Field(max_length=2048)] = ""
    """The value of `{{GROUP_BASE_URL}}`."""
    headers: Listing[KeyValue] = Field(default_factory=list)
    """A check's own header of the same name, in any case, takes precedence."""
    query_parameters: Listing[KeyValue] = Field(default_factory=list)
    """A check's own parameter of the same name takes precedence."""
    assertions: Listing[ApiAssertion] = Field(default_factory=list)
    """Evaluated after the check's own."""
    basic_auth: GroupBasicAuth | None = None
    """Null or empty: none."""

    @model_validator(mode="after")
    def _one_line_headers(self) -> "ApiCheckDefaults":
        check_headers(self.headers or ())
        return self


def _replace_none_by_default(given: ApiCheckDefaults | None) -> ApiCheckDefaults:
    return given or ApiCheckDefaults()


class GroupFields(RequestModel):
    """Fields of both forms."""

    form: ClassVar[Form]

    name: Name
    activated: bool = True
    """Off: none of its checks runs."""
    muted: bool = False
    """True: its checks run, but send no alerts."""
    tags: Listing[TagText] = Field(default_factory=list)
    """Its checks have them too when checks are selected by tags."""
    locations: Listing[Region] = Field(default_factory=list)
    """Where checks without locations of their own run."""
    private_locations: Listing[Text] = Field(default_factory=list)
    """Slugs, as above."""
    concurrency: Annotated[int, Field(ge=1), JsonNumber] = 3
    """How many checks run at once when the group is run as a whole."""
    api_check_defaults: Annotated[
        ApiCheckDefaults | None, AfterValidator(_replace_none_by_default)
    ] = Field(default_factory=ApiCheckDefaults)
    browser_check_defaults: MaybeText = ""
    """Stored as it was sent."""
    runtime_id: RuntimeId = None
    """The runtime of scripts whose checks name none. Null: the newest of the agent."""
    environment_variables: EnvironmentVariables = Field(default_factory=list)
    """They override those of the account; a check's own override them."""
    alert_channel_subscriptions: Listing[AlertSubscription] = Field(default_factory=list)
    """The channels that get alerts of its checks. Omitted by a PUT: they stay."""
    setup_snippet_id: Id = None
    """A snippet that runs before each API check's own setup, instead of `localSetupScript`."""
    tear_down_snippet_id: Id = None
    """A snippet that runs after each API check's own teardown, instead of `localTearDownScript`."""
    local_setup_script: PhaseScript = None
    """Node.js code that runs before each API check's own setup. Null: none."""
    local_tear_down_script: PhaseScript = None
    """Node.js code that runs after each API check's own teardown. Null: none."""
    retry_strategy: GroupRetryStrategy = None
    """For checks without one of their own. FALLBACK: the group leaves retries to its checks."""

    @model_validator(mode="after")
    def _phases_fit(self) -> "GroupFields":
        setup, teardown = self.local_setup_script, self.local_tear_down_script
        if problem := phase_problem(
            "localSetupScript", script=setup, snippet_id=self.setup_snippet_id
        ):
            raise field_error("setupSnippetId", problem)
        if problem := phase_problem(
            "localTearDownScript", script=teardown, snippet_id=self.tear_down_snippet_id
        ):
            raise field_error("tearDownSnippetId", problem)
        return self

    @model_validator(mode="after")
    def _one_base_url(self) -> "GroupFields":
        keys = [one.key for one in self.environment_variables or ()]
        defaults = self.api_check_defaults
        if defaults is not None and defaults.url and BASE_URL in keys:
            raise field_error(
                f"environmentVariables[{keys.index(BASE_URL)}].key",
                f"is {BASE_URL}, which apiCheckDefaults.url sets; give one of them",
            )
        return self


class GroupWrite(GroupFields):
    """A group, in the first form."""

    form = Form.V1
    double_check: bool = True
    """Deprecated; `retryStrategy` replaces it. False without one: a failed run is final."""
    use_global_alert_settings: bool | None = True
    """True: the account's alert settings, not the group's."""
    alert_settings: AlertSettings | None = AlertSettings()
    """For checks that have none of their own. Null: the account's."""
    run_parallel: bool | None = False
    """True: checks run in all of their locations each time."""


class GroupV2Write(GroupFields):
    """A group, in the second form: null leaves a setting to its checks."""

    form = Form.V2
    double_check: bool = False
    """Deprecated; kept, and not followed: `retryStrategy` says what counts."""
    use_global_alert_settings: bool | None = None
    """True: the account's alert settings, not the group's."""
    alert_settings: AlertSettings | None = None
    """For checks that have none of their own. Null: left to the checks."""
    run_parallel: bool | None = None
    """True: checks run in all of their locations each time. Null: as each check says."""


AnyGroupWrite = GroupWrite | GroupV2Write


def build_variables(body: AnyGroupWrite, url: str) -> list[EnvironmentVariable]:
    """The group's own, and its address, which checks read in the same way.

    `url`: the group's address, whole. Empty: it has none.
    """
    own = list(body.environment_variables or ())
    if not url:
        return own
    # Whoever only reads is not shown user and password in it, and must not find them in results.
    is_secret = URL_CREDENTIALS.hide(url) != url
    address = {"key": BASE_URL, "value": url, "locked": is_secret}
    return [*own, EnvironmentVariable.model_validate(address)]


class GroupShown(GroupFields):
    """A check group."""

    id: int
    double_check: bool
    use_global_alert_settings: bool | None
    """True: the account's alert settings, not the group's."""
    alert_settings: AlertSettings | None
    """Null: the group has none."""
    run_parallel: bool | None
    """Null: as each check says."""
    created_at: datetime = Field(alias="created_at")
    updated_at: datetime | None = Field(alias="updated_at")
    """Null: never changed."""


def render(group: GroupRow, viewer: Viewer) -> dict[str, Any]:
    """A stored group, read with its variables, as its answer; what is not shown is not opened.

    Raises:
        UnreadableError: a secret is to be shown, and cannot be decrypted.
    """
    if not group.doc:  # its text is no JSON
        return _render_broken(group, viewer)
    return {
        "id": group.id,
        **viewer.reveal(group, decrypt_for_people).doc,
        "alertChannelSubscriptions": [choice.shown() for choice in group.channels],
        "environmentVariables": [render_doc(one, viewer) for one in _own_variables(group)],
        "created_at": format_time(group.created_ms),
        "updated_at": format_time(group.updated_ms),
    }


def _render_broken(group: GroupRow, viewer: Viewer) -> dict[str, Any]:
    """What is left of a group whose text in the database is no JSON."""
    if not viewer.hides_unreadable:
        raise UnreadableError(
            f"The stored group {group.id} cannot be read: its text in the database is not JSON."
            " Replace the group with PUT, or delete it."
        )
    return {"id": group.id, "name": group.name, "created_at": format_time(group.created_ms)}


def compare(group: GroupRow, vault: Vault) -> dict[str, Any]:
    """All of a group, its secrets too: to tell what a change changed, and never for an answer.

    Secrets that cannot be decrypted equal nothing, so that whatever takes their place is a change.
    """
    whole = render(_decrypt_or_blank(group, vault), Viewer.writer(vault).hiding)
    return {
        **whole,
        "environmentVariables": [variable(one, vault) for one in _own_variables(group)],
    }


def _own_variables(group: GroupRow) -> Sequence[VariableRow]:
    """Without the group's address, which stands elsewhere in its answer."""
    has_url = bool((group.doc.get("apiCheckDefaults") or {}).get("url"))
    return [one for one in group.variables if not (has_url and one.key == BASE_URL)]


def _decrypt_or_blank(group: GroupRow, vault: Vault) -> GroupRow:
    try:
        return decrypt(group, vault)
    except DecryptionError:
        return replace(group, doc={**group.doc, "apiCheckDefaults": {"url": None}}, secrets=None)
