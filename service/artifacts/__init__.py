"""The files that runs leave."""
