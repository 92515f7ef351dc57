"""The exceptions of this package. Their messages say what was expected, what was found and what to do.

A message may quote a file, and a file may contain anything: a name of 50 MB, or control characters for a terminal. So
the text of these exceptions is always one line of bounded length.
"""

MAX_MESSAGE = 500  # characters


class FileError(ValueError):
    def __str__(self):
        return readable(super().__str__())


class CheckpointError(FileError):
    """A model file is missing, malformed, or does not match the others."""


class DownloadError(FileError):
    """A file could not be downloaded."""


class NoSuchFile(DownloadError):
    """The server does not have the file."""


def readable(message):
    """The message with control characters escaped and, if it is too long, without its middle.

    >>> readable("model\\x1b[2J.bin")
    'model\\\\x1b[2J.bin'
    """
    message = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 205]} ... {message[-200:]}"
