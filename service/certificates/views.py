"""Client certificates as the API shows them."""

from service.certificates.bodies import ClientCertificateShown
from service.certificates.model import CertificateRow
from service.http.times import moment


def shown(row: CertificateRow) -> ClientCertificateShown:
    """A certificate as its answer, without its secrets."""
    return ClientCertificateShown(
        id=row.id,
        host=row.host,
        cert=row.cert,
        ca=row.ca,
        created_at=moment(row.created_ms),
        expires_at=moment(row.expires_ms),
    )
