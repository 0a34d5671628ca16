"""Pages of projects: what is kept as code, and its deployments."""
