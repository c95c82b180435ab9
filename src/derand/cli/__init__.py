"""The command line."""

from __future__ import annotations

from derand.cli._app import app, main

__all__ = ["app", "main"]
