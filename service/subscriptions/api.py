"""`/v1/status-pages/{statusPageId}/subscriptions`: who is notified of incidents of a page."""

from typing import Annotated, Any, Final

from fastapi import Body, Path
from sqlalchemy import Connection
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.mutations import Changed, ChangeDep, CreateDep, sent_fields
from service.http.routing import answers, json, json_model, keyed_operations
from service.http.schema import NO_NUL
from service.status_pages import actions as status_pages
from service.subscriptions import actions
from service.subscriptions.actions import Moment
from service.subscriptions.model import (
    SubscriptionsCreated,
    SubscriptionShown,
    SubscriptionStatus,
    SubscriptionsWrite,
    render,
)
from service.vault.encryption import Scope

router = keyed_operations("Subscriptions", prefix="/v1/status-pages/{statusPageId}/subscriptions")

PageId = Annotated[str, Path(alias="statusPageId", pattern=NO_NUL, max_length=200)]
SubscriptionId = Annotated[str, Path(alias="subscriptionId", pattern=NO_NUL, max_length=200)]
_ONE: Final = "/{subscriptionId}"


@router.get("", responses=answers(200, list[SubscriptionShown], "All of them, oldest first.", 404))
async def list_subscriptions(page_id: PageId, caller: CallerDep, backend: BackendDep) -> Response:
    """List the subscriptions of a status page."""

    def query(connection: Connection) -> list[dict[str, Any]]:
        page = status_pages.find(connection, caller.account_id, page_id)
        return [render(one) for one in actions.list_of_page(connection, page.id)]

    return json(await backend.database.read(query))


@router.post(
    "/bulk", status_code=201, responses=answers(201, SubscriptionsCreated, "What came of it.", 404)
)
async def create_subscriptions(
    page_id: PageId, creating: CreateDep, body: Annotated[SubscriptionsWrite, Body()]
) -> Response:
    """Subscribe up to 100 addresses; each confirms by the link in a mail that it gets."""
    ignored = await creating.ignored_fields(body)
    pepper = creating.backend.pepper

    def change(connection: Connection, scope: Scope) -> Changed:
        page = status_pages.find(connection, scope.account_id, page_id)
        addresses = [one.config for one in body.subscriptions]
        at = Moment(scope.now_ms, pepper)
        created, skipped = actions.subscribe_all(connection, page.id, addresses, at)
        outcome = SubscriptionsCreated(
            created=created, skipped=skipped, status=SubscriptionStatus.PENDING
        )
        answer = json_model(outcome, status=201, headers=ignored)
        return Changed(answer=answer, resource_id=page.id, fields=sent_fields(body))

    return await creating.make(change)


@router.delete(_ONE, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_subscription(
    page_id: PageId, subscription_id: SubscriptionId, changing: ChangeDep
) -> Response:
    """End a subscription; mails to it that wait are not sent."""

    def act(connection: Connection, scope: Scope) -> None:
        page = status_pages.find(connection, scope.account_id, page_id)
        actions.delete(connection, page.id, subscription_id)

    return await changing.delete(subscription_id, act)
