"""Take secrets out of a result: only a Scrubber makes a `Clean` one.

- Secret values, given to the Scrubber or found in the job, go wherever they stand in the outcome,
  in every encoded form that `secret_forms` knows; so do their beginnings where a text was cut.
- Values of sensitive headers (`sensitive.SENSITIVE_HEADERS`) and of locked request headers go by
  the header's name.
- Credentials go from URLs.
- Of a file, and of the files in it, the secret values go, and values of sensitive headers;
  pixels cannot be searched.

It searches the bytes that will be sent, and hands on these very bytes.

The envelope (ids and times) is the service's own and stays. Secrets under four characters and
words such as `true` or `https` stay too (`job_secrets`): hiding them would destroy the result.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple, NewType

import msgspec

from contract.job import Job
from contract.result import HttpEvidence, Outcome, Result
from contract.wire import encode
from runners.kit.file_secrets import NoTextError, hide_in_file
from runners.kit.rewriting import Rewriter, may_hold_credentials
from runners.kit.secret_sources import secret_sources
from runners.kit.secrets.job_secrets import locked_headers, secrets_of, usable
from runners.kit.secrets.pattern import SecretPattern
from runners.kit.sensitive import SENSITIVE_HEADERS
from runners.kit.workspace import RunFile

CleanFile = NewType("CleanFile", RunFile)
"""A file without secrets; what may be uploaded."""

ROUNDS: Final = 4
"""A replacement beside what is left may spell a secret again (`abc` + `*` for `abc*`)."""


class Clean(msgspec.Struct, frozen=True):
    """A result without secrets; what may leave the agent."""

    result: Result
    body: bytes
    """The result as it was encoded and searched; these bytes are stored and sent."""
    replacements: int = 0
    """How much was hidden. 0 too when it was read from disk."""


class CleanedFile(NamedTuple):
    """A clean file, and how much was hidden."""

    file: CleanFile
    replacements: int
    shows_secret: bool = False
    """A trace tells that a page showed a secret: so may the pictures of its run."""
    left_out: tuple[str, ...] = ()
    """What of the files in it does not leave with it, and why, for the reader."""


class Scrubber:
    """Knows the agent's own secrets and finds each job's."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._own = usable(self._secrets)
        self._patterns = _Patterns()

    @property
    def skipped(self) -> int:
        """How many of the agent's own secrets are too short, or too common, to be hidden."""
        return sum(not usable([secret]) for secret in self._secrets)

    def clean(
        self, result: Result, *, job: Job | None = None, found: tuple[str, ...] = ()
    ) -> Clean:
        """The result without secrets. The job tells its own; None: there is none to ask.

        `found`: those that the run came upon.
        """
        secrets = self._secrets_with(job, found)
        locked = locked_headers(job) if job is not None else frozenset[str]()
        if not secrets and not locked and not _has_sensitive_headers(result.outcome):
            body = encode(result)
            if not may_hold_credentials(body):
                return Clean(result, body)
        rewriter = Rewriter(
            pattern=self._patterns.of(secrets) if secrets else None,
            hidden_headers=SENSITIVE_HEADERS | locked,
        )
        return _rewritten(result, rewriter)

    def clean_file(self, file: RunFile, *, job: Job, found: tuple[str, ...] = ()) -> CleanedFile:
        """The file without secrets, rewritten where it lies; it blocks while it reads.

        `found`: those that the run came upon.

        Raises:
            UnsearchableFileError: a secret could be in it and not be found.
            OSError: it cannot be read or written.
        """
        try:
            hidden = hide_in_file(file, self._secrets_with(job, found))
        except NoTextError as problem:
            sources = secret_sources(job, found=found, of_agent=bool(self._own))
            said = f"{problem}, and this run has some: {sources}. Without them it is kept"
            raise NoTextError(said) from problem
        return CleanedFile(CleanFile(hidden.file), *hidden[1:])

    def _secrets_with(self, job: Job | None, found: tuple[str, ...]) -> tuple[str, ...]:
        if job is not None:
            found += secrets_of(job)
        return usable((*self._own, *found)) if found else self._own


class _Patterns:
    """Compiled patterns, the least used forgotten first, bounded by their size."""

    LIMIT_CHARS: Final = 1_000_000
    """Some 50 MB of compiled patterns; about a hundred secrets of 32 characters."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, ...], SecretPattern] = OrderedDict()
        self._chars = 0

    def of(self, secrets: tuple[str, ...]) -> SecretPattern:
        pattern = self._known.get(secrets)
        if pattern is None:
            pattern = self._known[secrets] = SecretPattern(secrets)
            self._chars += pattern.size_chars
            self._forget()
        self._known.move_to_end(secrets)
        return pattern

    def _forget(self) -> None:
        while self._chars > self.LIMIT_CHARS and len(self._known) > 1:
            _, oldest = self._known.popitem(last=False)
            self._chars -= oldest.size_chars


def _rewritten(result: Result, rewriter: Rewriter) -> Clean:
    """What is changed is encoded and searched again, until nothing is left to change."""
    result = _with_outcome(result, rewriter.headers(result.outcome))
    body = encode(result)
    for _ in range(ROUNDS):
        outcome = rewriter.cut_ends(rewriter.texts(result.outcome, encoded=body))
        if outcome is result.outcome:
            break
        result = _with_outcome(result, outcome)
        body = encode(result)
    return Clean(result, body, rewriter.replacements)


def _with_outcome(result: Result, outcome: Outcome) -> Result:
    if outcome is result.outcome:
        return result
    return msgspec.structs.replace(result, outcome=outcome)


def _has_sensitive_headers(outcome: Outcome) -> bool:
    evidence = outcome.evidence
    if not isinstance(evidence, HttpEvidence):
        return False
    response = evidence.response
    if response is not None and not SENSITIVE_HEADERS.isdisjoint(map(str.lower, response.headers)):
        return True
    return not SENSITIVE_HEADERS.isdisjoint(map(str.lower, evidence.request.headers))
