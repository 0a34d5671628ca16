from datetime import UTC, datetime

from service.object_store.presign import Signer, checksum_header


def test_a_link_is_signed_as_in_the_example_of_the_manual_of_s3() -> None:
    signer = Signer(
        key_id="AKIAIOSFODNN7EXAMPLE",
        secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        region="us-east-1",
    )
    link = signer.presign(
        "GET",
        "https://examplebucket.s3.amazonaws.com/test.txt",
        valid_s=86_400,
        headers={},
        now=datetime(2013, 5, 24, tzinfo=UTC),
    )
    assert link == (
        "https://examplebucket.s3.amazonaws.com/test.txt"
        "?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )


def test_a_digest_is_sent_in_base64() -> None:
    header = checksum_header("00" * 31 + "ff")
    assert header == {"x-amz-checksum-sha256": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP8="}
