"""How long results, their files, their roll-ups and alerts are kept."""
