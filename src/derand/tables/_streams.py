"""Streams of bytes that are read as they come: what was read ahead to tell their format is put back.

Must not know tables.
"""

from __future__ import annotations

from typing import IO

_HEAD_BYTES = 2**16
_LEAST_BYTES = 2**16  # of CSV, read at a time: a line must end among them


def read_head(stream: IO[bytes], ends: tuple[bytes, ...]) -> bytes:
    """The beginning of a stream: its first line, or what is there where it begins with one of `ends`."""
    head = b""
    while b"\n" not in head and not head.startswith(ends) and len(head) < _HEAD_BYTES:
        more = Rest(b"", stream).read(_HEAD_BYTES)
        if not more:
            break
        head += more
    return head


class Rest:
    """A stream with what was read of it ahead put back: a readable file that cannot seek."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head, self._stream = head, stream
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return self._take(len(self._head)) + self._stream.read()
        if self._head:
            return self._take(size)
        return self._read_some(size)

    def _take(self, size: int) -> bytes:
        taken, self._head = self._head[:size], self._head[size:]
        return taken

    def _read_some(self, size: int) -> bytes:
        """What is there by now, as soon as something is, and no more than asked for."""
        read_once = getattr(self._stream, "read1", None)
        return bytes(self._stream.read(size) if read_once is None else read_once(size))

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


class Lines(Rest):
    """The same for readers that need a line at least: some of them at a time."""

    def read(self, size: int = -1) -> bytes:
        parts = [super().read(size)]
        n_bytes = len(parts[0])
        while parts[-1] and n_bytes < min(size, _LEAST_BYTES):
            parts.append(super().read(size - n_bytes))
            n_bytes += len(parts[-1])
        return b"".join(parts)


class Whole(Rest):
    """The same for readers that take a short answer for the end: as many bytes as asked for, but at the end."""

    def read(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        while size < 0 or size > 0:
            part = super().read(size)
            if not part:
                break
            parts.append(part)
            size = size if size < 0 else size - len(part)
        return b"".join(parts)
