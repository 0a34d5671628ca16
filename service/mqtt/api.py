"""Where clients of MQTT connect: a WebSocket at any path that offers the subprotocol `mqtt`.

Nothing but the API key in CONNECT opens it: neither cookies nor headers are looked at, so a page
of another origin cannot use the session of whoever visits it.
"""

from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from service.http.dependencies import Backend
from service.http.error_responses import error_response
from service.http.errors import ApiError
from service.mqtt.client_connection import SUBPROTOCOL, ClientConnection


def routes(backend: Backend) -> tuple[WebSocketRoute, ...]:
    """The one route, at every path: clients are given an address as a whole."""

    async def connect(websocket: WebSocket) -> None:
        if SUBPROTOCOL in websocket.scope["subprotocols"]:
            await ClientConnection(websocket, backend).serve()
        else:
            await websocket.send_denial_response(_refuse())

    return (WebSocketRoute("/{path:path}", connect),)


def _refuse() -> Response:
    return error_response(
        ApiError('A WebSocket here is for results over MQTT 3.1.1; offer the subprotocol "mqtt".')
    )
