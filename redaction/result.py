"""Hides secrets in a result.

Take secrets out of a result; the scanner then looks whether none is left.

- Secret values, given to the Scrubber or found in the job, go wherever they stand in the outcome,
  in every encoded form that `secrets` knows; so do their beginnings where a text was cut.
- Values of sensitive headers (`sensitive.SENSITIVE_HEADERS`) and of locked request headers go by
  the header's name; of the former also in what scripts and call logs say (`said_headers`).
- Credentials go from URLs.

It searches the bytes that will be sent, and hands on these very bytes.

The envelope (ids and times) is the service's own and stays. Secrets under four characters and
words such as `true` or `https` stay too (`job_secrets`): hiding them would destroy the result.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import re2

from contract.checks import Lane, lane
from contract.evidence import HttpEvidence
from contract.job import Job
from contract.result import LogLine, Outcome, Result
from contract.wire import decode, encode
from redaction.archives.headers import HeaderHiding
from redaction.clean import Clean, LeakGate, Withheld
from redaction.policy import (
    SENSITIVE_HEADERS,
    TypedAmong,
    locked_headers,
    none_typed,
    secret_sources,
    secrets_of,
    unhidden_variables,
    usable,
    with_sure_beginnings,
)
from redaction.replacer import SecretPattern
from redaction.rewrite import Rewriter, may_hold_credentials

ROUNDS: Final = 4
"""A replacement beside what is left may spell a secret again (`abc` + `*` for `abc*`)."""


class Scrubber:
    """Knows the agent's own secrets and finds each job's."""

    def __init__(
        self,
        secrets: Iterable[str] = (),
        *,
        kept_from_scripts: Iterable[str] = (),
        sensitive_headers: Iterable[str] = (),
    ) -> None:
        """`kept_from_scripts`: what no check gets to see, and a script might find all the same.

        `sensitive_headers`: further ones whose values are never shown, in any case of letters.
        """
        self._secrets = tuple(secrets)
        self._own = usable(self._secrets)
        self._kept = usable(kept_from_scripts)
        self._kept_bytes = tuple(secret.encode("utf-8", "surrogatepass") for secret in self._kept)
        self._further = frozenset(name.lower() for name in sensitive_headers) - SENSITIVE_HEADERS
        self._sensitive = SENSITIVE_HEADERS | self._further
        self._said_headers = SaidHeaders(self._sensitive)
        self._patterns = _Patterns()
        self._door = LeakGate()

    @property
    def skipped(self) -> int:
        """How many of the agent's own secrets are too short, or too common, to be hidden."""
        return sum(not usable([secret]) for secret in self._secrets)

    @property
    def header_names(self) -> frozenset[str]:
        """Of headers whose values are never shown, in lower case."""
        return self._sensitive

    def clean(
        self,
        result: Result,
        *,
        job: Job | None = None,
        found: tuple[str, ...] = (),
        typed_among: TypedAmong = none_typed,
    ) -> Clean:
        """The result without secrets. The job tells its own; None: there is none to ask.

        `found`: those that the run came upon. `typed_among`: knows what it typed letter by letter.

        Raises:
            LeakError: the scanner found one all the same.
            UnscannableError: one could be in it and not be found.
        """
        if job is None or lane(job.spec) is Lane.MAIN:
            outcome, said = self._said_headers.hidden(result.outcome)
            result, found = _with_outcome(result, outcome), (*found, *said)
        secrets = self.secrets_with(job, self._with_values(found, result.outcome))
        if job is not None:
            result = _with_warnings(result, unhidden_variables(job))
        if not secrets:
            clean = self._unsearched(result, job)
            if clean is not None:
                return clean
            secrets = self._kept
        return self._rewritten(result, job, secrets=secrets, typed=typed_among(secrets))

    def at_once(
        self, result: Result, *, job: Job | None = None, found: tuple[str, ...] = ()
    ) -> Clean | None:
        """The result if no secret has to be looked for in it. None: that takes its time.

        It may be called while another thread is at work in `clean`.
        """
        if job is None or lane(job.spec) is Lane.MAIN:
            return None
        if self.secrets_with(job, self._with_values(found, result.outcome)):
            return None
        return self._unsearched(_with_warnings(result, unhidden_variables(job)), job)

    def _unsearched(self, result: Result, job: Job | None) -> Clean | None:
        """The result of a check without secrets. None: its text may hold some all the same."""
        if _locked_headers(job) or self._has_sensitive_headers(result.outcome):
            return self._rewritten(result, job, secrets=())
        body = encode(result)
        if may_hold_credentials(body) or self._holds_kept(body):
            return None
        return self._door.through(result, body, secrets=())

    def _rewritten(
        self,
        result: Result,
        job: Job | None,
        *,
        secrets: tuple[str, ...],
        typed: tuple[str, ...] = (),
    ) -> Clean:
        rewriter = Rewriter(
            pattern=self._patterns.of(secrets, typed) if secrets else None,
            hidden_headers=self._sensitive | _locked_headers(job),
        )
        result, body = _rewrite(result, rewriter)
        count = rewriter.replacements
        sought = with_sure_beginnings(secrets, typed)
        return self._door.through(result, body, secrets=sought, replacements=count)

    def _with_values(self, found: tuple[str, ...], outcome: Outcome) -> tuple[str, ...]:
        """With what the headers hold that the agent's settings name."""
        return (*found, *_values_of(outcome, self._further)) if self._further else found

    def explained(self, withheld: Withheld, *, job: Job, found: tuple[str, ...]) -> Withheld:
        """With where the secrets come from, if without them the file would be kept."""
        if not withheld.is_no_text:
            return withheld
        sources = secret_sources(job, found=found, of_agent=bool(self._own))
        said = f"{withheld.because}, and this run has some: {sources}. Without them it is kept"
        return msgspec.structs.replace(withheld, because=said)

    def secrets_with(self, job: Job | None, found: tuple[str, ...]) -> tuple[str, ...]:
        """All that is looked for in what comes of a job: `found` are those the run came upon."""
        own = self._own
        if job is not None:
            found += secrets_of(job)
            own += self._kept if lane(job.spec) is Lane.MAIN else ()
        return usable((*own, *found)) if found or own is not self._own else own

    def _holds_kept(self, body: bytes) -> bool:
        """No uptime check sees them, so a look that costs next to nothing is enough."""
        return any(secret in body for secret in self._kept_bytes)

    def _has_sensitive_headers(self, outcome: Outcome) -> bool:
        """Asked of each result, most of which have no secret."""
        evidence = outcome.evidence
        if not isinstance(evidence, HttpEvidence):
            return False
        response, sensitive = evidence.response, self._sensitive
        if response is not None and not sensitive.isdisjoint(map(str.lower, response.headers)):
            return True
        return not sensitive.isdisjoint(map(str.lower, evidence.request.headers))


class _Patterns:
    """Compiled patterns, the least used forgotten first, bounded by their size."""

    LIMIT_CHARS: Final = 1_000_000
    """Some 50 MB of compiled patterns; about a hundred secrets of 32 characters."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[tuple[str, ...], ...], SecretPattern] = OrderedDict()
        self._chars = 0

    def of(self, secrets: tuple[str, ...], typed: tuple[str, ...]) -> SecretPattern:
        which = secrets, typed
        pattern = self._known.get(which)
        if pattern is None:
            pattern = self._known[which] = SecretPattern(secrets, typed=typed)
            self._chars += pattern.size_chars
            self._forget()
        self._known.move_to_end(which)
        return pattern

    def _forget(self) -> None:
        while self._chars > self.LIMIT_CHARS and len(self._known) > 1:
            _, oldest = self._known.popitem(last=False)
            self._chars -= oldest.size_chars


def _rewrite(result: Result, rewriter: Rewriter) -> tuple[Result, bytes]:
    """What is changed is encoded and searched again, until nothing is left to change."""
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
    """The result with what its reader must know of secrets that it may still show."""
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


def _values_of(outcome: Outcome, names: frozenset[str]) -> Iterator[str]:
    """What the exchange's headers of these names hold."""
    evidence = outcome.evidence
    if not isinstance(evidence, HttpEvidence):
        return
    response = evidence.response
    for headers in (evidence.request.headers, {} if response is None else response.headers):
        for name, value in headers.items():
            if name.lower() in names:
                yield value


_MEMORY_BYTES: Final = 8 << 20


class SaidHeaders:
    """Knows the names of headers whose values are secret whatever they are."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._named = _compile(names)

    def hidden(self, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        """The outcome without the values behind such names; the values, for all the rest.

        What a server answered stays: its body is the check's own matter, its headers are hidden by
        whoever knows that they are headers.
        """
        evidence = outcome.evidence
        if not isinstance(evidence, HttpEvidence):
            return self._hidden(outcome)
        said, found = self._hidden(msgspec.structs.replace(outcome, evidence=None))
        if not found and said.failure == outcome.failure and said.log == outcome.log:
            return outcome, ()
        return msgspec.structs.replace(said, evidence=evidence), found

    def _hidden(self, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        text = encode(outcome)
        if self._named.search(text) is None:
            return outcome, ()
        hiding = HeaderHiding(self._names)
        # A text may be JSON of its own, which looks otherwise within that of the result.
        tree = self._without(msgspec.to_builtins(outcome), hiding)
        text = _hide(msgspec.json.encode(tree), hiding)
        return decode(text, Outcome), hiding.found

    def _without(self, value: Any, hiding: HeaderHiding) -> Any:
        """The tree's texts, each by itself."""
        if isinstance(value, dict):
            return {key: self._without(one, hiding) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._without(one, hiding) for one in value]
        if not isinstance(value, str) or self._named.search(value.encode()) is None:
            return value
        return _hide(value.encode(), hiding).decode()


def _hide(text: bytes, hiding: HeaderHiding) -> bytes:
    hiding.look(text)
    return hiding.hide(text)[0]


def _compile(names: frozenset[str]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    return re2.compile(f"(?i:{'|'.join(map(re.escape, sorted(names)))})".encode(), options)
