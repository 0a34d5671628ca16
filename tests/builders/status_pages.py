"""Services, status pages and incidents, made over the API."""

from typing import Any

from tests.servers.public_api import ApiUser

PAGES = "/v1/status-pages"
SERVICES = f"{PAGES}/services"
INCIDENTS = f"{PAGES}/incidents"


def page_body(*service_ids: str, **changes: Any) -> dict[str, Any]:
    """A page with one card."""
    card = {"name": "Shop", "services": [{"id": one} for one in service_ids]}
    return {"name": "Shop status", "url": "shop", "cards": [card], **changes}


def update_body(status: str = "INVESTIGATING", **changes: Any) -> dict[str, Any]:
    """An update."""
    return {"description": f"It is {status.lower()}.", "status": status, **changes}


def incident_body(*service_ids: str, **changes: Any) -> dict[str, Any]:
    """An incident with one update."""
    return {
        "name": "Orders fail",
        "severity": "MAJOR",
        "services": [{"id": one} for one in service_ids],
        "incidentUpdates": [update_body()],
        **changes,
    }


async def a_service(user: ApiUser, name: str = "Checkout") -> str:
    """The id of a new service."""
    answer = await user.post(SERVICES, {"name": name})
    assert answer.status == 200, answer.body
    return str(answer.body["id"])


async def a_page(user: ApiUser, *service_ids: str, **changes: Any) -> dict[str, Any]:
    """A new page."""
    answer = await user.post(PAGES, page_body(*service_ids, **changes))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def an_incident(user: ApiUser, *service_ids: str, **changes: Any) -> dict[str, Any]:
    """A new incident."""
    answer = await user.post(INCIDENTS, incident_body(*service_ids, **changes))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def say(user: ApiUser, incident: dict[str, Any], status: str, **changes: Any) -> Any:
    """A new update of an incident."""
    path = f"{INCIDENTS}/{incident['id']}/incident-updates"
    answer = await user.post(path, update_body(status, **changes))
    assert answer.status == 200, answer.body
    return answer.body
