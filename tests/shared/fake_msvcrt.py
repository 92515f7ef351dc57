"""The lock of Windows' msvcrt, made of flock: for tests that simulate Windows elsewhere."""

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows
    from msvcrt import LK_NBLCK, locking
else:
    LK_NBLCK = 2

    def locking(fd, mode, n_bytes):
        try:
            flock(fd, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None
