"""`/v1/alert-channels` and `/v1/alert-notifications`: where alerts go, and what became of them."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Body, Depends, Path, Query
from pydantic import TypeAdapter
from sqlalchemy import Connection
from starlette.responses import Response

from service.alert_channels import channel_changes as changes
from service.alert_channels import store
from service.alert_channels.channel_changes import find
from service.alert_channels.kinds.registry import ALL, ANY_WRITE
from service.alert_channels.model import ChannelRow, NotificationFilter, NotificationRow
from service.alert_channels.rules import DAY_MS
from service.alert_channels.sample import build_sample
from service.alert_channels.schemas import (
    ChannelShown,
    ChannelSubscriptionShown,
    ChannelSubscriptionsWrite,
    ChannelSubscriptionWrite,
    ChannelWrite,
    NotificationShown,
    TestShown,
    render,
    render_notification,
    render_subscription,
)
from service.alert_channels.secrets import decrypt_for_people
from service.alert_channels.sender import TAKEN, Envelope, read_envelope, send
from service.alert_channels.sending.errors import ChannelError, Fault
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError
from service.http.mutations import (
    Changed,
    ChangeDep,
    CreateDep,
    PartialBody,
    changed_fields,
    complete_body,
    describe_change,
    sent_fields,
)
from service.http.responses import Items, PageDep, counted, page_of, page_of_sealed
from service.http.routing import ONE, answers, json, json_model, keyed_operations
from service.http.times import query_window_ms
from service.http.validation import ignored_header
from service.vault.encryption import Scope, Vault, Viewer

router = keyed_operations("Alert channels", prefix="/v1/alert-channels")
notifications_router = keyed_operations("Alert channels", prefix="/v1/alert-notifications")

ChannelId = Annotated[int, Path(alias="id", ge=1, le=(1 << 63) - 1)]
ChannelBody = Annotated[ANY_WRITE, Body()]
_READER: Final[TypeAdapter[ChannelWrite]] = TypeAdapter(ANY_WRITE)
_EXAMPLE: Final = {
    "requestBody": {
        "content": {
            "application/json": {
                "example": {
                    "type": "EMAIL",
                    "config": {"address": "ops@example.com"},
                    "sendDegraded": True,
                    "autoSubscribe": True,
                }
            }
        }
    }
}


def _show(row: ChannelRow, viewer: Viewer) -> dict[str, Any]:
    return render(row, lambda stored: viewer.reveal(stored, decrypt_for_people))


def _compare(row: ChannelRow, vault: Vault) -> dict[str, Any]:
    """All of a channel, its secrets too: to tell what a change changed, and never for an answer."""
    return _show(row, Viewer.writer(vault).hiding)


@router.get(
    "", responses=counted(page_of_sealed(list[ChannelShown], "A page of channels, oldest first."))
)
async def list_alert_channels(caller: CallerDep, backend: BackendDep, page: PageDep) -> Response:
    """List alert channels."""

    def query(connection: Connection) -> tuple[tuple[ChannelRow, ...], int]:
        found = store.list_page(
            connection, caller.account_id, limit=page.one_more, offset=page.offset
        )
        total = store.count_channels(connection, caller.account_id)
        return store.with_subscriptions(connection, found), total

    rows, total = await backend.database.read(query)
    viewer = Viewer(backend.vault, may_write=caller.may_write)
    items: Items[ChannelRow] = Items(
        show=lambda row: _show(row, viewer),
        hide=lambda row: _show(row, viewer.hiding),
        name=lambda row: str(row.id),
    )
    return page.answer_of(rows, items, total=total)


@router.post(
    "",
    status_code=201,
    responses=answers(201, ChannelShown, "The channel."),
    openapi_extra=_EXAMPLE,
)
async def create_alert_channel(creating: CreateDep, body: ChannelBody) -> Response:
    """Create an alert channel; `config` depends on `type`."""
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        row = changes.create(connection, scope, body)
        answer = json(_show(row, Viewer.writer(scope.vault)), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=str(row.id), fields=sent_fields(body))

    return await creating.make(change)


@router.get(ONE, responses=answers(200, ChannelShown, "The channel.", 404))
async def read_alert_channel(
    channel_id: ChannelId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read an alert channel."""
    row = await backend.database.read(lambda c: find(c, caller.account_id, channel_id))
    return json(_show(row, Viewer(backend.vault, may_write=caller.may_write)))


@router.put(
    ONE,
    responses=answers(200, ChannelShown, "The channel.", 404),
    openapi_extra=describe_change(*(kind.write for kind in ALL), needed=("type", "config")),
)
async def replace_alert_channel(
    channel_id: ChannelId, changing: ChangeDep, sent: PartialBody
) -> Response:
    """Change an alert channel; what is omitted stays, in `config` too.

    It is resumed if it was paused.
    """

    def change(connection: Connection, scope: Scope) -> Changed:
        before = _compare(find(connection, scope.account_id, channel_id), scope.vault)
        body = complete_body(_READER, sent, _drop_replaced(sent, before))
        row = changes.replace(connection, scope, channel_id, body)
        fields = changed_fields(before, _compare(row, scope.vault))
        headers = ignored_header(sent, body)
        answer = json(_show(row, Viewer.writer(scope.vault)), headers=headers)
        return Changed(answer=answer, resource_id=str(row.id), fields=fields)

    return await changing.make(change)


def _drop_replaced(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is stored, without what each change has, or has no meaning for another type."""
    # Subscriptions that are left out stay by themselves, with their ids.
    replaced = {"subscriptions", "type"}
    if "config" not in sent or sent.get("type") != stored["type"]:
        replaced.add("config")
    return {name: value for name, value in stored.items() if name not in replaced}


@router.delete(ONE, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_alert_channel(channel_id: ChannelId, changing: ChangeDep) -> Response:
    """Delete an alert channel, with its subscriptions and notifications."""
    return await changing.delete(
        str(channel_id), lambda c, scope: changes.delete(c, scope.account_id, channel_id)
    )


@router.put(
    ONE + "/subscriptions",
    responses=answers(200, ChannelSubscriptionShown, "The subscription.", 404),
)
async def replace_alert_channel_subscription(
    channel_id: ChannelId, changing: ChangeDep, body: Annotated[ChannelSubscriptionWrite, Body()]
) -> Response:
    """Subscribe a check or a group to a channel, or change its subscription."""
    ignored = await changing.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        row = changes.subscribe(connection, scope.account_id, channel_id, body)
        answer = json(render_subscription(row), headers=ignored)
        return Changed(answer=answer, resource_id=str(channel_id), fields=("subscriptions",))

    return await changing.make(change)


@router.put(
    ONE + "/subscriptions/bulk",
    responses=answers(200, list[ChannelSubscriptionShown], "Those that were sent.", 404),
)
async def replace_alert_channel_subscriptions(
    channel_id: ChannelId, changing: ChangeDep, body: Annotated[ChannelSubscriptionsWrite, Body()]
) -> Response:
    """Subscribe checks and groups to a channel, or change their subscriptions; the others stay."""
    ignored = await changing.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        rows = changes.subscribe_some(connection, scope.account_id, channel_id, body.subscriptions)
        answer = json([render_subscription(one) for one in rows], headers=ignored)
        return Changed(answer=answer, resource_id=str(channel_id), fields=("subscriptions",))

    return await changing.make(change)


@router.post(ONE + "/test", responses=answers(200, TestShown, "What became of it.", 404))
async def test_alert_channel(channel_id: ChannelId, changing: ChangeDep) -> Response:
    """Send a sample alert through a channel now, whatever its settings. An addition of ours."""
    backend = changing.backend

    def query(connection: Connection) -> tuple[Envelope, int]:
        now_ms = backend.clock.now_ms(connection)
        channel = find(connection, changing.account_id, channel_id)
        alert = build_sample(changing.account_id, now_ms)
        envelope = read_envelope(
            connection, backend.vault, notification_id=alert.id, channel=channel, alert=alert
        )
        return envelope, now_ms

    envelope, now_ms = await backend.database.read(query)
    shown = await _try(envelope, changing, now_ms=now_ms)

    def note(connection: Connection, _scope: Scope) -> Changed:
        changes.note_test(
            connection,
            channel_id,
            envelope.alert,
            outcome=shown.notification_result,
            has_failed=shown.status != "SUCCESS",
        )
        return Changed(answer=json_model(shown), resource_id=str(channel_id))

    return await changing.make(note)


async def _try(envelope: Envelope, changing: ChangeDep, *, now_ms: int) -> TestShown:
    try:
        await send(envelope, changing.backend.sending, now_ms=now_ms)
    except ChannelError as problem:
        is_limited = problem.fault is Fault.RATE_LIMITED
        return TestShown(
            status="RATE_LIMITED" if is_limited else "FAILURE",
            notification_result=problem.message,
        )
    return TestShown(status="SUCCESS", notification_result=TAKEN)


def _read_filter(
    from_: Annotated[
        str | None,
        Query(alias="from", description="Seconds since 1970; default: 24 hours before `to`."),
    ] = None,
    to: Annotated[
        str | None,
        Query(description="Seconds since 1970, exclusive; default: 24 hours after `from`, or now."),
    ] = None,
    channel_id: Annotated[int | None, Query(alias="alertChannelId", ge=1, le=(1 << 63) - 1)] = None,
    *,
    has_failures: Annotated[
        bool | None,
        Query(alias="hasFailures", description="true: those that failed; false: the others."),
    ] = None,
) -> tuple[int | None, int | None, int | None, bool | None]:
    from_ms, to_ms = query_window_ms(("from", from_), ("to", to))
    if from_ms is not None and to_ms is not None and to_ms - from_ms > DAY_MS:
        raise InvalidError(
            '"to" is more than 24 hours after "from"; ask for at most 24 hours.',
            keys=("from", "to"),
            source="query",
        )
    return from_ms, to_ms, channel_id, has_failures


@notifications_router.get(
    "",
    responses=counted(page_of(list[NotificationShown], "A page of notifications, newest first.")),
)
async def list_alert_notifications(
    caller: CallerDep,
    backend: BackendDep,
    page: PageDep,
    asked: Annotated[tuple[int | None, int | None, int | None, bool | None], Depends(_read_filter)],
) -> Response:
    """List alert notifications, of certificates excepted."""

    def query(
        connection: Connection,
    ) -> tuple[tuple[NotificationRow, ...], dict[int, ChannelRow], int]:
        wanted = _complete(asked, now_ms=backend.clock.now_ms(connection))
        found = store.list_notifications(
            connection, caller.account_id, wanted, limit=page.one_more, offset=page.offset
        )
        channels = store.list_some(connection, {row.channel_id for row in found})
        total = store.count_notifications(connection, caller.account_id, wanted)
        return found, {channel.id: channel for channel in channels}, total

    rows, channels, total = await backend.database.read(query)
    return page.answer(
        rows,
        lambda row: render_notification(row, channels[row.channel_id]).model_dump(mode="json"),
        total=total,
    )


def _complete(
    asked: tuple[int | None, int | None, int | None, bool | None], *, now_ms: int
) -> NotificationFilter:
    from_ms, to_ms, channel_id, has_failures = asked
    if to_ms is None:
        to_ms = now_ms + 1 if from_ms is None else from_ms + DAY_MS
    return NotificationFilter(
        from_ms=to_ms - DAY_MS if from_ms is None else from_ms,
        to_ms=to_ms,
        channel_id=channel_id,
        has_failures=has_failures,
    )
