"""Scripts of API checks that throw, end their process, or take too much: what is said of them."""

import pytest

from contract.assertions import Comparison, Source
from contract.requests import BodyType, HttpMethod
from contract.result import FailureKind, Status
from tests.builders.api_scripts import a_bench, is_text, messages, said
from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.specs import an_assertion
from tests.servers.http_origin import reply


async def test_a_setup_that_throws_sends_nothing_and_fails_with_its_line() -> None:
    async with a_bench() as bench:
        result = await bench.run(
            setup_script="console.log('here');\n\n      nothing();",
            teardown_script="console.log('never')",
            assertions=(is_text("x"),),
        )
        assert bench.origin.asked == []
    assert result.status is Status.FAILED
    assert result.failure is not None
    assert result.failure.kind is FailureKind.SCRIPT
    assert said(result) == (
        "The setup script failed: ReferenceError: nothing is not defined (setup.js:3:7)"
    )
    assert result.assertions == ()
    first, error = result.log
    assert (first.level, first.message) == ("INFO", "here")
    assert error.level == "ERROR"
    assert error.message.splitlines()[1].endswith("setup.js:3:7")


@pytest.mark.parametrize(
    ("script", "said_of_it"),
    [
        (
            "type A = string;\n\nnothing();",
            "ReferenceError: nothing is not defined (a/setup.ts:3:1)",
        ),
        ("const a = (;", "SyntaxError: Unexpected token ';' (a/setup.ts:1"),
        ("require('./b')", "Error: there is no file b beside the script (a/setup.ts:1:"),
    ],
)
async def test_a_script_is_called_as_its_author_called_its_file(
    script: str, said_of_it: str
) -> None:
    async with a_bench() as bench:
        result = await bench.run(setup_script=script, setup_script_path="a/setup.ts")
    assert said(result).startswith(f"The setup script failed: {said_of_it}")
    assert result.failure is not None
    assert result.failure.detail["script"] == "a/setup.ts"


async def test_a_group_setup_that_throws_stops_the_setup_of_the_check() -> None:
    async with a_bench() as bench:
        result = await bench.run(
            group_setup_script="throw new Error('closed')", setup_script="console.log('never')"
        )
    assert said(result) == ("The group's setup script failed: Error: closed (group-setup.js:1:7)")


async def test_a_teardown_that_throws_fails_the_check_and_assertions_are_judged() -> None:
    async with a_bench() as bench:
        result = await bench.run(
            teardown_script="response.body = ''; throw new Error('dirty')",
            group_teardown_script="console.log('still')",
            assertions=(an_assertion(Source.TEXT_BODY, Comparison.CONTAINS, "tea"),),
        )
    assert said(result) == "The teardown script failed: Error: dirty (teardown.js:1:27)"
    assert [one.error for one in result.assertions] == [None]
    assert messages(result)[-1] == "still"


async def test_a_wrong_status_is_named_before_a_teardown_that_throws() -> None:
    async with a_bench(reply(b"", status="500 Oh")) as bench:
        result = await bench.run(teardown_script="JSON.parse(response.body)")
    assert result.failure is not None
    assert result.failure.kind is FailureKind.HTTP_STATUS


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("process.exit(3)", "ended its process with exit code 3 before it was done."),
        ("process.abort()", "ended with signal 6 before it was done."),
        (
            "process.getBuiltinModule('fs').writeSync(3, 'forged\\n')",
            "wrote into the channel on which its result comes.",
        ),
        (
            'process.getBuiltinModule("fs").writeSync(3, `{"fact":"done","env":{"A":1}}\\n`)',
            "wrote into the channel on which its result comes.",
        ),
        (
            "await new Promise(() => {})",
            "failed: Error: the script waits for something that cannot come any more",
        ),
    ],
)
async def test_a_script_without_a_result_fails_its_check(script: str, why: str) -> None:
    async with a_bench() as bench:
        result = await bench.run(setup_script=script)
        assert bench.origin.asked == []
    assert result.failure is not None
    assert result.failure.kind is FailureKind.SCRIPT
    assert said(result) == f"The setup script {why}"


@pytest.mark.parametrize(
    "script", ["for (;;);", "setInterval(() => {}); await new Promise(() => {});"]
)
async def test_a_script_has_ten_seconds(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_bench() as bench:
        # Node's own start counts, so the limit is short only for a process that waits already.
        await bench.run(setup_script="")
        for limit_s in GROWING_S:
            monkeypatch.setattr("runners.api.LIMIT_S", limit_s)
            result = await bench.run(setup_script=f"console.log('in'); {script}")
            if messages(result)[:1] == ["in"]:
                break
        assert bench.origin.asked != []
    assert said(result) == f"The setup script did not end within its limit of {limit_s:g} s."
    assert result.status is Status.TIMED_OUT
    assert messages(result)[0] == "in"


async def test_a_script_that_the_runs_own_time_ends_tells_that_limit() -> None:
    for limit_s in (4, 20, LONG_S):
        async with a_bench(timeout_s=limit_s) as bench:
            await bench.run(setup_script="")
            result = await bench.run(setup_script="await new Promise((r) => setTimeout(r, 90_000))")
        if not said(result).startswith("No time was left"):
            break
    assert said(result) == f"The setup script did not end within the run's limit of {limit_s:g} s."
    assert result.status is Status.TIMED_OUT


async def test_scripts_keep_to_the_time_of_the_run() -> None:
    async with a_bench(timeout_s=0.01) as bench:
        result = await bench.run(setup_script="")
    assert said(result) == "No time was left for the setup script."


@pytest.mark.parametrize("piece", ["Buffer.alloc(10_000_000, 1)", "new Array(1_000_000).fill(0)"])
async def test_a_script_that_takes_all_memory_is_named(piece: str) -> None:
    async with a_bench() as bench:
        result = await bench.run(setup_script=f"const all = []; for (;;) all.push({piece});")
    assert result.failure is not None
    assert result.failure.kind is FailureKind.OUT_OF_MEMORY
    assert said(result).startswith("The setup script ran out of memory: it may use 512 MB, and ")


async def test_at_most_256_kb_go_in() -> None:
    async with a_bench() as bench:
        result = await bench.run(
            request={"method": HttpMethod.POST, "body": "x" * 300_000, "body_type": BodyType.RAW},
            setup_script="",
        )
    assert "bytes, and at most 262144 may pass to the setup script" in said(result)


async def test_at_most_256_kb_come_out() -> None:
    async with a_bench() as bench:
        result = await bench.run(setup_script="request.body = 'x'.repeat(300000);")
    assert "more than the 262144 that may pass" in said(result)


async def test_a_longer_response_is_judged_without_its_teardown() -> None:
    async with a_bench(reply(b"x" * 262_145)) as bench:
        result = await bench.run(
            teardown_script="console.log('never')",
            assertions=(an_assertion(Source.TEXT_BODY, Comparison.NOT_EMPTY),),
        )
    assert said(result) == (
        "The response has 262145 bytes, and at most 262144 may pass to the teardown script, "
        "so it did not run."
    )
    assert [one.error for one in result.assertions] == [None]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("request.method = 'FETCH'", "request.method is FETCH; use one of GET, POST,"),
        ("request.url = 'x'.repeat(3000)", "request.url has 3000 characters; use 1 to 2048"),
    ],
)
async def test_a_request_that_cannot_be_sent_is_the_scripts_fault(script: str, why: str) -> None:
    async with a_bench() as bench:
        result = await bench.run(setup_script=script)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.SCRIPT
    assert said(result).startswith(f"After setup.js {why}")
