"""How long results, their files and their roll-ups are kept."""
