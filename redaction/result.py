"""Hides secrets in a result, which `clean` then scans.

- Secret values of the agent, the job and the run are hidden everywhere in the outcome, in every
  encoded form (`forms`), as are their prefixes where a text was cut.
- Values of sensitive headers (`policy.SENSITIVE_HEADERS`) and of locked request headers are hidden
  by the header's name; the former also in texts of scripts and call logs (`HeadersInText`).
- Credentials in URLs are hidden.

It searches the very bytes that are sent. The envelope (ids and times) is the service's own and not
searched. Secrets under four characters and words such as `true` or `https` are not hidden
(`policy.select_usable`): that would destroy the result.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from contract.checks import Lane, lane
from contract.evidence import HttpEvidence
from contract.job import Job
from contract.result import LogLine, Outcome, Result
from contract.wire import decode, encode
from redaction.archives.headers import HeaderRedactor
from redaction.clean import Clean, LeakGate, Withheld
from redaction.compiled import Pattern, compile_re2
from redaction.policy import (
    SENSITIVE_HEADERS,
    TypedFilter,
    job_secrets,
    locked_headers,
    no_typed_secrets,
    secret_sources,
    select_usable,
    unhidden_variables,
    variables_with_secrets,
    with_certain_prefixes,
)
from redaction.replacer import SecretPattern
from redaction.rewrite import Rewriter, may_hold_credentials

ROUNDS: Final = 4
"""How often a result is searched again: a replacement may complete a secret (`abc*`)."""


class Scrubber:
    """Hides the agent's secrets and each job's in results."""

    def __init__(
        self,
        secrets: Iterable[str] = (),
        *,
        kept_from_scripts: Iterable[str] = (),
        sensitive_headers: Iterable[str] = (),
    ) -> None:
        """`kept_from_scripts`: secrets that no check is given, but a script might find.

        `sensitive_headers`: further headers whose values are never shown, in any case.
        """
        self._secrets = tuple(secrets)
        self._own = select_usable(self._secrets)
        self._kept = select_usable(kept_from_scripts)
        self._kept_bytes = tuple(secret.encode("utf-8", "surrogatepass") for secret in self._kept)
        self._further = frozenset(name.lower() for name in sensitive_headers) - SENSITIVE_HEADERS
        self._sensitive = SENSITIVE_HEADERS | self._further
        self._headers_in_text = HeadersInText(self._sensitive)
        self._patterns = _Patterns()
        self._gate = LeakGate()

    @property
    def skipped(self) -> int:
        """How many of the agent's own secrets are too short, or too common, to be hidden."""
        return sum(not select_usable([secret]) for secret in self._secrets)

    @property
    def header_names(self) -> frozenset[str]:
        """Lower-case names of headers whose values are never shown."""
        return self._sensitive

    def clean(
        self,
        result: Result,
        *,
        job: Job | None = None,
        found: tuple[str, ...] = (),
        typed_among: TypedFilter = no_typed_secrets,
    ) -> Clean:
        """Hide the secrets in a result. `job`: the job it is of, with its own secrets.

        `found`: secrets that the run reported. `typed_among`: selects those it typed by the letter.

        Raises:
            LeakError: the scanner still found one.
            UnscannableError: one could be there undetected.
        """
        if job is None or lane(job.spec) is Lane.MAIN:
            outcome, said = self._headers_in_text.hide(result.outcome)
            result, found = _with_outcome(result, outcome), (*found, *said)
        secrets = self.all_secrets(job, self._with_values(found, result.outcome))
        if job is not None:
            result = _with_warnings(result, unhidden_variables(job))
        if not secrets:
            clean = self._clean_unsearched(result, job)
            if clean is not None:
                return clean
            secrets = self._kept
        return self._rewrite_and_scan(result, job, secrets=secrets, typed=typed_among(secrets))

    def clean_unsearched(
        self, result: Result, *, job: Job | None = None, found: tuple[str, ...] = ()
    ) -> Clean | None:
        """Clean a result that has no secret to search for. None: use `clean`, which takes longer.

        It may be called while another thread runs `clean`.
        """
        if job is None or lane(job.spec) is Lane.MAIN:
            return None
        if self.all_secrets(job, self._with_values(found, result.outcome)):
            return None
        return self._clean_unsearched(_with_warnings(result, unhidden_variables(job)), job)

    def _clean_unsearched(self, result: Result, job: Job | None) -> Clean | None:
        """Clean the result of a check without secrets. None: its text may still have some."""
        if _locked_headers(job) or self._has_sensitive_headers(result.outcome):
            return self._rewrite_and_scan(result, job, secrets=())
        body = encode(result)
        if may_hold_credentials(body) or self._holds_kept(body):
            return None
        return self._gate.check(result, body, secrets=())

    def _rewrite_and_scan(
        self,
        result: Result,
        job: Job | None,
        *,
        secrets: tuple[str, ...],
        typed: tuple[str, ...] = (),
    ) -> Clean:
        rewriter = Rewriter(
            pattern=self._patterns.get(secrets, typed) if secrets else None,
            hidden_headers=self._sensitive | _locked_headers(job),
        )
        result, body = _rewrite(result, rewriter)
        count = rewriter.replacements
        sought = with_certain_prefixes(secrets, typed)
        return self._gate.check(result, body, secrets=sought, replacements=count)

    def _with_values(self, found: tuple[str, ...], outcome: Outcome) -> tuple[str, ...]:
        """Add the values of headers that the agent's settings name."""
        return (*found, *_header_values(outcome, self._further)) if self._further else found

    def explain(self, withheld: Withheld, *, job: Job, found: tuple[str, ...]) -> Withheld:
        """Add where the secrets come from, if the file would be sent without them."""
        if not withheld.is_no_text:
            return withheld
        sources = secret_sources(job, found=found, agent_has_secrets=bool(self._own))
        has = f"{withheld.because}, and this run has secrets: {sources}"
        said = f"{has}. A run without secrets keeps it"
        return msgspec.structs.replace(withheld, because=said)

    def all_secrets(self, job: Job | None, found: tuple[str, ...]) -> tuple[str, ...]:
        """All secrets to hide in what a job produced; `found`: those that the run reported."""
        own = self._own
        if job is not None:
            found += job_secrets(job)
            own += self._kept if lane(job.spec) is Lane.MAIN else ()
        return select_usable((*own, *found)) if found or own is not self._own else own

    def name_secrets(self, job: Job, found: tuple[str, ...]) -> dict[str, str]:
        """What people call the secrets of a job, by value; `found`: those that the run reported."""
        sources = (
            *((f"the value of {key}", values) for key, values in variables_with_secrets(job)),
            ("a secret of the agent's settings", self._secrets),
            ("a value that the script set in SERVICE_SECRET_*", found),
            ("a password or key of the check's request", job_secrets(job)),
        )
        named = [(value, name) for name, values in sources for value in select_usable(values)]
        return dict(reversed(named))

    def _holds_kept(self, body: bytes) -> bool:
        """Whether the body has one as it is; uptime checks never see them, so that is enough."""
        return any(secret in body for secret in self._kept_bytes)

    def _has_sensitive_headers(self, outcome: Outcome) -> bool:
        """Whether it has a sensitive header; cheap, for it is asked of every result."""
        evidence = outcome.evidence
        if not isinstance(evidence, HttpEvidence):
            return False
        response, sensitive = evidence.response, self._sensitive
        if response is not None and not sensitive.isdisjoint(map(str.lower, response.headers)):
            return True
        return not sensitive.isdisjoint(map(str.lower, evidence.request.headers))


class _Patterns:
    """A cache of compiled patterns, least recently used first out, bounded by size."""

    LIMIT_CHARS: Final = 1_000_000
    """Some 50 MB of compiled patterns; about a hundred secrets of 32 characters."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[tuple[str, ...], ...], SecretPattern] = OrderedDict()
        self._chars = 0

    def get(self, secrets: tuple[str, ...], typed: tuple[str, ...]) -> SecretPattern:
        which = secrets, typed
        pattern = self._known.get(which)
        if pattern is None:
            pattern = self._known[which] = SecretPattern(secrets, typed=typed)
            self._chars += pattern.size_chars
            self._evict()
        self._known.move_to_end(which)
        return pattern

    def _evict(self) -> None:
        while self._chars > self.LIMIT_CHARS and len(self._known) > 1:
            _, oldest = self._known.popitem(last=False)
            self._chars -= oldest.size_chars


def _rewrite(result: Result, rewriter: Rewriter) -> tuple[Result, bytes]:
    """Rewrite, encode and search again until nothing changes."""
    result = _with_outcome(result, rewriter.headers(result.outcome))
    body = encode(result)
    for _ in range(ROUNDS):
        outcome = rewriter.cut_ends(rewriter.texts(result.outcome, encoded=body))
        if outcome is result.outcome:
            break
        result = _with_outcome(result, outcome)
        body = encode(result)
    return result, body


def _locked_headers(job: Job | None) -> frozenset[str]:
    return frozenset() if job is None else locked_headers(job)


def _with_warnings(result: Result, variables: tuple[tuple[str, str], ...]) -> Result:
    """Add warnings about secrets that the result may still show."""
    if not variables:
        return result
    lines = tuple(
        LogLine(after_ms=0, level="WARN", message=f"{name} is not hidden: {because}.")
        for name, because in variables
    )
    log = (*lines, *result.outcome.log)
    return _with_outcome(result, msgspec.structs.replace(result.outcome, log=log))


def _with_outcome(result: Result, outcome: Outcome) -> Result:
    if outcome is result.outcome:
        return result
    return msgspec.structs.replace(result, outcome=outcome)


def _header_values(outcome: Outcome, names: frozenset[str]) -> Iterator[str]:
    """The values of the exchange's headers with these names."""
    evidence = outcome.evidence
    if not isinstance(evidence, HttpEvidence):
        return
    response = evidence.response
    for headers in (evidence.request.headers, {} if response is None else response.headers):
        for name, value in headers.items():
            if name.lower() in names:
                yield value


class HeadersInText:
    """Hides the values of sensitive headers in texts of scripts and call logs."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._name_pattern = _compile(names)

    def hide(self, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        """Hide the values after such names; the outcome and the values.

        The server's answer is left alone: its body is the check's subject, and its headers are
        hidden by `Rewriter.headers`.
        """
        evidence = outcome.evidence
        if not isinstance(evidence, HttpEvidence):
            return self._hide_all(outcome)
        said, found = self._hide_all(msgspec.structs.replace(outcome, evidence=None))
        if not found and said.failure == outcome.failure and said.log == outcome.log:
            return outcome, ()
        return msgspec.structs.replace(said, evidence=evidence), found

    def _hide_all(self, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        text = encode(outcome)
        if self._name_pattern.search(text) is None:
            return outcome, ()
        hiding = HeaderRedactor(self._names)
        # A text may be JSON of its own, which looks otherwise within that of the result.
        tree = self._hide_in_tree(msgspec.to_builtins(outcome), hiding)
        text = _hide(msgspec.json.encode(tree), hiding)
        return decode(text, Outcome), hiding.found

    def _hide_in_tree(self, value: Any, hiding: HeaderRedactor) -> Any:
        """Hide the values in each text of the tree by itself."""
        if isinstance(value, dict):
            return {key: self._hide_in_tree(one, hiding) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._hide_in_tree(one, hiding) for one in value]
        if not isinstance(value, str) or self._name_pattern.search(value.encode()) is None:
            return value
        return _hide(value.encode(), hiding).decode()


def _hide(text: bytes, hiding: HeaderRedactor) -> bytes:
    hiding.collect(text)
    return hiding.hide(text)[0]


def _compile(names: frozenset[str]) -> Pattern:
    return compile_re2(f"(?i:{'|'.join(map(re.escape, sorted(names)))})".encode())
