"""Tables: frames and arrays as matrices with category codes, and files of rows."""

from __future__ import annotations

from derand.frames._encoding import TableEncoding, is_frame

__all__ = ["TableEncoding", "is_frame"]
