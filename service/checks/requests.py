"""Parts that the requests of several check types are made of."""

from typing import Annotated

from pydantic import Field

from contract.targets import hostname_problem, url_problem
from service.checks.fields import (
    Family,
    Version,
)
from service.http.schema import RequestModel, Text, judged_by

Url = Annotated[Text, Field(min_length=1, max_length=2048), judged_by(url_problem)]
Hostname = Annotated[Text, Field(min_length=1, max_length=2048), judged_by(hostname_problem)]


class HttpWrite(RequestModel):
    """What URL monitors and API checks ask for."""

    url: Url
    """`*********` for user and password: those that are stored."""
    follow_redirects: bool = True
    """Whether redirects are followed."""
    skip_ssl: bool = Field(default=False, alias="skipSSL")
    """Do not verify the certificate."""
    ip_family: Family = "IPv4"
    """The version of the Internet Protocol."""
    http_version: Version = "AUTO"
    """AUTO offers HTTP/2 over TLS; the others insist."""
