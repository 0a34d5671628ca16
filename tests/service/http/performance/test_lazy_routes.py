import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Annotated

import pytest
from fastapi import APIRouter, Body
from fastapi.routing import APIRoute
from pydantic_core import CoreSchema, core_schema
from starlette.routing import BaseRoute

from service.http.performance.lazy_routes import LazyRoute
from service.http.schema import RequestModel
from tests.servers.public_api import PublicApi

THREADS = 8


class Parcel(RequestModel):
    """Of a body."""

    weight: int


def a_route() -> BaseRoute:
    router = APIRouter(route_class=LazyRoute)

    @router.post("/parcels", name="send_parcel")
    async def send(parcel: Annotated[Parcel, Body()]) -> None:
        """Send a parcel."""

    (route,) = router.routes
    return route


def is_built(route: BaseRoute) -> bool:
    return "dependant" in vars(route)


def test_a_declared_route_is_not_built_and_yet_known_by_path_methods_and_name() -> None:
    route = a_route()
    assert isinstance(route, APIRoute)
    known = route.path, route.path_format, route.methods, route.name
    assert known == ("/parcels", "/parcels", {"POST"}, "send_parcel")
    assert not is_built(route)


def test_what_is_asked_of_a_route_builds_it() -> None:
    route = a_route()
    assert isinstance(route, APIRoute)
    assert route.description == "Send a parcel."
    assert is_built(route)


def test_a_body_is_built_with_its_route_and_without_a_warning() -> None:
    route = a_route()
    assert isinstance(route, APIRoute)
    assert route.body_field is not None
    parcel, problems = route.body_field.validate({"weight": 3})
    assert (parcel, problems) == (Parcel(weight=3), [])


def test_a_route_says_that_it_has_not_what_no_route_has() -> None:
    with pytest.raises(AttributeError, match="wings"):
        a_route().wings  # type: ignore[attr-defined]  # noqa: B018


def test_a_route_that_could_not_be_built_is_built_when_it_is_asked_for_again() -> None:
    """Or each request after the first would be told of a missing attribute, and none answered."""
    left = [MemoryError()]

    class Heavy:
        """Takes more memory than there is, once."""

        @classmethod
        def __get_pydantic_core_schema__(cls, *_: object) -> CoreSchema:
            if left:
                raise left.pop()
            return core_schema.int_schema()

    router = APIRouter(route_class=LazyRoute)

    @router.post("/parcels")
    async def send(weight: Annotated[Heavy, Body()]) -> None: ...

    (route,) = router.routes
    assert isinstance(route, APIRoute)
    with pytest.raises(MemoryError):
        _ = route.app
    assert route.app is not None
    assert route.body_field is not None


def test_threads_that_need_a_route_at_once_find_it_whole() -> None:
    for _ in range(20):
        route, start = a_route(), Barrier(THREADS)

        def ask(route: BaseRoute = route, start: Barrier = start) -> tuple[object, object]:
            start.wait()
            return route.app, route.body_field  # type: ignore[attr-defined]

        with ThreadPoolExecutor(THREADS) as threads:
            seen = {one.result() for one in [threads.submit(ask) for _ in range(THREADS)]}
        assert len(seen) == 1


def test_an_application_is_put_together_without_building_an_operation(tmp_path: Path) -> None:
    program = """
import asyncio
from pathlib import Path
from service.routers import OPERATIONS
from tests.servers.public_api import serve_public_api

async def main():
    async with serve_public_api(Path(sys.argv[1])):
        print(len(OPERATIONS), [one.name for one in OPERATIONS if "dependant" in vars(one)])

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", "import sys" + program, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[4],
    )
    count, _, built = done.stdout.strip().partition(" ")
    assert (int(count) > 50, built) == (True, "[]"), done.stderr


async def test_a_request_builds_the_route_that_answers_it(api: PublicApi) -> None:
    routes = {one.name: one for one in api.app.routes if isinstance(one, LazyRoute)}
    answer = await api.alice.get("/v1/snippets")
    assert answer.status == 200
    assert is_built(routes["list_snippets"])
