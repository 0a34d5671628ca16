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

from service.http.request_body import LIMIT_BYTES, BodyGate
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
    assert_body(await alice.get("/cakes"), 404, "Not Found")
    not_allowed = await alice.put("/v1/checks")
    assert_body(not_allowed, 405, "Method Not Allowed")
    assert not_allowed.headers["allow"] == "GET, POST"
    several = await alice.post("/v1/private-locations/x")
    assert several.headers["allow"] == "GET, PUT, DELETE"
    exact = await alice.ask("PATCH", "/v1/checks/api")
    assert exact.headers["allow"] == "POST"


async def test_a_wrong_method_is_told_which_are_possible(alice: ApiUser) -> None:
    changed = await alice.ask("PATCH", "/v1/checks/17")
    assert changed.body["message"] == (
        "PATCH is not supported at /v1/checks/17; use GET or PUT or DELETE."
    )
    named = await alice.post("/v1/checks/http", {})
    assert named.body["message"] == (
        "POST is not supported at /v1/checks/http; use GET or PUT or DELETE, or one of agentic,"
        " api, browser, dns, heartbeat, icmp, multistep, playwright, tcp, url in place of http."
    )


async def test_a_path_that_is_not_there_is_told_where_those_are_that_are(alice: ApiUser) -> None:
    answer = await alice.get("/cakes")
    assert answer.body["message"] == "There is nothing at /cakes; /docs lists what there is."


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_slash_at_the_end_is_said_instead_of_an_empty_answer(
    alice: ApiUser, method: str
) -> None:
    answer = await alice.ask(method, "/v1/checks/")
    assert_body(answer, 404, "Not Found")
    assert answer.body["message"].endswith("/v1/checks/; did you mean /v1/checks?")


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


GOOD = json.dumps(check_body()).encode()


@pytest.mark.parametrize("packing", ["gzip", "x-gzip", "GZIP"])
async def test_a_packed_body_is_unpacked(alice: ApiUser, packing: str) -> None:
    packed = gzip.compress(json.dumps(check_body()).encode())
    headers = {"content-type": "application/json", "content-encoding": packing}
    assert (await alice.post(PATH, data=packed, headers=headers)).status == 201


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [
        ("gzip", b"no gzip"),
        ("gzip", gzip.compress(b"{}", mtime=0)[:-9]),
        ("gzip", gzip.compress(GOOD, mtime=0) + gzip.compress(b" ", mtime=0)),
        ("deflate", zlib.compress(GOOD) + b"more"),
    ],
    ids=["none", "cut off", "two", "more"],
)
async def test_a_badly_packed_body_is_refused(alice: ApiUser, encoding: str, raw: bytes) -> None:
    headers = {"content-type": "application/json", "content-encoding": encoding}
    assert_body(await alice.post(PATH, data=raw, headers=headers), 400, "Bad Request")


async def test_a_way_of_packing_that_is_not_known_is_refused_with_those_that_are(
    alice: ApiUser,
) -> None:
    headers = {"content-type": "application/json", "content-encoding": "br"}
    answer = await alice.post(PATH, data=b"{}", headers=headers)
    assert_body(answer, 415, "Unsupported Media Type")
    assert answer.headers["accept-encoding"] == "gzip, deflate"


async def test_a_body_that_says_it_is_no_json_is_refused(alice: ApiUser) -> None:
    raw = json.dumps(check_body()).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded; charset=utf-8"):
        answer = await alice.post(PATH, data=raw, headers={"content-type": kind})
        assert_body(answer, 415, "Unsupported Media Type")
        assert kind.partition(";")[0] in answer.body["message"]


async def test_a_body_that_does_not_say_what_it_is_is_json(alice: ApiUser) -> None:
    raw = json.dumps(check_body()).encode()
    skipped = {"skip_auto_headers": ["content-type"]}
    assert (await alice.post(PATH, data=raw, **skipped)).status == 201


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

    gate = BodyGate(unreachable, prefixes=("/v1",), patience_s=0.01)
    scope = {"type": "http", "path": "/v1/checks/url", "headers": [], "method": "POST"}
    await gate(scope, silent, send)
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["error"] == "Request Time-out"


async def test_few_large_bodies_are_read_into_objects_at_a_time() -> None:
    under_way: list[int] = []
    others = asyncio.Event()
    now = 0

    async def work(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal now
        now += 1
        under_way.append(now)
        await others.wait()
        now -= 1

    def request(size_bytes: int) -> asyncio.Task[None]:
        async def receive() -> Message:
            return {"type": "http.request", "body": b" " * size_bytes}

        async def send(message: Message) -> None:
            raise AssertionError(message)

        scope = {"type": "http", "path": "/v1/large", "headers": [], "method": "POST"}
        return asyncio.create_task(gate(scope, receive, send))

    gate = BodyGate(work, prefixes=("/v1",), large=frozenset({"/v1/large"}))
    large = [request(LIMIT_BYTES + 1) for _ in range(4)]
    await asyncio.sleep(0)
    small = request(1)
    for _ in range(20):  # whoever may go on has done so by then
        await asyncio.sleep(0)
    others.set()
    await asyncio.gather(*large, small)

    assert len(under_way) == 5
    assert max(under_way) == 3  # two large ones, and the small one that waits for none


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


@pytest.mark.parametrize(
    ("query", "key", "said"),
    [
        ("limit=0", "limit", "use at least 1"),
        ("limit=101", "limit", "use at most 100"),
        ("page=1000001", "page", "use at most 1000000."),
        ("limit=ten", "limit", "is ten; use a whole number"),
        ("page=-1", "page", "use at least 0"),
    ],
)
async def test_a_wrong_page_of_any_list_is_told(
    alice: ApiUser, query: str, key: str, said: str
) -> None:
    check = (await alice.post(PATH, check_body())).body["id"]
    group = (await alice.post("/v1/check-groups", {"name": "Shop"})).body["id"]
    paths = (await alice.get("/openapi.json")).body["paths"]
    paged = [
        path.format(checkId=check, id=group)
        for path, verbs in paths.items()
        if {"limit", "page"} <= {one["name"] for one in verbs.get("get", {}).get("parameters", ())}
    ]
    assert len(paged) >= 3
    for path in paged:
        answer = await alice.get(f"{path}?{query}&metrics=availability")
        assert_body(answer, 400, "Bad Request")
        assert said in answer.body["message"], path
        assert answer.body["validation"] == {"source": "query", "keys": [key]}
