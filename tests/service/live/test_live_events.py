"""The events as they come over HTTP from the whole service."""

from pathlib import Path

import aiohttp

from service.web.cookies import SESSION_COOKIE
from tests.servers.service import RunningService, a_claimed_job, a_result_body, serve_service


async def sign_in(service: RunningService) -> dict[str, str]:
    form = {"key": service.secrets.api_key}
    async with service.http.post(
        service.url + "/sign-in", data=form, allow_redirects=False
    ) as answer:
        return {"cookie": f"{SESSION_COOKIE}={answer.cookies[SESSION_COOKIE].value}"}


async def read_event(stream: aiohttp.ClientResponse) -> str:
    text = ""
    while not text.endswith("\n\n"):
        text += (await stream.content.readline()).decode()
    return text


async def test_a_page_is_told_of_a_result_and_its_stream_ends_with_the_service(
    tmp_path: Path,
) -> None:
    async with serve_service(tmp_path) as service:
        headers = await sign_in(service)
        job = await a_claimed_job(service)
        stream = await service.http.get(service.url + "/live", headers=headers)
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert await read_event(stream) == "event: ready\ndata: {}\n\n"

        await service.agent("POST", "/agent/v1/results", {"results": [a_result_body(job)]})

        told = await read_event(stream)
        assert told.startswith("event: change\n")
        assert job["checkId"] in told
        await service.service.end_long_polls()
        assert (await stream.content.read()).replace(b": alive\n\n", b"") == b""


async def test_nobody_is_told_anything_without_signing_in(tmp_path: Path) -> None:
    async with serve_service(tmp_path) as service:
        answer = await service.http.get(service.url + "/live", allow_redirects=False)

        assert answer.status == 303
