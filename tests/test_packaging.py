"""The package as others get it: the wheel, the cost of importing it, and the command."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import derand

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("numba", "sklearn", "matplotlib", "scipy.stats", "pandas", "polars", "pyarrow")


def run_python(code: str, *, path: Path | None = None, cwd: Path | None = None) -> str:
    """Output of a fresh interpreter, which sees `path` before what is installed and nothing of the environment."""
    prelude = f"import sys; sys.path.insert(0, {str(path)!r})\n" if path else ""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-I", "-c", prelude + code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(kind: str, folder: Path) -> Path:
    """The distribution of that kind, wheel or sdist, as built from the source tree."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Types are announced, the licence is inside, and tests and caches are not."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "derand/py.typed" in names
    assert {"derand/report/templates/page.html.j2", "derand/report/static/report.js"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} == {"derand", f"derand-{derand.__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]
    assert not [name for name in names if {"experiments", "baselines", "bench", "reproduce"} & set(name.split("/"))]
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "derand").rglob("*.py")}
    assert sources <= set(names)


def test_the_source_distribution_holds_the_experiments(tmp_path: Path) -> None:
    """Whoever has the sources can run them: modules, recipes and tests are inside."""
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = [path for ending in ("py", "toml") for path in (ROOT / "experiments").rglob(f"*.{ending}")]
    assert {str(path.relative_to(ROOT)) for path in wanted} <= names
    assert {"experiments/reproduce/common.toml", "tests/experiments/conftest.py", "Makefile"} <= names


def test_the_wheel_works_from_elsewhere(wheel: Path, tmp_path: Path) -> None:
    """An unpacked wheel certifies, saves and loads, far from the source tree."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = """
import derand, sys
assert derand.__file__.startswith(sys.path[0]), derand.__file__
model = derand.AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
derand.save(model, "model.json")
certificates = derand.certify(derand.load("model.json"), [[0.0], [2.0]], "gaussian:0.25", backend="numpy")
print(certificates.radius.round(3).tolist())
"""
    assert run_python(code, path=tmp_path / "site", cwd=tmp_path).strip() == "[0.5, 1.5]"


def test_the_wheel_names_the_command(wheel: Path) -> None:
    """Installing the wheel creates the command `derand`."""
    archive = zipfile.ZipFile(wheel)
    (entries,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    assert "derand = derand.__main__:main" in archive.read(entries).decode()


def test_the_lowest_versions_are_those_that_are_declared() -> None:
    """`make test-lowest` installs every dependency in the lowest version that the package allows."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    lines = (ROOT / "constraints" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [need.replace(">=", "==") for need in declared]


def test_the_oldest_libraries_are_those_that_are_declared() -> None:
    """`make test-importers` installs the libraries whose models are read in the oldest releases that extras allow."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    lines = (ROOT / "constraints" / "importers-oldest.txt").read_text(encoding="utf-8").splitlines()
    needs = [need for name in ("xgboost", "lightgbm", "catboost", "interpret") for need in extras[name]]
    assert {need.replace(">=", "==") for need in needs} <= set(lines)


def list_imports(folder: Path) -> set[str]:
    """Top-level names that the modules of a folder import, lazily or not."""
    names: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_extra":
                names |= {
                    argument.value.partition(".")[0] for argument in node.args[:1] if isinstance(argument, ast.Constant)
                }
    return names - set(sys.stdlib_module_names) - {"derand"}


def test_every_imported_library_is_declared() -> None:
    """What the package imports is a dependency, an extra, or a table library that only its own users pass in."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [*project["dependencies"], *(need for extra in project["optional-dependencies"].values() for need in extra)]
    declared = {canonicalize_name(Requirement(need).name) for need in needs}
    distributions = importlib.metadata.packages_distributions()
    undeclared = {
        name
        for name in list_imports(ROOT / "src" / "derand")
        if not declared & {canonicalize_name(found) for found in distributions.get(name, [name])}
    }
    assert undeclared == {"pandas", "polars"}


def test_importing_is_quick_and_light() -> None:
    """`import derand` loads three small modules of its own, and nothing else but Python's."""
    code = """
import sys
before = set(sys.modules)
import derand
loaded = {name for name in sys.modules if name.split(".")[0] not in sys.stdlib_module_names}
print(*sorted(loaded - before))
"""
    assert run_python(code).split() == ["derand", "derand._core", "derand._core.later"]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["report", "--help"], ["certify", "--help"]])
def test_the_command_answers_without_heavy_imports(arguments: list[str]) -> None:
    """Help and version load no numerical library."""
    heavy = (*HEAVY, "numpy", "scipy")
    code = f"""
import sys
from derand.app.commands import main
sys.argv = ["derand", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("HEAVY", *[name for name in {heavy!r} if name in sys.modules])
"""
    lines = run_python(code).strip().splitlines()
    assert lines[-1] == "HEAVY"
    assert len(lines) > 1


@pytest.mark.parametrize(("noise", "rule"), [("gaussian:0.5", "vote"), ("gaussian:0.5", "mean"), ("laplace:1", "vote")])
def test_the_first_certificate_does_without_the_compiler(noise: str, rule: str) -> None:
    """Fifty rows of few terms, without SciPy, too."""
    code = f"""
import sys
import numpy as np
from derand import AdditiveEnsemble, StepFunction, certify
rng = np.random.default_rng(0)
terms = [StepFunction(i, np.sort(rng.normal(size=3)), rng.integers(0, 50, 4)) for i in range(14)]
result = certify(AdditiveEnsemble(terms, 350, 14), rng.normal(size=(50, 14)), {noise!r}, rule={rule!r})
assert (result.radius > 0).sum() > 40
unwanted = ("numba", "scipy", "sklearn", "pandas", "derand.certificates.search.attacks")
print(*[name for name in unwanted if name in sys.modules])
"""
    assert not run_python(code, path=ROOT / "src").split()


def test_the_installed_command_tells_its_version() -> None:
    """`derand --version` prints the version of the package."""
    command = Path(sys.executable).with_name("derand")
    if not command.exists():
        pytest.skip("the command `derand` is not installed beside this interpreter")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"derand {derand.__version__}"


def test_the_citation_names_this_version_and_the_paper() -> None:
    """Whoever cites the package by CITATION.cff cites what is installed; read as text, without a parser for YAML."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line and not line.startswith(" "))
    assert fields["cff-version"] == "1.2.0"
    assert fields["version"] == derand.__version__
    assert fields["license"] == "BSD-3-Clause"
    assert "title: (De-)Randomized Smoothing for Decision Stump Ensembles" in text
    assert [name for name in ("Horváth", "Müller", "Fischer", "Vechev") if f"family-names: {name}" not in text] == []


@pytest.mark.parametrize("name", ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_the_pages_beside_the_code_lead_somewhere(name: str) -> None:
    """Relative links name files of the repository."""
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (ROOT / link.partition("#")[0]).is_file()] == []
