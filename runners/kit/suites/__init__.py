"""What PLAYWRIGHT suites are run with: their bundle, their packages, their command, their facts."""
