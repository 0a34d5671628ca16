"""Whether a check that can be read can also work: addresses, hosts, names, assertions. Pure."""

from collections.abc import Callable, Iterator, Sequence

from contract.assertions import Assertion
from contract.checks import ApiSpec, CheckSpec, DnsSpec, HttpSpec, check_type
from contract.playwright_config import config_problem
from contract.requests import HostRequest, HttpRequest
from contract.scripted import BrowserSpec, MultiStepSpec, PlaywrightSpec
from contract.scripts import dependencies_problem, is_like_a_path, path_problem, script_problem
from contract.sense import Wrong, assertion_problem, expression_of, path_of
from contract.specs import RequestSpec
from contract.targets import dns_name_problem, header_problem, hostname_problem, url_problem
from runners.kit.jsonpath import BadPathError, hold_path
from runners.kit.patterns import BadPatternError, compile_pattern


def spec_problems(spec: CheckSpec) -> Iterator[Wrong]:
    """The fields that cannot work, by their paths, and why."""
    if isinstance(spec, HttpSpec):
        yield from _of_http(spec.request)
    if isinstance(spec, RequestSpec) and isinstance(spec.request, HostRequest):
        yield from _of("$.request.hostname", spec.request.hostname, hostname_problem)
    if isinstance(spec, DnsSpec):
        yield from _of("$.request.query", spec.request.query, dns_name_problem)
        yield from _of("$.request.nameServer", spec.request.name_server or "", _server_problem)
    if isinstance(spec, RequestSpec):
        yield from _of_assertions(spec, spec.assertions)
    if isinstance(spec, ApiSpec):
        yield from _of_code("setupScript", spec.setup_script)
        yield from _of_code("teardownScript", spec.teardown_script)
    if isinstance(spec, BrowserSpec | MultiStepSpec):
        yield from _of_script(spec)
    if isinstance(spec, PlaywrightSpec):
        yield from _of("$.workingDir", spec.working_dir, path_problem)


def _of(path: str, text: str | None, problem_of: Callable[[str], str | None]) -> Iterator[Wrong]:
    if text is not None and (problem := problem_of(text)):
        yield path, problem


def _of_code(field: str, text: str | None) -> Iterator[Wrong]:
    """A file names a script by a field of its own; its path often stands in that of the text."""
    for path, problem in _of(f"$.{field}", text, script_problem):
        meant = f"; did you mean {field}File?" if is_like_a_path(text or "") else ""
        yield path, problem + meant


def _of_script(spec: BrowserSpec | MultiStepSpec) -> Iterator[Wrong]:
    yield from _of_code("script", spec.script)
    yield from _of("$.scriptPath", spec.script_path, path_problem)
    if found := dependencies_problem(spec.dependencies, script_path=spec.script_path):
        yield f"$.dependencies{found[0]}", found[1]
    if spec.playwright_config and (found := config_problem(spec.playwright_config)):
        yield f"$.playwrightConfig.{found[0]}", found[1]


def _of_http(request: HttpRequest) -> Iterator[Wrong]:
    yield from _of("$.request.url", request.url, url_problem)
    for order, header in enumerate(request.headers):
        if problem := header_problem(header.key, header.value):
            yield f"$.request.headers[{order}]", problem


def _server_problem(name_server: str) -> str | None:
    """Empty: the default servers are asked."""
    return hostname_problem(name_server) if name_server else None


def _of_assertions(spec: CheckSpec, assertions: Sequence[Assertion]) -> Iterator[Wrong]:
    for order, assertion in enumerate(assertions):
        if found := assertion_problem(assertion, check_type(spec)) or _expression(assertion):
            field, problem = found
            yield f"$.assertions[{order}].{field}", problem


def _expression(assertion: Assertion) -> Wrong | None:
    """Judged by the runners' own libraries and their limits."""
    try:
        if (path := path_of(assertion)) is not None:
            hold_path(path)
        if (expression := expression_of(assertion)) is not None:
            compile_pattern(expression[1])
    except BadPathError as problem:
        return "property", f"is no JSONPath: {problem}"
    except BadPatternError as problem:
        field = expression_of(assertion)
        return (field[0] if field else "property"), f"is no regular expression: {problem}"
    return None
