"""The agents' side of the protocol."""
