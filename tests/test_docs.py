"""The documentation: the reference names everything public, examples and links hold, and the site builds alone."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import shlex
from pathlib import Path

import pytest
from sklearn.datasets import load_diabetes
from typer.testing import CliRunner

import derand
from derand import plot
from derand.app import commands
from tests.app.jobs.tables import make_applications

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BUILD = DOCS / "_build"
PAGES = sorted(DOCS.rglob("*.md"))
WITH_EXAMPLES = sorted(
    str(page.relative_to(DOCS))
    for page in PAGES
    if re.search(r"^ *>>> ", page.read_text(encoding="utf-8"), re.MULTILINE)
)
BY_RUN_PAGE = {"credit.md", *(f"compare/{name}.md" for name in ("art", "ebm", "fairlearn", "mapie", "veritas"))}
"""Pages that also hold commands or need other libraries: the long tests of `scripts/run_page.py` run them."""
LONG = ("decide.md", "quickstart.md", "xgboost.md")  # `make test-docs` runs them
NEEDS = {"xgboost.md": "xgboost"}
"""Libraries that the examples of a page need beside the package."""
GENERATED = {"settings.md": BUILD / "options.py"}
"""Pages that the build of the site writes, and the source of each."""
NOT_CHECKED = {
    "10.0.0.1:8786", "arblib.org", "arxiv.org", "distributed.dask.org", "docs.dask.org", "jobqueue.dask.org",
    "kubernetes.dask.org",
}  # fmt: skip
"""Hosts that pages link to: tests use no network, so whether these addresses exist is not checked."""
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
OUTSIDE = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//""")


def named_in_reference() -> list[str]:
    return DIRECTIVE.findall((DOCS / "api.md").read_text(encoding="utf-8"))


def read_pages(*others: Path) -> dict[Path, str]:
    return {page: page.read_text(encoding="utf-8") for page in (*PAGES, *others)}


def headings_of(page: Path) -> set[str]:
    """Anchors of a page's headings, as the site makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def test_the_reference_names_everything_public_once() -> None:
    """The reference holds the exports, the public functions of `derand.plot`, and what users take from rooms, once."""
    plots = {
        f"derand.plot.{name}"
        for name in plot.__all__
        if inspect.isfunction(getattr(plot, name)) and derand._HOMES.get(name) != "explain.plots"
    }
    named = named_in_reference()
    rooms = {"derand.frames.check_columns"}
    rooms |= {f"derand.distributed.{name}" for name in ("fit", "certify", "certify_files", "connect")}
    assert set(named) == {f"derand.{name}" for name in derand.__all__} | plots | rooms
    assert len(named) == len(set(named))


def test_what_the_reference_names_has_a_docstring() -> None:
    """Every entry of the reference exists and explains itself."""
    for name in set(named_in_reference()) - {"derand.__version__"}:
        module, _, attribute = name.rpartition(".")
        assert inspect.getdoc(getattr(importlib.import_module(module), attribute)), name


def test_links_between_pages_lead_somewhere() -> None:
    """A relative link names a file of the repository, and its anchor a heading there."""
    for page, text in read_pages().items():
        for link in LINK.findall(text):
            if "://" in link:  # see NOT_CHECKED
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            target = GENERATED.get(path, target)
            assert target.is_file(), (page, link)
            assert not anchor or anchor in headings_of(target), (page, link)


def test_links_to_the_outside_are_listed_as_not_checked() -> None:
    """A new host is added to the list, so that somebody has looked."""
    links = [link for text in read_pages(ROOT / "README.md").values() for link in LINK.findall(text)]
    assert {link.split("/")[2] for link in links if "://" in link} <= NOT_CHECKED


def test_every_page_is_in_the_navigation() -> None:
    """Also those that are written or found elsewhere."""
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {str(page.relative_to(DOCS)) for page in PAGES} | {"rounding.md", "deduction.md", *GENERATED}


def test_the_glossary_is_short() -> None:
    """At most 25 words."""
    rows = re.findall(r"^\| (?!word)\w", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert 15 < len(rows) <= 25


def test_no_page_puts_compiled_code_where_others_can_write() -> None:
    """numba runs what it finds in its cache: a folder of a name that others can guess is a way in."""
    for page, text in read_pages(ROOT / "README.md").items():
        folders = re.findall(r"NUMBA_CACHE_DIR=(\S+)", text)
        assert not [folder for folder in folders if re.match(r"/(var/)?tmp/|/dev/shm", folder)], page


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long) if name in LONG else name
        for name in WITH_EXAMPLES
        if name not in BY_RUN_PAGE
    ],
)
def test_the_examples_of_a_page_print_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `>>>` line of the page runs, in order, and prints the lines below it."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)  # examples write files
    page = DOCS / name
    text = "\n".join(line for line in page.read_text(encoding="utf-8").splitlines() if not line.startswith("```"))
    test = doctest.DocTestParser().get_doctest(text, {}, name, str(page), 0)
    assert test.examples, "the page shows no example"
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert failed == 0, "".join(report)


def test_the_commands_of_the_page_on_numbers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, on the tables that its examples write."""
    monkeypatch.chdir(tmp_path)
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    patients = X.assign(progress=y)
    patients[:350].to_csv("patients.csv", index=False)
    patients[350:].to_csv("new.csv", index=False)
    lines = re.findall(r"^derand (.+)$", (DOCS / "regression.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        result = CliRunner().invoke(commands.app, shlex.split(line))
        assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} >= {"certified.csv", "wider.csv", "radii.csv", "report.html"}


def test_the_run_of_the_page_on_commands_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `derand init` writes for such a table has the lines that the page shows, and all of its commands run."""
    pytest.importorskip("flint", reason="the extra `audit` is not installed")
    monkeypatch.chdir(tmp_path)
    make_applications().to_csv("loans.csv", index=False)
    page = (DOCS / "commands.md").read_text(encoding="utf-8").split("## derand init")[1].split("## derand import")[0]
    (shown,) = re.findall(r"^```toml\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^derand (.+)$", page, re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["init", "run", "run"]
    for line in lines:
        result = CliRunner().invoke(commands.app, shlex.split(line))
        assert result.exit_code == 0, result.output
        written = Path("derand.toml").read_text(encoding="utf-8").splitlines()
        assert set(shown.splitlines()) <= set(written)
    assert Path("results/report.html").exists()


@pytest.fixture
def to_mathml(monkeypatch: pytest.MonkeyPatch) -> object:
    """The converter of the build, which lies beside the pages."""
    pytest.importorskip("latex2mathml", reason="the extra `docs` is not installed")
    monkeypatch.syspath_prepend(str(BUILD))
    return importlib.import_module("mathematics").to_mathml


@pytest.mark.parametrize(
    ("latex", "part"),
    [
        (r"\mathcal F", ">\N{SCRIPT CAPITAL F}<"),
        (r"\mathbf 1", ">\N{MATHEMATICAL BOLD DIGIT ONE}<"),
        (r"[-\lambda, \lambda]", '<mo form="prefix">\N{MINUS SIGN}</mo>'),
        (r"a - b", "<mo>\N{MINUS SIGN}</mo>"),
        (r"\Phi(z)", '<mi mathvariant="normal">\N{GREEK CAPITAL LETTER PHI}</mi>'),
    ],
)
def test_formulas_become_what_browsers_draw(to_mathml: object, latex: str, part: str) -> None:
    """Styled letters become letters of Unicode, signs are spaced by their role, capital Greek stands upright."""
    assert callable(to_mathml)
    assert part in to_mathml(latex)


def test_a_formula_that_is_not_understood_stops_the_build(to_mathml: object) -> None:
    """An unknown command is an error that names the formula, instead of odd letters on the page."""
    assert callable(to_mathml)
    with pytest.raises(ValueError, match="nonsense"):
        to_mathml(r"\nonsense x")


def test_the_site_builds_without_warnings_and_loads_nothing_from_outside(site: Path) -> None:
    """A strict build succeeds; no page refers to a script, style, font or picture elsewhere, and formulas are drawn."""
    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    made = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in PAGES}
    assert made | {"rounding.html", "deduction.html", "settings.html"} <= set(pages)
    assert not [name for name, content in pages.items() if OUTSIDE.search(content)]
    assert not (site / "_build").exists()
    assert "<math " in pages["theory.html"]
    for page in ("theory.html", "deduction.html"):
        assert "$" not in re.sub(r"<script.*?</script>", "", pages[page], flags=re.DOTALL)
    assert 'href="rounding.html"' in pages["theory.html"]
    assert all(flag in pages["settings.html"] for flag in ("--radius", "--witness", "--trust-pickle", "holdout"))
    for name in named_in_reference():
        assert f'id="{name}"' in pages["api.html"], name
