"""API checks with setup and teardown scripts: real Node, a real server, each documented rule."""

import contextlib
import hashlib
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
import trustme

from contract.assertions import Assertion, Comparison, Source
from contract.checks import ApiSpec
from contract.http_evidence import HttpEvidence
from contract.requests import BodyType, HttpMethod, KeyValue
from contract.result import FailureKind, LogLine, Outcome, Status
from contract.scripted import Dependency
from runners.api import ApiRunner
from runners.kit.execute import execute
from runners.kit.harness import Harness, open_harness
from runners.kit.job_environment import job_environment
from runners.kit.runner import RunContext
from runners.kit.scripts.messages import ScriptJob, ScriptRequest
from runners.kit.scripts.run import NodeBrokeError, ScriptRunner
from runners.kit.scripts.runtimes import MissingRuntimeError, Runtimes, find_runtimes
from runners.kit.scrubbing.scrub import Scrubber
from runners.kit.secrets.job_secrets import usable
from tests.builders.context import a_context
from tests.builders.observations import a_result
from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.scripts import runtimes_here
from tests.builders.specs import (
    a_job,
    a_secret,
    a_variable,
    an_api_spec,
    an_assertion,
    an_http_request,
    headers,
)
from tests.servers.http_certificates import good, pem_of
from tests.servers.http_origin import Asked, Origin, Page, http_origin, reply

JSON = reply(b'{"items":[{"name":"tea"}]}', content_type="application/json")
RESPONSE_IS_EMPTY = an_assertion(Source.TEXT_BODY, Comparison.IS_EMPTY)


class Bench:
    """A server, and what API checks against it run with."""

    def __init__(self, origin: Origin, ctx: RunContext) -> None:
        self.origin = origin
        self.ctx = ctx

    async def outcome(self, spec: ApiSpec, **context: Any) -> Outcome:
        ctx = msgspec.structs.replace(self.ctx, **context)
        return await execute(a_job(spec, deadline_s=240), ApiRunner(), ctx)

    async def run(self, *, request: dict[str, Any] | None = None, **spec: Any) -> Outcome:
        asked = an_http_request(self.origin.url("/cart"), **(request or {}))
        return await self.outcome(an_api_spec(request=asked, **spec))

    @property
    def asked(self) -> Asked:
        return self.origin.asked[-1]

    @property
    def harness(self) -> Harness:
        return self.ctx.network.scripts()


@contextlib.asynccontextmanager
async def a_bench(page: Page = JSON, **context: Any) -> AsyncIterator[Bench]:
    async with (
        open_harness(runtimes_here()) as harness,
        http_origin(page) as origin,
        a_context(harness=harness) as ctx,
    ):
        assert harness is not None, "no runtime is installed: run `make test`"
        yield Bench(origin, msgspec.structs.replace(ctx, **context))


def messages(result: Outcome) -> list[str]:
    return [line.message for line in result.log]


def said(result: Outcome) -> str:
    assert result.failure is not None
    return result.failure.message


def linked_runtimes(folder: Path) -> Runtimes:
    """Those of this machine, each behind a link."""
    folder.chmod(0o755)  # scripts of other users run from there
    for runtime in runtimes_here().by_id.values():
        (folder / runtime.id).symlink_to(runtime.node.parents[1])
    return find_runtimes(folder)


def is_text(target: str) -> Assertion:
    return an_assertion(Source.TEXT_BODY, Comparison.EQUALS, target)


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


async def test_a_variable_that_setup_sets_is_filled_in_and_seen_by_teardown() -> None:
    async with a_bench() as bench:
        result = await bench.run(
            request={
                "body": '{"token":"{{TOKEN}}"}',
                "body_type": BodyType.JSON,
                "method": HttpMethod.POST,
                "headers": headers({"x-token": "{{{TOKEN}}}"}),
            },
            setup_script="process.env.TOKEN = 'a b';",
            teardown_script="console.log(process.env.TOKEN);",
        )
        assert result.status is Status.PASSED, result.failure
        assert bench.asked.one("x-token") == "a b"
        assert bench.asked.body == b'{"token":"a%20b"}'
    assert messages(result) == ["a b"]


async def test_variables_of_the_check_are_read_written_and_deleted() -> None:
    variables = (a_variable("USER", "ann"), a_variable("OLD", "x"))
    async with a_bench(variables=variables) as bench:
        result = await bench.run(
            request={"headers": headers({"x-user": "{{USER}}"})},
            setup_script="process.env.USER += '-b'; delete process.env.OLD;",
            teardown_script="console.log(process.env.USER, process.env.OLD);",
        )
        assert bench.asked.one("x-user") == "ann-b"
    assert messages(result) == ["ann-b undefined"]


async def test_a_variable_that_setup_deletes_is_not_set() -> None:
    async with a_bench(variables=(a_variable("USER", "ann"),)) as bench:
        result = await bench.run(
            request={"headers": headers({"x-user": "{{USER}}"})},
            setup_script="console.log('going'); delete process.env.USER;",
        )
        assert bench.origin.asked == []
    assert said(result) == "The variable USER is not set."
    assert messages(result) == ["going"]


async def test_nothing_of_one_run_reaches_the_next() -> None:
    async with a_bench() as bench:
        await bench.run(setup_script="process.env.LEFT = 'over'; globalThis.left = 'over';")
        result = await bench.run(setup_script="console.log(process.env.LEFT, globalThis.left);")
    assert messages(result) == ["undefined undefined"]


async def test_the_generic_variables_tell_a_script_of_its_run() -> None:
    names = ["CHECK_ID", "CHECK_NAME", "CHECK_TYPE", "CHECK_RUN_ID", "REGION", "RUNTIME_VERSION"]
    script = f"for (const name of {names}) console.log(process.env[name]); console.log(REGION);"
    job = a_job(an_api_spec(), location="cellar", check_name="Cart", check_id="c-1", run_id="r-1")
    async with a_bench(environment=job_environment(job)) as bench:
        result = await bench.run(setup_script=script, runtime_id="2025.04")
    assert messages(result) == ["c-1", "Cart", "API", "r-1", "cellar", "2025.04", "cellar"]


async def test_generic_variables_are_for_scripts_alone_and_the_checks_own_win() -> None:
    async with a_bench(
        environment={"CHECK_NAME": "Cart", "REGION": "cellar"},
        variables=(a_variable("CHECK_NAME", "mine"),),
    ) as bench:
        result = await bench.run(
            request={"headers": headers({"x-name": "{{CHECK_NAME}}", "x-at": "{{REGION}}"})},
            setup_script="console.log(process.env.CHECK_NAME);",
        )
    assert said(result) == "The variable REGION is not set."
    assert messages(result) == ["mine"]


SECRETS = {"SERVICE_SECRET_DB": "of-the-location", "SERVICE_SECRET_OWN": "of-the-location"}


async def test_scripts_read_the_locations_secrets_and_the_checks_own_variables_win() -> None:
    own = a_variable("SERVICE_SECRET_OWN", "of-the-check")
    async with a_bench(location_secrets=SECRETS, variables=(own,)) as bench:
        result = await bench.run(
            setup_script="request.headers['x-db'] = process.env.SERVICE_SECRET_DB;",
            teardown_script="console.log(process.env.SERVICE_SECRET_DB);"
            "console.log(process.env.SERVICE_SECRET_OWN);",
        )
        assert bench.asked.one("x-db") == "of-the-location"
        assert bench.ctx.workspace.secrets == ()
    assert messages(result) == ["of-the-location", "of-the-check"]


async def test_the_locations_secrets_fill_no_templates() -> None:
    async with a_bench(location_secrets=SECRETS) as bench:
        result = await bench.run(
            request={"headers": headers({"x-db": "{{SERVICE_SECRET_DB}}"})}, setup_script=";"
        )
        assert bench.origin.asked == []
    assert said(result) == "The variable SERVICE_SECRET_DB is not set."


async def test_the_locations_secrets_take_nothing_of_what_a_check_may_pass() -> None:
    secrets = {"SERVICE_SECRET_DB": "k" * 100_000}
    async with a_bench(location_secrets=secrets) as bench:
        body = {"body": "x" * 250_000}
        result = await bench.run(request=body, setup_script="request.body += 'y'")
        assert result.failure is None
        result = await bench.run(request={"body": "x" * 270_000}, setup_script=";")
    assert re.fullmatch(
        r"What is passed has 270\d\d\d bytes, and at most 262144 may pass to the setup script, "
        r"so it did not run\.",
        said(result) or "",
    )


async def test_the_address_of_the_request_is_a_variable() -> None:
    async with a_bench(variables=(a_variable("PATH_PART", "x y"),)) as bench:
        url = bench.origin.url("/{{PATH_PART}}")
        result = await bench.outcome(
            an_api_spec(
                url,
                setup_script="console.log(process.env.REQUEST_URL);",
                teardown_script="console.log(process.env.REQUEST_URL, request.url);",
            )
        )
        sent = bench.origin.url("/x%20y")
    assert messages(result) == [url, f"{sent} {sent}"]


async def test_an_address_of_the_checks_own_stays_through_its_scripts() -> None:
    async with a_bench() as bench:
        url = bench.origin.url()
        result = await bench.outcome(
            an_api_spec("{{{REQUEST_URL}}}cart", setup_script="", teardown_script=""),
            variables=(a_variable("REQUEST_URL", url),),
        )
        assert result.status is Status.PASSED, result.failure
        assert bench.asked.target == "/cart"


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
            monkeypatch.setattr("runners.kit.api_scripts.LIMIT_S", limit_s)
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


async def test_without_a_response_teardown_does_not_run() -> None:
    async with a_bench() as bench:
        result = await bench.outcome(
            an_api_spec("http://127.0.0.1:9/", teardown_script="console.log('never')")
        )
    assert result.failure is not None
    assert result.failure.kind is FailureKind.CONNECT
    assert messages(result) == ["There was no whole response, so the teardown script did not run."]
    assert result.log[0].phase == "teardown"


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


async def test_libraries_of_the_runtime_and_snippets_can_be_required() -> None:
    sign = "const crypto = require('crypto-js'); exports.sign = (t) => crypto.SHA1(t).toString();"
    async with a_bench() as bench:
        result = await bench.run(
            setup_script="request.headers.sign = require('./snippets/sign').sign('tea');",
            teardown_script="console.log(require('lodash').chunk([1, 2, 3], 2).length);",
            snippets=(Dependency(path="snippets/sign.js", content=sign),),
        )
        assert bench.asked.one("sign") == hashlib.sha1(b"tea").hexdigest()
    assert messages(result) == ["2"]


async def test_libraries_behind_a_link_are_found() -> None:
    with TemporaryDirectory() as folder:
        async with (
            open_harness(linked_runtimes(Path(folder))) as harness,
            http_origin(JSON) as origin,
            a_context(harness=harness) as ctx,
        ):
            script = "import lodash from 'lodash';\nconsole.log(lodash.camelCase('a_b'));"
            result = await Bench(origin, ctx).run(setup_script=script)
    assert (result.failure, messages(result)) == (None, ["aB"])


async def test_libraries_that_node_may_not_read_are_no_fault_of_the_script() -> None:
    async with a_bench() as bench:
        found = runtimes_here().get(None)
        shut = replace(found, modules=found.modules.parent / "elsewhere")
        job = ScriptJob(
            file="setup.js",
            phase="setup",
            script="",
            env={},
            secret_names=(),
            region="",
            request=ScriptRequest(method="GET", url="", body="", headers={}, query_parameters={}),
            response=None,
            snippets={},
            modules=str(found.modules),
        )
        async with ScriptRunner(bench.harness, shut, keep_secret=lambda _: None) as runner:
            with pytest.raises(NodeBrokeError):
                await runner.run(job, limit_s=LONG_S, limit="its limit")


async def test_scripts_and_snippets_may_import_and_have_types() -> None:
    sign = "import { SHA1 } from 'crypto-js';\nexport const sign = (t: string) => `${SHA1(t)}`;"
    async with a_bench() as bench:
        result = await bench.run(
            setup_script="import { sign } from './snippets/sign.js';\n"
            "const word: string = await Promise.resolve('tea');\n"
            "request.headers.sign = sign(word);",
            teardown_script="import 'lodash';\nconst a: number = 1;\nnothing();",
            snippets=(Dependency(path="snippets/sign.js", content=sign),),
        )
        assert bench.asked.one("sign") == hashlib.sha1(b"tea").hexdigest()
    assert said(result).endswith("ReferenceError: nothing is not defined (teardown.js:3:1)")


async def test_setup_may_ask_the_network() -> None:
    async with a_bench({"/token": reply(b"t0ken"), "/cart": JSON}) as bench:
        await bench.run(
            setup_script=f"""
                const answer = await fetch('{bench.origin.url("/token")}');
                request.headers['x-token'] = await answer.text();""",
        )
        assert bench.asked.one("x-token") == "t0ken"


async def test_a_secret_that_a_script_sets_leaves_in_no_form() -> None:
    secret = "s3cr3t/fresh+value"
    script = f"""
        process.env.SERVICE_SECRET_TOKEN = '{secret}';
        request.headers['x-token'] = process.env.SERVICE_SECRET_TOKEN;
        request.queryParameters.t = process.env.SERVICE_SECRET_TOKEN;
        console.log(process.env.SERVICE_SECRET_TOKEN);
        process.stdout.write(process.env.SERVICE_SECRET_TOKEN);
        console.log(Buffer.from(process.env.SERVICE_SECRET_TOKEN).toString('base64'));"""
    async with a_bench() as bench:
        result = await bench.run(
            setup_script=script,
            teardown_script="throw new Error(process.env.SERVICE_SECRET_TOKEN);",
        )
        assert bench.asked.one("x-token") == secret
        found = bench.ctx.workspace.secrets
    assert found == (secret,)
    clean = Scrubber().clean(a_result(result), job=a_job(an_api_spec()), found=found)
    assert result.failure is not None
    assert secret in result.failure.message
    for form in (secret, "s3cr3t%2Ffresh%2Bvalue", "czNjcjN0L2ZyZXNoK3ZhbHVl"):
        assert form.encode() not in clean.body, form


async def test_a_new_value_of_a_secret_variable_is_secret() -> None:
    async with a_bench(variables=(a_secret("TOKEN", "old-value"),)) as bench:
        await bench.run(setup_script="process.env.TOKEN = 'new-value';")
        assert bench.ctx.workspace.secrets == ("new-value",)
        assert usable(bench.ctx.workspace.secrets) == ("new-value",)


async def test_a_locked_header_stays_locked_when_setup_changes_it() -> None:
    locked = (KeyValue(key="X-Key", value="a", locked=True),)
    job = a_job(an_api_spec(request=an_http_request(headers=locked)))
    async with a_bench() as bench:
        result = await bench.run(
            request={"headers": locked}, setup_script="request.headers['X-Key'] = 'bbbb';"
        )
        assert bench.asked.one("x-key") == "bbbb"
    assert b"bbbb" not in Scrubber().clean(a_result(result), job=job).body


async def test_scripts_trust_the_further_roots(tmp_path: Path) -> None:
    ca, roots = trustme.CA(), tmp_path / "roots.pem"
    roots.write_bytes(pem_of(ca))
    async with (
        http_origin(reply(b"t0ken"), tls=good(ca)) as origin,
        open_harness(runtimes_here(), extra_roots=roots) as harness,
        a_context(harness=harness) as ctx,
    ):
        result = await Bench(origin, ctx).run(
            request={"skip_ssl": True},
            setup_script=f"console.log((await fetch('{origin.url()}')).status);",
        )
    assert messages(result) == ["200"]


async def test_an_older_runtime_runs_scripts_too() -> None:
    async with a_bench() as bench:
        result = await bench.run(
            setup_script="console.log(process.version.split('.')[0]);", runtime_id="2025.04"
        )
    assert messages(result) == ["v22"]


async def test_a_runtime_that_is_not_here_sends_the_job_back() -> None:
    async with a_bench() as bench:
        with pytest.raises(MissingRuntimeError):
            await bench.run(setup_script="", runtime_id="2023.02")


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
        assert not bench.ctx.workspace.is_made
        spares = bench.harness.spares
    assert spares.waiting == 0
