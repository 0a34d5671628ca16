"""API checks with setup and teardown scripts: real Node, a real server, each documented rule."""

from contract.assertions import Comparison, Source
from contract.evidence import HttpEvidence
from contract.requests import BodyType, HttpMethod, KeyValue
from contract.result import FailureKind, LogLine, Status
from tests.builders.api_scripts import JSON, a_bench, is_text, messages
from tests.builders.specs import an_api_spec, an_assertion, headers
from tests.servers.http_origin import reply


async def test_setup_changes_everything_of_the_request_that_it_may() -> None:
    script = """
        request.method = 'put';
        request.url = request.url.replace('cart', 'order');
        request.headers['X-Sign'] = await Promise.resolve(request.headers['x-key'] + '!');
        request.queryParameters.dry = true;
        request.body = JSON.stringify({ total: 3 });
    """
    async with a_bench() as bench:
        result = await bench.run(
            request={"headers": headers({"x-key": "k"}), "query_parameters": headers({"a": "b"})},
            setup_script=script,
        )
        assert result.status is Status.PASSED, result.failure
        assert (bench.asked.method, bench.asked.target) == ("PUT", "/order?a=b&dry=true")
        assert bench.asked.one("x-sign") == "k!"
        assert bench.asked.one("x-key") == "k"
        assert bench.asked.body == b'{"total":3}'


async def test_what_setup_does_not_touch_stays_as_it_was() -> None:
    twice = (KeyValue(key="x-tag", value="a"), KeyValue(key="x-tag", value="b"))
    async with a_bench() as bench:
        await bench.run(
            request={
                "method": HttpMethod.POST,
                "headers": twice,
                "body": "a=b",
                "body_type": BodyType.FORM,
            },
            setup_script="request.queryParameters.page = '2';",
        )
        assert bench.asked.all("x-tag") == ["a", "b"]
        assert bench.asked.one("content-type") == "application/x-www-form-urlencoded"
        assert bench.asked.target == "/cart?page=2"


async def test_teardown_sees_the_response() -> None:
    script = """
        console.log(response.statusCode, response.statusText, response.headers['content-type']);
        console.log(JSON.parse(response.body).items[0].name);
        console.log(Object.keys(response.timings).join());
        console.log(Object.keys(response.timingPhases).join());
        console.log(response.timings.end === response.timingPhases.total);
    """
    async with a_bench() as bench:
        result = await bench.run(teardown_script=script)
    assert messages(result) == [
        "200 OK application/json",
        "tea",
        "socket,lookup,connect,response,end",
        "wait,dns,tcp,firstByte,download,total",
        "true",
    ]


async def test_assertions_judge_the_body_that_teardown_leaves() -> None:
    tea = an_assertion(Source.JSON_BODY, Comparison.EQUALS, "coffee", property="$.items[0].name")
    async with a_bench() as bench:
        result = await bench.run(
            teardown_script="response.body = response.body.replace('tea', 'coffee');",
            assertions=(tea,),
        )
    assert result.status is Status.PASSED, result.failure
    evidence = result.evidence
    assert isinstance(evidence, HttpEvidence)
    assert evidence.response is not None
    assert evidence.response.body == '{"items":[{"name":"coffee"}]}'


async def test_a_body_in_any_charset_may_get_any_letter() -> None:
    latin = reply("tée".encode("latin-1"), content_type="text/plain; charset=iso-8859-1")
    async with a_bench(latin) as bench:
        result = await bench.run(
            teardown_script="response.body += ' → ☕';", assertions=(is_text("tée → ☕"),)
        )
    assert result.status is Status.PASSED, result.failure


async def test_groups_stand_around_the_check() -> None:
    async with a_bench() as bench:
        result = await bench.run(
            group_setup_script="console.log('1'); request.headers.order = '1';",
            setup_script="console.log('2'); request.headers.order += '2';",
            teardown_script="console.log('3'); response.body = '3';",
            group_teardown_script="console.log('4'); response.body += '4';",
            assertions=(is_text("34"),),
        )
        assert bench.asked.one("order") == "12"
    assert result.status is Status.PASSED, result.failure
    assert messages(result) == ["1", "2", "3", "4"]
    phases = ["setup", "setup", "teardown", "teardown"]
    assert [line.phase for line in result.log] == phases
    assert [line.after_ms for line in result.log] == sorted(one.after_ms for one in result.log)


async def test_without_a_response_teardown_does_not_run() -> None:
    async with a_bench() as bench:
        result = await bench.outcome(
            an_api_spec("http://127.0.0.1:9/", teardown_script="console.log('never')")
        )
    assert result.failure is not None
    assert result.failure.kind is FailureKind.CONNECT
    assert messages(result) == ["There was no whole response, so the teardown script did not run."]
    assert result.log[0].phase == "teardown"


async def test_setup_may_ask_the_network() -> None:
    async with a_bench({"/token": reply(b"t0ken"), "/cart": JSON}) as bench:
        await bench.run(
            setup_script=f"""
                const answer = await fetch('{bench.origin.url("/token")}');
                request.headers['x-token'] = await answer.text();""",
        )
        assert bench.asked.one("x-token") == "t0ken"


async def test_a_flood_of_log_is_cut_with_a_notice() -> None:
    async with a_bench() as bench:
        result = await bench.run(setup_script="for (let i = 0; i < 9999; i += 1) console.log(i);")
    assert result.status is Status.PASSED
    assert len(result.log) == 1001
    assert result.log[-1] == LogLine(
        after_ms=result.log[-1].after_ms,
        level="WARN",
        message="The script logged more than 1000 lines; the rest is left out.",
        phase="setup",
    )


async def test_no_process_and_no_folder_is_left() -> None:
    async with a_bench() as bench:
        await bench.run(setup_script="", teardown_script="")
        assert not bench.ctx.workspace.has_folder
        spares = bench.harness.node_pool
    assert spares.waiting == 0
