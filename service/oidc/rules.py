"""Who of those whom the provider knows may sign in, and as what."""

import re
from collections.abc import Mapping
from typing import Final

from service.accounts.model import Role
from service.oidc.model import OidcIdentity, OidcRefusedError, OidcSettings

_ROLES: Final = {role.value: role for role in Role}
_DOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def require_allowed(settings: OidcSettings, who: OidcIdentity) -> Role | None:
    """The role that groups give. None: they say nothing.

    Raises:
        OidcRefusedError: the settings let this person not in.
    """
    domain = (who.email or "").rpartition("@")[2].casefold()
    if settings.domains and domain not in settings.domains:
        whose = f"{who.email} is not one" if who.email else "it has verified no address of yours"
        raise OidcRefusedError(
            f"People with addresses of {' or '.join(settings.domains)} may sign in here;"
            f" {settings.issuer} says that {whose}."
        )
    if not settings.roles:
        return None
    found = {settings.roles[group] for group in who.groups & settings.roles.keys()}
    if not found:
        raise OidcRefusedError(
            f"None of your groups at {settings.issuer} may sign in here; ask whoever runs this"
            " service to name one of them in OIDC_ROLES."
        )
    return Role.READ_WRITE if Role.READ_WRITE in found else Role.READ_ONLY


def parse_domains(text: str) -> tuple[str, ...]:
    """Domains such as `example.com,example.org`.

    Raises:
        ValueError: one of them is none.
    """
    domains = tuple(part.strip().casefold() for part in text.split(",") if part.strip())
    for domain in domains:
        if not _DOMAIN.fullmatch(domain):
            raise ValueError(f"has {domain}; use domains as in example.com,example.org")
    return domains


def parse_roles(text: str) -> Mapping[str, Role]:
    """Roles of groups, such as `sre=READ_WRITE,staff=READ_ONLY`.

    Raises:
        ValueError: one of them is none.
    """
    roles = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        group, _, role = part.rpartition("=")
        if not group or role.upper() not in _ROLES:
            raise ValueError(f"has {part}; use roles as in sre=READ_WRITE,staff=READ_ONLY")
        roles[group.strip()] = _ROLES[role.upper()]
    return roles
