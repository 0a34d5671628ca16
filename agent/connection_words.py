"""Why no connection came about, in the system's words: the library's speak of TLS without any."""

import os
import socket
import ssl

import aiohttp


def cause_of(problem: BaseException) -> str:
    """The end of a sentence, without its full stop."""
    match problem:
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLError():
            pass
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return "its name cannot be looked up"
        case aiohttp.ClientConnectorError() if not isinstance(problem.os_error, ssl.SSLError):
            return cause_of(problem.os_error)
        case OSError() if problem.errno and problem.errno > 0:
            return os.strerror(problem.errno).lower()
        case _:
            pass
    return str(problem) or type(problem).__name__
