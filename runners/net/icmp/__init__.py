"""ICMP: one echo request and its reply."""
