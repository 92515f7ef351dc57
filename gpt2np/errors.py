"""The exceptions of this package. Their messages are for the user: what was expected, what came, what to do."""


class CheckpointError(ValueError):
    """A model file is missing, malformed or does not fit."""


class DownloadError(ValueError):
    """A file could not be fetched."""
