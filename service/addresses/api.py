"""`/v1/static-ips` and its siblings: where checks' requests come from, for other sides' lists."""

from typing import Any, Final

from starlette.responses import PlainTextResponse, Response

from service.addresses.model import StaticAddresses
from service.http.dependencies import BackendDep
from service.http.routing import answers, json, open_operations

router = open_operations("Static addresses", prefix="/v1")

_LIST: Final = answers(200, list[str], "Addresses and networks.")
_BY_REGION: Final = answers(200, dict[str, list[str]], "By location.")
_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "One address or network a line.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get("/static-ips", responses=_LIST)
async def list_static_ips(backend: BackendDep) -> Response:
    """List the IPv4 addresses of check runs, as the operator has set them."""
    return json(backend.addresses.of_version(4))


@router.get("/static-ips-by-region", responses=_BY_REGION)
async def list_static_ips_by_region(backend: BackendDep) -> Response:
    """List the IPv4 addresses of check runs by location."""
    return json(backend.addresses.by_region(4))


@router.get("/static-ips.txt", response_class=Response, responses=_TEXT)
async def print_static_ips(backend: BackendDep) -> Response:
    """List the IPv4 addresses of check runs as plain text."""
    return _render_lines(backend.addresses, 4)


@router.get("/static-ipv6s", responses=_LIST)
async def list_static_ipv6(backend: BackendDep) -> Response:
    """List the IPv6 addresses of check runs, as the operator has set them."""
    return json(backend.addresses.of_version(6))


@router.get("/static-ipv6s-by-region", responses=_BY_REGION)
async def list_static_ipv6_by_region(backend: BackendDep) -> Response:
    """List the IPv6 addresses of check runs by location."""
    return json(backend.addresses.by_region(6))


@router.get("/static-ipv6s.txt", response_class=Response, responses=_TEXT)
async def print_static_ipv6(backend: BackendDep) -> Response:
    """List the IPv6 addresses of check runs as plain text."""
    return _render_lines(backend.addresses, 6)


def _render_lines(addresses: StaticAddresses, version: int) -> Response:
    return PlainTextResponse("".join(f"{one}\n" for one in addresses.of_version(version)))
