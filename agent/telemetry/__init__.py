"""What the agent shows: health, metrics, logs, error reports."""
