"""`picket agent`: the agent in the foreground, set up by its environment variables."""

from agent.__main__ import main


def run_agent() -> int:
    """Run it until it is told to stop; gives its exit code (2 bad settings, 3 refused key)."""
    return main()
