"""Whoever misses a file is told which secrets kept it back, and never what they are."""

from contract.job import ClientCertificate, Job, Variable
from redaction.policy import secret_sources
from tests.builders.specs import a_job, a_secret

OF_REQUEST = "passwords and keys of the check's request, proxy or client certificates"


def told(job: Job, *, found: tuple[str, ...] = (), agent_has_secrets: bool = False) -> str:
    return secret_sources(job, found=found, agent_has_secrets=agent_has_secrets)


def test_secret_variables_are_told_by_name() -> None:
    plain = Variable(key="PLAIN", value="anything at all")
    job = a_job(variables=(a_secret("TOKEN", "correct-horse"), plain))
    assert told(job) == "the check's secret variables (TOKEN)"


def test_of_many_variables_the_first_are_told() -> None:
    job = a_job(variables=tuple(a_secret(f"T{n}", f"correct-horse-{n}") for n in range(7)))
    assert told(job) == "the check's secret variables (T0, T1, T2, T3, T4 and 2 more)"


def test_a_secret_that_is_too_short_to_be_hidden_keeps_nothing_back() -> None:
    assert told(a_job(variables=(a_secret("PIN", "123"),))) == ""


def test_what_the_script_and_the_agent_bring_is_told_as_theirs() -> None:
    assert told(a_job(), found=("from-script",)) == "values that the script set in SERVICE_SECRET_*"
    assert told(a_job(), agent_has_secrets=True) == "SERVICE_SECRET_* in the agent's environment"


def test_a_passphrase_and_a_proxys_password_are_told_as_such() -> None:
    certificate = ClientCertificate(host="a", cert="C", key="K", passphrase="open-sesame")
    assert told(a_job(client_certificates=(certificate,))) == OF_REQUEST
    assert told(a_job(proxy_url="http://me:correct-horse@proxy.test")) == OF_REQUEST
