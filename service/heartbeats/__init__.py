"""Pings from jobs that should run, and the timers that they reset."""
