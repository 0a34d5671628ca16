"""Takes secrets out of files that hold files: archives, traces and compressed data."""
