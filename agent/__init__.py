"""The daemon that takes jobs, runs them and delivers results."""
