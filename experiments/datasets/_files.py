"""Finding data files on this computer and checking that they are the right ones. Nothing is ever downloaded."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = "DERAND_DATA"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that a dataset is read from."""

    name: str
    sha256: str
    origin: str
    address: str
    form: str


def read_checked(file: DataFile) -> bytes:
    """Content of a data file; refuses one whose checksum is another."""
    path = find(file)
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"{path} is not the {file.name} that results are known for: its sha256 is {found}, expected {file.sha256}. "
            f"Its origin is {file.origin}, {file.address}; {file.form}."
        )
    return content


def find(file: DataFile) -> Path:
    """Where the file lies; the error for a missing one says where to get it and where to put it."""
    folders = list_folders()
    for folder in folders:
        if (folder / file.name).is_file():
            return folder / file.name
    places = " or ".join(str(folder) for folder in folders)
    raise FileNotFoundError(
        f"{file.name} is missing. It comes from {file.origin}, {file.address}; {file.form}; sha256 {file.sha256}. "
        f"Put it into {places}" + ("." if ENVIRONMENT in os.environ else f", or name its folder in ${ENVIRONMENT}.")
    )


def list_folders() -> list[Path]:
    """Folders to look in: the one named by the environment, then the user's cache."""
    named = os.environ.get(ENVIRONMENT)
    return [*([Path(named).expanduser()] if named else []), name_cache() / "derand"]


def name_cache() -> Path:
    """The user's cache folder, by the habit of each system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
