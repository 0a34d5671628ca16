"""API checks: assertions on status, headers, text, JSON and time."""

import base64

import pytest

from contract.assertions import Assertion, Comparison, Source
from contract.evidence import HttpEvidence, SeenResponse
from contract.requests import BodyType, HttpMethod
from contract.result import FailureKind, Outcome, Status
from runners.api import ApiRunner
from runners.judging.judge import judge
from runners.net.http.response import STORED_BYTES, STORED_IMAGE_BYTES
from runners.net.http.transfer import READ_LIMIT_BYTES
from runners.scripting.node.runtimes import MissingRuntimeError
from tests.builders.context import a_context
from tests.builders.specs import an_api_spec, an_assertion, an_http_request, headers
from tests.servers.http_origin import Page, http_origin, reply

GOOD: list[Assertion] = [
    an_assertion(Source.STATUS_CODE, Comparison.EQUALS, "200"),
    an_assertion(Source.HEADERS, Comparison.EQUALS, "corner", property="X-Shop"),
    an_assertion(Source.JSON_BODY, Comparison.EQUALS, "tea", property="$.items[0].name"),
    an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "tea"),
    an_assertion(Source.RESPONSE_TIME, Comparison.LESS_THAN, "60000"),
]
JSON = b'{"items":[{"name":"tea"}]}'


async def outcome(page: Page, *assertions: Assertion, **request: object) -> Outcome:
    async with http_origin(page) as origin, a_context() as ctx:
        spec = an_api_spec(request=an_http_request(origin.url(), **request), assertions=assertions)
        return judge(spec, await ApiRunner().observe(spec, ctx))


def response(result: Outcome) -> SeenResponse:
    assert isinstance(result.evidence, HttpEvidence)
    assert result.evidence.response is not None
    return result.evidence.response


async def test_every_source_can_be_asserted_on() -> None:
    page = reply(JSON, content_type="application/json; charset=utf-8", x_shop="corner")
    result = await outcome(page, *GOOD)
    assert [one.error for one in result.assertions] == [None] * 5
    assert result.status is Status.PASSED


async def test_wrong_content_fails_its_assertion() -> None:
    page = reply(b'{"items":[]}', content_type="application/json")
    result = await outcome(page, GOOD[2])
    assert result.status is Status.FAILED
    assert result.failure is not None
    assert result.failure.kind is FailureKind.ASSERTION


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (reply(JSON, content_type="text/html"), "content type is text/html, not JSON"),
        (reply(JSON), "content type is not given, not JSON"),
    ],
)
async def test_json_needs_its_content_type(page: bytes, why: str) -> None:
    result = await outcome(page, GOOD[2])
    assert why in (result.assertions[0].error or "")


async def test_an_empty_body_is_called_empty() -> None:
    page = reply(b"", status="200 OK")
    contains = an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "tea")
    result = await outcome(page, GOOD[2], contains)
    parsed, found = (one.error or "" for one in result.assertions)
    assert parsed.endswith("cannot be evaluated: The body is empty.")
    assert found == "TEXT_BODY should contain `tea`, but the body is empty."


@pytest.mark.parametrize("assertion", GOOD[2:4], ids=["JSON_BODY", "TEXT_BODY"])
async def test_an_assertion_on_a_body_that_is_not_decoded_cannot_be_judged(
    assertion: Assertion,
) -> None:
    page = reply(JSON, content_type="application/json", content_encoding="compress")
    result = await outcome(page, assertion)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.PROTOCOL
    assert result.failure.message == (
        "The body is encoded as compress, which is not decoded, so that no assertion on it can be "
        "judged."
    )
    assert (await outcome(page, GOOD[0])).status is Status.PASSED


async def test_a_body_whose_header_names_no_coding_is_judged_as_it_is() -> None:
    page = reply(JSON, content_type="application/json", content_encoding="aws-chunked")
    assert (await outcome(page, GOOD[2], GOOD[3])).status is Status.PASSED


@pytest.mark.parametrize("kind", ["application/problem+json", "text/json", "Application/JSON"])
async def test_every_json_content_type_will_do(kind: str) -> None:
    result = await outcome(reply(JSON, content_type=kind), GOOD[2])
    assert result.status is Status.PASSED


async def test_a_charset_is_read_and_a_wrong_one_replaced() -> None:
    latin = reply("tée".encode("latin-1"), content_type="text/plain; charset=ISO-8859-1")
    wrong = reply("tée".encode("latin-1"), content_type="text/plain; charset=nonsense")
    assert response(await outcome(latin)).body == "tée"
    assert response(await outcome(wrong)).body == "t\ufffde"
    codec = reply(b"aGVsbG8=", content_type="text/plain; charset=base64")
    assert response(await outcome(codec)).body == "aGVsbG8="


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-7", "unicode_escape", "undefined"])
async def test_codecs_that_are_no_charsets_of_the_web_are_not_used(charset: str) -> None:
    body = b"a" * 3000 + b"-" + b"ab1" * 1_000_000 + rb"+2AA-\ud800"
    page = reply(body, content_type=f"text/plain; charset={charset}")
    result = await outcome(
        page, an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, rb"\ud800".decode())
    )
    assert result.status is Status.PASSED


async def test_a_byte_order_mark_is_no_part_of_the_body() -> None:
    page = reply(b"\xef\xbb\xbf" + JSON, content_type="application/json")
    starts = an_assertion(Source.TEXT_BODY, Comparison.EQUALS, "{", property="^(.)")
    result = await outcome(page, GOOD[2], starts)
    assert result.status is Status.PASSED
    assert response(result).body == JSON.decode()


async def test_a_character_that_the_cut_goes_through_is_left_out() -> None:
    body = ("x" * (STORED_BYTES - 1) + "é" + "x").encode()
    seen = response(await outcome(reply(body, content_type="text/plain")))
    assert seen.body == "x" * (STORED_BYTES - 1)
    assert seen.truncated


async def test_a_content_type_that_is_said_twice_counts_once() -> None:
    twice = b"HTTP/1.1 200 OK\r\n" + 2 * b"content-type: application/json\r\n"
    page = twice + b"content-length: %d\r\n\r\n" % len(JSON) + JSON
    assert (await outcome(page, GOOD[2])).status is Status.PASSED


async def test_a_long_body_is_stored_cut_and_asserted_on_whole() -> None:
    body = b"x" * (STORED_BYTES + 10) + b"the end"
    result = await outcome(
        reply(body, content_type="text/plain"),
        an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "the end"),
    )
    assert result.status is Status.PASSED
    seen = response(result)
    assert (len(seen.body), seen.body_bytes, seen.truncated) == (STORED_BYTES, len(body), True)


@pytest.mark.parametrize(
    "kind",
    ["application/pdf", "application/zip", "application/octet-stream", "audio/mpeg", "video/mp4"],
)
async def test_a_binary_body_is_replaced_by_a_note(kind: str) -> None:
    seen = response(await outcome(reply(b"\x00\x01\x02", content_type=kind)))
    assert seen.body == ""
    assert seen.note == f"Not stored: 3 bytes of {kind}."


async def test_a_body_that_is_not_stored_is_cut_only_where_reading_stopped() -> None:
    seen = response(await outcome(reply(b"\x00\x01\x02", content_type="application/zip")))
    assert not seen.truncated
    endless = reply(bytes(READ_LIMIT_BYTES + 1), content_type="application/zip")
    seen = response(await outcome(endless))
    assert seen.truncated
    assert seen.note == f"Not stored: more than {READ_LIMIT_BYTES} bytes of application/zip."


async def test_a_binary_body_is_stored_when_an_assertion_reads_it() -> None:
    result = await outcome(
        reply(b"%PDF-1.7", content_type="application/pdf"),
        an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "PDF"),
    )
    assert result.status is Status.PASSED
    assert response(result).body == "%PDF-1.7"


async def test_a_small_image_is_stored_and_a_large_one_is_not() -> None:
    small = response(await outcome(reply(b"\x89PNG", content_type="image/png")))
    assert (small.body_encoding, base64.b64decode(small.body)) == ("base64", b"\x89PNG")
    assert not small.truncated
    large = reply(bytes(STORED_IMAGE_BYTES + 1), content_type="image/png")
    assert response(await outcome(large)).note is not None
    drawing = response(await outcome(reply(b"<svg/>", content_type="image/svg+xml")))
    assert drawing.body == "<svg/>"


async def test_the_request_goes_out_as_the_check_says() -> None:
    async with http_origin(reply(status="201 Created")) as origin, a_context() as ctx:
        request = an_http_request(
            origin.url("/orders"),
            method=HttpMethod.POST,
            body='{"a":1}',
            body_type=BodyType.JSON,
            headers=headers({"x-trace": "1"}),
            query_parameters=headers({"dry": "yes"}),
        )
        spec = an_api_spec(request=request)
        result = judge(spec, await ApiRunner().observe(spec, ctx))
    assert result.status is Status.PASSED
    asked = origin.asked[0]
    assert (asked.method, asked.target, asked.body) == ("POST", "/orders?dry=yes", b'{"a":1}')
    assert asked.one("x-trace") == "1"


async def test_without_a_runtime_a_check_with_scripts_goes_back_and_fails_nobody() -> None:
    async with a_context() as ctx:
        with pytest.raises(MissingRuntimeError):
            await ApiRunner().observe(an_api_spec(setup_script="request.url = ''"), ctx)
