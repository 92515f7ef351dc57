"""Ctrl-C at any line of some files."""

import sys


def interrupted(call, n, *parts):
    """Whether the call ran n lines of files whose paths contain one of these parts; there it is interrupted."""
    n_left = n

    def trace(frame, event, argument):
        nonlocal n_left
        if not any(part in frame.f_code.co_filename.replace("\\", "/") for part in parts):
            return None
        n_left -= event == "line"
        if n_left == 0 and event == "line":
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
