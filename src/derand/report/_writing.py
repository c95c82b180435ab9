"""What all reports share: files, the browser and notebooks. Must not know what a report says."""

from __future__ import annotations

import tempfile
import webbrowser
from abc import ABC, abstractmethod
from pathlib import Path

from derand._core.files import PathLike, replace_when_done
from derand.report._render import frame_page


class WrittenReport(ABC):
    """A report that can be had in several formats."""

    @abstractmethod
    def to_json(self) -> str:
        """The dict as JSON; infinity is the text "inf"."""

    @abstractmethod
    def to_html(self) -> str:
        """One HTML page with everything inside."""

    @abstractmethod
    def to_markdown(self) -> str:
        """The report in short, as Markdown."""

    @abstractmethod
    def to_latex(self) -> str:
        """Its main table, as LaTeX (needs the package booktabs)."""

    def write(self, path: PathLike) -> None:
        """Write the report to a file, in the format that the end of its name says: .html, .md, .tex or .json.

        Parameters
        ----------
        path : path-like
        """
        formats = {".html": self.to_html, ".md": self.to_markdown, ".tex": self.to_latex, ".json": self.to_json}
        ending = Path(path).suffix.lower()
        if ending not in formats:
            raise ValueError(f"`path` must end with one of {', '.join(formats)}, got {str(path)!r}.")
        _write_text(formats[ending](), path)

    def write_html(self, path: PathLike) -> None:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : path-like
        """
        _write_text(self.to_html(), path)

    def open(self) -> Path:
        """Write the page to a temporary file and show it in the browser.

        Returns
        -------
        Path
            Where the page lies; it is left there.
        """
        path = Path(tempfile.mkdtemp(prefix="derand-")) / "report.html"
        self.write_html(path)
        webbrowser.open(path.as_uri())
        return path

    @property
    @abstractmethod
    def title(self) -> str:
        """What stands above it."""

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks: its styles stay inside."""
        return frame_page(self.to_html(), self.title)


def _write_text(content: str, path: PathLike) -> None:
    with replace_when_done(path) as draft:
        draft.write_text(content, encoding="utf-8")
