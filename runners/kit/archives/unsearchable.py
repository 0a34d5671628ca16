"""Why a file cannot be made clean."""


class UnsearchableFileError(Exception):
    """A secret could be in the file and not be found; the text says why."""


class TooMuchError(UnsearchableFileError):
    """To search it would take more than one file may."""


class NoTextError(UnsearchableFileError):
    """The file is neither text nor an archive: it could leave if there were no secrets."""
