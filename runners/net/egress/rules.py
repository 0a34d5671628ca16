"""Which addresses and names checks may reach (`EGRESS_ALLOW`, `EGRESS_DENY`).

A rule is a network (`10.0.0.0/8`), an address, a host name, `*.suffix` (every name below the
suffix, at any depth, but not the suffix itself) or `*` (everything).

1. `EGRESS_DENY` wins over `EGRESS_ALLOW`, however precise either rule is.
2. Link-local and cloud metadata addresses are refused unless an `EGRESS_ALLOW` rule names one of
   them or a network inside theirs; a wide rule such as `0.0.0.0/0` does not open them.
3. Without `EGRESS_ALLOW` everything else may be reached. With it, a target is allowed when its
   name or its address matches one of the rules.

The rules do not apply to the agent's own resolvers and the location's proxy.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from contract.targets import ascii_host
from runners.net.egress.addresses import AddressForms, Network, read_address, read_host

_NAME: Final = re.compile(
    r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
)
_EXPECTED: Final = "write a network (10.0.0.0/8), an address, a host name, *.suffix or *."


@lru_cache(maxsize=4096)
def normalize_name(host: str) -> str:
    """Normalize a name for comparison: lower case, IDNA, no final dot."""
    name = host.strip()
    with suppress(UnicodeError):
        name = ascii_host(name)
    return name.rstrip(".").lower()


def matches_name(rule: str, name: str) -> bool:
    """Whether the rule matches the name."""
    if rule.startswith("*."):
        return len(name) >= len(rule) and name.endswith(rule[1:])
    return rule in ("*", name)


def read_name_rule(rule: str) -> str | None:
    """Read the rule as a name. None: it is a network or an address.

    Raises:
        ValueError: it is neither, with a sentence.
    """
    if rule == "*":
        return rule
    name = normalize_name(rule)
    last = name.rpartition(".")[2]
    if ":" in rule or "/" in rule or last.isdigit():
        return None
    if not _NAME.fullmatch(name) or any(len(label) > 63 for label in name.split(".")):
        raise ValueError(_EXPECTED)
    return name


BUILT_IN: Final = tuple(
    Network.read(rule)
    for rule in (
        "169.254.0.0/16",
        "100.100.100.200",
        "192.0.0.192",
        "fe80::/10",
        "fd00:ec2::/32",
        "fd20:ce::254",
    )
)
"""Link-local networks (they hold most clouds' metadata), and the metadata addresses of Alibaba,
Oracle, AWS and Google outside of them."""


class EgressRuleError(ValueError):
    """Rules that cannot be read; the text has one line per bad rule."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one setting."""

    networks: tuple[Network, ...] = ()
    names: tuple[str, ...] = ()
    """Names in lower case and IDNA, `*.suffix` or `*`."""

    def __bool__(self) -> bool:
        return bool(self.networks or self.names)

    def name_rule(self, host: str) -> str | None:
        """The rule that matches this name. None: there is none."""
        return next((rule for rule in self.names if matches_name(rule, host)), None)


@dataclass(frozen=True, slots=True)
class EgressRules:
    """What the operator allows and denies; without settings, only metadata is refused."""

    allow: RuleSet = RuleSet()
    """What is allowed. Empty: all that is not denied."""
    deny: RuleSet = RuleSet()
    guarded: tuple[Network, ...] = BUILT_IN
    """Link-local and metadata networks, as far as they are still refused."""
    opened: tuple[Network, ...] = ()
    """Rules of `allow` inside a guarded network, which open that part of it."""

    @classmethod
    def parse(cls, allow: Sequence[str], deny: Sequence[str]) -> "EgressRules":
        """Read both settings; blank rules are skipped.

        Raises:
            EgressRuleError: with one line per bad rule.
        """
        problems: list[str] = []
        allowed = _read_rules(allow, setting="EGRESS_ALLOW", problems=problems)
        denied = _read_rules(deny, setting="EGRESS_DENY", problems=problems)
        if problems:
            raise EgressRuleError(problems)
        opened = tuple(net for net in allowed.networks if any(net.within(own) for own in BUILT_IN))
        return cls(allow=allowed, deny=denied, opened=opened)

    def refuses_name(self, host: str) -> str | None:
        """Why the host may not be looked up; None: it may, and its addresses are to be judged.

        An address literal is judged as an address.
        """
        literal = read_host(host)
        if literal is not None:
            return self._refuses(host, literal, name="")
        name = normalize_name(host)
        if (rule := self.deny.name_rule(name)) is not None:
            return f"{host} is refused by the EGRESS_DENY rule {rule}."
        if not self.allow or self.allow.networks or self.allow.name_rule(name) is not None:
            return None
        return f"{host} matches no rule of EGRESS_ALLOW."

    def refuses_address(self, address: str) -> str | None:
        """Why an address that no name led to is refused; None: it may be reached.

        Where the name is known, ask `refuses`: an allowed name allows its addresses.
        """
        return self._refuses(address, read_address(address), name="")

    def refuses(self, host: str, address: str) -> str | None:
        """Why this resolved address of this host is refused; None: it may be reached."""
        target = address if host == address else f"{host} ({address})"
        return self._refuses(target, read_address(address), name=normalize_name(host))

    def _refuses(self, target: str, address: AddressForms | None, *, name: str) -> str | None:
        if address is None:
            return f"{target} is refused: that is no IP address."
        if self.deny and (rule := self._denying_rule(address, name)) is not None:
            return f"{target} is refused by the EGRESS_DENY rule {rule}."
        if (guard := self._guard(address)) is not None:
            fix = self._how_to_open()
            return (
                f"{target} is refused: {guard} holds link-local or cloud metadata addresses; {fix}"
            )
        if not self.allow or self._allows(address, name):
            return None
        return f"{target} matches no rule of EGRESS_ALLOW."

    def _how_to_open(self) -> str:
        """Explain how to allow an address, and that a first rule shuts out everything else."""
        fix = "to allow it, name the address in EGRESS_ALLOW"
        if self.allow:
            return f"{fix}."
        shut = "which then lists all that checks may reach; a rule * beside it keeps the rest"
        return f"{fix}, {shut}."

    def _denying_rule(self, address: AddressForms, name: str) -> str | None:
        rule = self.deny.name_rule(name) if name else _find_star(self.deny)
        return rule or _find_rule(self.deny.networks, address.every)

    def _guard(self, address: AddressForms) -> str | None:
        for form in address.every:
            guard = _find_rule(self.guarded, (form,))
            if guard is not None and _find_rule(self.opened, (form,)) is None:
                return guard
        return None

    def _allows(self, address: AddressForms, name: str) -> bool:
        if (self.allow.name_rule(name) if name else _find_star(self.allow)) is not None:
            return True
        return all(_find_rule(self.allow.networks, (form,)) for form in address.reached)


def _find_rule(networks: Iterable[Network], forms: Sequence[tuple[int, int]]) -> str | None:
    for network in networks:
        for form in forms:
            if network.holds(form):
                return network.rule
    return None


def _find_star(rules: RuleSet) -> str | None:
    return "*" if "*" in rules.names else None


def _read_rules(rules: Sequence[str], *, setting: str, problems: list[str]) -> RuleSet:
    networks: list[Network] = []
    names: list[str] = []
    for rule in filter(None, map(str.strip, rules)):
        try:
            if (name := read_name_rule(rule)) is not None:
                names.append(name)
            else:
                networks.append(Network.read(rule))
        except ValueError as problem:
            problems.append(f"{setting} has the rule {rule!r}: {problem}")
    return RuleSet(networks=tuple(networks), names=tuple(names))
