"""`picket service`: the service in the foreground, set up by its environment variables."""

from service.__main__ import main


def run_service() -> int:
    """Run it until it is told to stop; gives its exit code (2 bad settings)."""
    return main()
