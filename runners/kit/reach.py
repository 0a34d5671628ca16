"""From a host name to addresses that the egress rules let a check reach."""

from typing import Final

from contract.requests import IpFamily
from contract.result import FailureKind
from runners.kit.addresses import literal_family
from runners.kit.failures import CheckFailed
from runners.kit.runner import Network

_NOT_OF_A_HOST: Final = ("/", ":", "?", "#", "@")


async def reachable_addresses(
    hostname: str, family: IpFamily, network: Network, *, field: str = "hostname"
) -> tuple[str, ...]:
    """The addresses of the host, in the order to try.

    One refused address refuses them all: a name that leads to a forbidden place as well is a
    trap more often than a mistake.

    Raises:
        CheckFailed: of kind DNS without an address, or when `field` holds more than a host; of
            kind CONNECT for an address of the other family; of kind EGRESS with a forbidden one.
    """
    if literal_family(hostname) is None:
        _stop_if_more_than_a_host(hostname, field)
    _stop_if(network.refusals(hostname), hostname)
    addresses = await network.resolver.resolve(hostname, family)
    if literal_family(hostname) is not None:
        return addresses  # judged as an address already
    for address in addresses:
        _stop_if(network.egress.refuses(hostname, address), hostname, address)
    return addresses


def allowed_name(hostname: str, network: Network) -> None:
    """Judge a host that somebody else will look up.

    Raises:
        CheckFailed: of kind EGRESS.
    """
    _stop_if(network.refusals(hostname), hostname)


def _stop_if_more_than_a_host(text: str, field: str) -> None:
    if not any(mark in text for mark in _NOT_OF_A_HOST):
        return
    raise CheckFailed(
        FailureKind.DNS,
        f"{text} cannot be looked up: {field} takes a name or an address only, "
        "without scheme, port and path.",
        {"code": "ENOTFOUND", "hostname": text},
    )


def _stop_if(refusal: str | None, hostname: str, address: str | None = None) -> None:
    if refusal is not None:
        detail = {"code": "EGRESS_REFUSED", "hostname": hostname, "address": address}
        raise CheckFailed(FailureKind.EGRESS, refusal, detail)
