"""The control plane: decides what is due and what a result means."""
