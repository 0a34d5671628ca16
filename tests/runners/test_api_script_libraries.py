"""What scripts of API checks find at hand: libraries, snippets, roots, runtimes."""

import hashlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trustme

from contract.checks import Dependency
from runners.scripting.harness import open_harness
from runners.scripting.node.protocol import ScriptJob, ScriptRequest
from runners.scripting.node.run import NodeBrokeError, ScriptRunner
from runners.scripting.node.runtimes import MissingRuntimeError, Runtimes, find_runtimes
from tests.builders.api_scripts import JSON, Bench, a_bench, messages, said
from tests.builders.context import a_context
from tests.builders.patience import LONG_S
from tests.builders.scripts import runtimes_here
from tests.servers.http_certificates import good, pem_of
from tests.servers.http_origin import http_origin, reply


def linked_runtimes(folder: Path) -> Runtimes:
    """Those of this machine, each behind a link."""
    folder.chmod(0o755)  # scripts of other users run from there
    for runtime in runtimes_here().by_id.values():
        (folder / runtime.id).symlink_to(runtime.node.parents[1])
    return find_runtimes(folder)


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
        async with ScriptRunner(bench.harness, shut, add_secret=lambda _: None) as runner:
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
