"""Weight formats, vocabulary files, downloads, loading."""
