"""Variables and secrets that scripts of API checks read, set and delete."""

import re

from contract.requests import BodyType, HttpMethod, KeyValue
from contract.result import Status
from redaction.policy import select_usable
from redaction.result import Scrubber
from runners.scripting.environment import build_job_environment
from tests.builders.api_scripts import a_bench, messages, said
from tests.builders.observations import a_result
from tests.builders.specs import a_job, a_secret, a_variable, an_api_spec, an_http_request, headers


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
    async with a_bench(environment=build_job_environment(job)) as bench:
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
        assert select_usable(bench.ctx.workspace.secrets) == ("new-value",)


async def test_a_secret_is_told_that_is_set_in_another_environment() -> None:
    async with a_bench() as bench:
        await bench.run(
            setup_script=(
                "process.env = { ...process.env, SERVICE_SECRET_A: 'value-1' };"
                "process.env.SERVICE_SECRET_B = 'value-2';"
            ),
            teardown_script="if (process.env.SERVICE_SECRET_B !== 'value-2') throw new Error();",
        )
        assert set(bench.ctx.workspace.secrets) == {"value-1", "value-2"}


async def test_a_locked_header_stays_locked_when_setup_changes_it() -> None:
    locked = (KeyValue(key="X-Key", value="a", locked=True),)
    job = a_job(an_api_spec(request=an_http_request(headers=locked)))
    async with a_bench() as bench:
        result = await bench.run(
            request={"headers": locked}, setup_script="request.headers['X-Key'] = 'bbbb';"
        )
        assert bench.asked.one("x-key") == "bbbb"
    assert b"bbbb" not in Scrubber().clean(a_result(result), job=job).body
