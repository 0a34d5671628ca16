import asyncio
import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from service.http.body import LIMIT_BYTES, BodyGate
from tests.builders.check_bodies import check_body
from tests.servers.public_api import Answer, ApiUser, PublicApi, serve_public_api

PATH = "/v1/checks/url"


def assert_body(answer: Answer, status: int, error: str) -> None:
    assert answer.status == status, answer.body
    assert {"statusCode", "error", "message", "attributes"} <= set(answer.body)
    assert answer.body["statusCode"] == status
    assert answer.body["error"] == error
    assert answer.body["message"]
    assert isinstance(answer.body["attributes"], dict)


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer cu_wrong",
        "Bearer sv_wrong",
        "Bearer pl_wrong",
        "Basic Y3U6eA==",
        "Bearer " + "cu_" + "x" * 5000,
        "Bearer cu_\xe9",
    ],
)
async def test_a_bad_token_is_told_as_the_established_service_does_and_with_the_mend(
    alice: ApiUser, authorization: str
) -> None:
    answer = await alice.get("/v1/checks", headers={"authorization": authorization})
    assert_body(answer, 401, "Unauthorized")
    said = "Bad Token: send an API key (cu_…) as Authorization: Bearer <key>."
    assert answer.body["message"] == said
    assert answer.body["attributes"] == {}


async def test_who_calls_is_asked_before_what_is_wrong(alice: ApiUser) -> None:
    answer = await alice.post(PATH, {}, headers={"authorization": "Bearer cu_wrong"})
    assert answer.status == 401


async def test_another_account_than_the_keys_is_forbidden(alice: ApiUser, charlie: ApiUser) -> None:
    own = {"x-service-account": alice.secrets.account_id}
    assert (await alice.get("/v1/checks", headers=own)).status == 200
    assert_body(await charlie.get("/v1/checks", headers=own), 403, "Forbidden")


async def test_the_routers_own_refusals_have_the_one_body(alice: ApiUser) -> None:
    assert_body(await alice.get("/v1/cakes"), 404, "Not Found")
    assert_body(await alice.get("/"), 404, "Not Found")
    not_allowed = await alice.put("/v1/checks")
    assert_body(not_allowed, 405, "Method Not Allowed")
    assert not_allowed.headers["allow"] == "GET"
    several = await alice.post("/v1/private-locations/x")
    assert several.headers["allow"] == "GET, PUT, DELETE"


async def test_a_slip_of_the_pen_in_a_path_is_told_what_was_meant(alice: ApiUser) -> None:
    answer = await alice.post("/v1/checks/browsr", {})
    assert_body(answer, 404, "Not Found")
    assert answer.body["message"] == (
        "There is nothing at /v1/checks/browsr; did you mean /v1/checks/browser?"
    )
    elsewhere = await alice.get("/v1/check-result/17")
    assert elsewhere.body["message"].endswith("did you mean /v1/check-results/17?")


@pytest.mark.parametrize(
    "raw", [b"{", b"\xff\xfe", b"{'a': 1}", b"[" * 100_000, b'{"name": ' + b"9" * 5000]
)
async def test_what_is_no_json_is_said_to_be_none(alice: ApiUser, raw: bytes) -> None:
    answer = await alice.post(PATH, data=raw, headers={"content-type": "application/json"})
    assert_body(answer, 400, "Bad Request")
    assert "JSON" in answer.body["message"]
    assert answer.body["validation"] == {"source": "payload", "keys": []}


@pytest.mark.parametrize("raw", [b"[]", b"1", b'"x"', b"null", b""])
async def test_a_body_that_is_no_object_is_said_to_be_none(alice: ApiUser, raw: bytes) -> None:
    answer = await alice.post(PATH, data=raw, headers={"content-type": "application/json"})
    assert_body(answer, 400, "Bad Request")
    assert answer.body["message"].startswith("The body ")


async def test_half_a_surrogate_pair_is_a_wrong_field(alice: ApiUser) -> None:
    raw = b'{"name": "\\ud800", "request": {"url": "http://a"}}'
    answer = await alice.post(PATH, data=raw, headers={"content-type": "application/json"})
    assert_body(answer, 400, "Bad Request")
    assert answer.body["validation"]["keys"] == ["name"]


async def test_a_packed_body_is_unpacked(alice: ApiUser) -> None:
    packed = gzip.compress(json.dumps(check_body()).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert (await alice.post(PATH, data=packed, headers=headers)).status == 201


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [("gzip", b"no gzip"), ("gzip", gzip.compress(b"{}", mtime=0)[:-9]), ("br", b"{}")],
)
async def test_a_badly_packed_body_is_refused(alice: ApiUser, encoding: str, raw: bytes) -> None:
    headers = {"content-type": "application/json", "content-encoding": encoding}
    assert_body(await alice.post(PATH, data=raw, headers=headers), 400, "Bad Request")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
async def test_too_long_a_body_is_refused(alice: ApiUser, *, packed: bool) -> None:
    raw = b" " * (LIMIT_BYTES + 1)
    headers = {"content-type": "application/json"}
    if packed:
        raw, headers = zlib.compress(raw), {**headers, "content-encoding": "deflate"}
    answer = await alice.post(PATH, data=io.BytesIO(raw), headers=headers)
    assert_body(answer, 413, "Request Entity Too Large")
    assert answer.body["attributes"] == {"limitBytes": LIMIT_BYTES}


async def test_a_body_without_a_length_is_counted_as_it_comes(alice: ApiUser) -> None:
    async def endless() -> Any:
        for _ in range(LIMIT_BYTES // 65_536 + 2):
            yield b" " * 65_536

    answer = await alice.post(PATH, data=endless(), headers={"content-type": "application/json"})
    assert answer.status == 413


async def test_a_body_that_does_not_come_is_not_awaited_for_ever() -> None:
    async def silent() -> Message:
        return await asyncio.Event().wait() and {}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def unreachable(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    gate = BodyGate(unreachable, prefix="/v1", patience_s=0.01)
    scope = {"type": "http", "path": "/v1/checks/url", "headers": [], "method": "POST"}
    await gate(scope, silent, send)
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["error"] == "Request Time-out"


async def test_a_fault_of_ours_is_told_without_details(api: PublicApi) -> None:
    async def broken() -> None:
        raise RuntimeError("the password is hunter2")

    app: FastAPI = api.app
    app.add_api_route("/v1/broken", broken)
    answer = await api.alice.get("/v1/broken")
    assert_body(answer, 500, "Internal Server Error")
    assert "hunter2" not in str(answer.body)


async def test_a_fault_of_ours_is_logged_with_its_route(api: PublicApi) -> None:
    router = APIRouter()

    @router.get("/v1/broken/{one}")
    async def broken(one: str) -> None:
        raise RuntimeError(one)

    api.app.include_router(router)
    with capture_logs() as logged:
        await api.alice.get("/v1/broken/hunter2")
    assert [(one["event"], one["route"]) for one in logged] == [("http.failed", "/v1/broken/{one}")]


async def test_too_many_requests_are_told_when_to_come_back(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path, per_minute=1) as api:
        answers = await asyncio.gather(*(api.alice.get("/v1/checks") for _ in range(4)))
        assert sorted(answer.status for answer in answers) == [200, 429, 429, 429]
        refused = next(answer for answer in answers if answer.status == 429)
        assert_body(refused, 429, "Too Many Requests")
        wait_s = refused.body["attributes"]["retryAfter"]
        assert refused.headers["retry-after"] == str(wait_s)
        assert 1 <= wait_s <= 60
