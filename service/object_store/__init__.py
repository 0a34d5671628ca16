"""Where files of results and bundles are kept: folders, or a bucket of an S3-compatible store."""
