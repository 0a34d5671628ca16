"""Where the files of results are kept: a folder, or a bucket of an S3-compatible store."""
