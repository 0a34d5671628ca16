"""Whether what was seen is good: thresholds and assertions."""
