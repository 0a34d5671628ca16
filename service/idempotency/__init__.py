"""Answers to requests that may come twice, given again instead of acting twice."""
