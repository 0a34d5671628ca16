"""The queue of runs: enqueue, claim, renew, release, expire."""
