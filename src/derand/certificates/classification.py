"""Certifying rows: the border where input is checked, and the way through the rooms.

Owns `certify` and `distribution`. Must not know how a rule proves what it says.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import FloatArray, IntArray, Numbers
from derand._core.finite import cast_exactly, refuse_masked, require_finite, require_unchanged
from derand._core.threads import share_out
from derand._core.units import require_numbered
from derand.certificates.bounds.missing import fill_missing
from derand.certificates.bounds.packing import MAX_SUPPORT, pack_terms, pose_problem
from derand.certificates.bounds.tree_labels import is_sure_label
from derand.certificates.bounds.worst_case import NORMS
from derand.certificates.kinds import Kind, Linear, Majority, OneSum, Pairwise, Trees, kind_of
from derand.certificates.results.certificates import Certificates, Distribution
from derand.certificates.results.flips import code_changes
from derand.certificates.rules.base import (
    DEFAULT_SEARCH,
    Bounds,
    Query,
    SearchedRows,
    TreeSearch,
    make_query,
    read_budget,
)
from derand.certificates.rules.registry import RULES, find_rule
from derand.certificates.search.feasible_set import Target, are_same
from derand.certificates.search.linked import follow_links
from derand.certificates.search.tree_witnesses import settle_witnesses
from derand.certificates.search.witness import Verifier, search_seen_first, shrink_witnesses
from derand.kernels import DEFAULT_BACKEND, NotFiniteError, as_device
from derand.model import AdditiveEnsemble, Model, as_model
from derand.noise import Noise, exp_upward, resolve_noise
from derand.perturbation import Perturbation, describe_unused, resolve, warn_of_nothing
from derand.threat import Threat, as_threats


@overload
def certify(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    l0: int | None = None,
    unseen: bool | None = None,
    backend: str | None = None,
    n_jobs: int | None = None,
    *,
    rule: str = "vote",
    proof: str = "best",
    threat: Threat | None = None,
    budget: int | None = None,
) -> Certificates: ...


@overload
def certify(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    l0: Sequence[int],
    unseen: bool | None = None,
    backend: str | None = None,
    n_jobs: int | None = None,
    *,
    rule: str = "vote",
    proof: str = "best",
    threat: Threat | None = None,
    budget: int | None = None,
) -> list[Certificates]: ...


def certify(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    l0: int | Sequence[int] | None = None,
    unseen: bool | None = None,
    backend: str | None = None,
    n_jobs: int | None = None,
    *,
    rule: str = "vote",
    proof: str = "best",
    threat: Threat | None = None,
    budget: int | None = None,
) -> Certificates | list[Certificates]:
    """Label of each row by a rule, and the radius within which no change can flip it.

    Parameters
    ----------
    model : AdditiveEnsemble or WeightedVote
    X : array-like of shape (n_rows, n_features)
        Category columns hold codes; NaN is a missing value, and an error in a numerical column whose term has no cell
        for it.
    noise : Noise, str, float or None
        Such as `Gaussian(0.25)` or "gaussian:0.25"; a number is Laplace noise of that scale in norm 1, and Gaussian
        noise in all others. None, or "none", is no smoothing: the model as deployed, by the rule "mean".
    l0 : int or sequence of int
        How many categorical features may change at the same time; more than the model has counts as all of them. None
        is 0.
    unseen : bool
        Whether a categorical feature may change to a value that is not in its table. None is True.
    backend : {"numba", "numpy", "cuda"} or None
        None takes the GPU for very large work where there is one, else "numba".
    n_jobs : int or None
        Threads; None or -1 uses all cores.
    rule : {"vote", "mean"}
        How the label is found: "vote" is the label that most noisy copies get, as in the paper; "mean" is class 1 iff
        the expected score is above the threshold.
    proof : {"best", "paper"}
        What may prove a radius of a vote: "best" takes the larger one of the paper's proof and the worst case of the
        expected score; "paper" the paper's alone. The label is the same.
    threat : Threat or None
        What may change, instead of `l0` and `unseen`: any norm, other units.
    budget : int or None
        Of a model whose trees join many columns: how many nodes the search may look at for each row. None is 20,000;
        other models need none, and do not read it.

    Returns
    -------
    Certificates, or a list of them where `l0` is a sequence

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Gaussian, certify
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> c = certify(model, [[0.0], [2.0]], Gaussian(0.25))
    >>> c.label.tolist(), c.radius.round(6).tolist()
    ([0, 1], [0.5, 1.5])

    The model as deployed, without noise; 1 is how far the first row is from the edge:

    >>> certify(model, [[-0.5], [2.0]], None, rule="mean").radius.round(6).tolist()
    [1.0, 1.5]
    """
    threats = as_threats(l0, unseen, threat)
    chosen, rows = read_request(model, X, noise, threats, rule, proof, must_look=False)
    unused = describe_unused(threats[0], model) if threats else None
    if unused is not None:
        warnings.warn(unused, stacklevel=2)
    results = certify_checked(
        model,
        rows,
        chosen,
        threats,
        rule=rule,
        proof=proof,
        backend=backend,
        n_jobs=n_jobs,
        must_look=True,
        search=TreeSearch(read_budget(budget)),
    )
    return results[0] if l0 is None or np.ndim(l0) == 0 else results


def certify_checked(
    model: Model,
    rows: Numbers,
    noise: Noise | None,
    threats: Sequence[Threat],
    *,
    rule: str = "vote",
    proof: str = "best",
    backend: str | None = None,
    n_jobs: int | None = None,
    must_look: bool = False,
    search: TreeSearch = DEFAULT_SEARCH,
) -> list[Certificates]:
    """`certify` for rows that were checked already: numbers of the model's width, missing only where it has a cell.

    `threats`: alike but for `l0`; there is a result for each. `must_look`: whether nobody has looked for NaN and
    infinity yet: a device does so on its way, where it sees all columns.
    """
    check_request(rule, proof, noise, threats)
    if not threats:
        return []
    return certify_perturbed(
        model,
        rows,
        noise,
        resolve_rows(threats, model, noise, rows),
        rule=rule,
        proof=proof,
        backend=backend,
        n_jobs=n_jobs,
        must_look=must_look,
        search=search,
    )


def certify_perturbed(
    model: Model,
    rows: NDArray[np.generic],
    noise: Noise | None,
    perturbation: Perturbation,
    *,
    rule: str,
    proof: str = "best",
    backend: str | None = None,
    n_jobs: int | None = None,
    must_look: bool = False,
    search: TreeSearch = DEFAULT_SEARCH,
) -> list[Certificates]:
    """`certify_checked` for a threat that was resolved already."""
    query = make_query(
        model,
        rows.shape[0],
        noise,
        find_rule(rule),
        perturbation,
        n_jobs=n_jobs,
        backend=backend,
        proof=proof,
        search=search,
    )
    kind = kind_of(model)
    if must_look and _looks_on_device(kind, rows, query):
        query = replace(query, must_look=True)
    elif must_look:
        require_finite(rows, *model.number_columns, query.n_threads)
    try:
        every = kind.bound(rows, query)
    except NotFiniteError:
        require_finite(rows, *model.number_columns, query.n_threads)
        every = kind.bound(rows, replace(query, must_look=False))
    results = []
    for k, bounds in enumerate(every):
        named = _name_bounds(bounds, perturbation.threats[k], rule, noise, model.n_classes, query.n_threads)
        asked = replace(perturbation, threats=perturbation.threats[k : k + 1], budgets=perturbation.budgets[k : k + 1])
        if bounds.tree is not None:
            named = _add_searched(named, bounds.tree, Target(model, noise, rule, asked, library=search.library), rows)
            named = _prefer_seen(named, model, rows, asked, search) if asked.norm is None and asked.l0 else named
        elif asked.norm is None:
            named = _add_witnesses(named, model, rows, asked)
        results.append(named)
    return results


def _looks_on_device(kind: Kind, rows: NDArray[np.generic], query: Query) -> bool:
    """Whether a device finds NaN and infinity, wherever they may not be, while it computes."""
    if as_device(query.kernels) is None or rows.dtype != np.float64:
        return False
    if len(query.perturbation.budgets) != 1 or query.perturbation.has_box:
        return False
    if not isinstance(kind, OneSum) or kind.model.categorical_features or kind.model.missing_features:
        return False
    return query.rule.looks_on_device(pose_problem(kind.ensemble), query)


def _add_witnesses(certificates: Certificates, model: Model, rows: Numbers, perturbation: Perturbation) -> Certificates:
    """The same with what is known of rows that were not proven to hold within their limits."""
    flips, witness = np.zeros(len(certificates), dtype=bool), np.array(rows, dtype=np.float64)
    flipped = np.array(certificates.label)
    changes = np.zeros(witness.shape, dtype=np.int8)
    at = np.flatnonzero(certificates.radius == 0)
    if at.size:
        own, labels = witness[at], certificates.label[at]
        asked = model, certificates.noise, certificates.rule, perturbation
        target = Target(*asked)
        flips[at], witness[at] = search_seen_first(target, own, labels)
        if perturbation.links:
            flips[at], witness[at] = follow_links(target, own, labels, witness[at])
        found, at = flips[at], at[flips[at]]
        verifier = Verifier(*asked, own[found], labels[found], with_error=True)
        witness[at] = shrink_witnesses(verifier, witness[at])
        changes[at] = _code_changes(own[found], witness[at], target)
        flipped[at] = target.label(witness[at]) if at.size else flipped[at]
    return replace(certificates, flips=flips, witness=witness, flipped=flipped, _changes=changes)


def _code_changes(rows: FloatArray, witness: FloatArray, target: Target) -> NDArray[np.int8]:
    """How each column was changed; linked ones follow, and do not count."""
    changes = code_changes(rows, witness, target.model.categorical_features)
    changes[:, [link.column for link in target.perturbation.links]] = 0
    return changes


def _add_searched(
    certificates: Certificates, found: SearchedRows, target: Target, rows: NDArray[np.generic]
) -> Certificates:
    """The same with what the search of a model with trees found."""
    own = np.asarray(rows, dtype=np.float64)
    if target.perturbation.links:
        found = _link_searched(found, target, own, certificates.label)
    settled = settle_witnesses(found, target, own, certificates.label)
    told = replace(certificates, witness=settled.witness)
    if target.perturbation.norm is None:
        flipped, at = np.array(certificates.label), np.flatnonzero(settled.flips)
        flipped[at] = target.label(settled.witness[at]) if at.size else flipped[at]
        ties = at[flipped[at] == certificates.label[at]]  # within rounding the library alone has answered
        if ties.size and target.library is not None:
            flipped[ties] = target.library(settled.witness[ties])
        changes = _code_changes(own, settled.witness, target)
        told = replace(told, flips=settled.flips, flipped=flipped, _changes=changes)
    return replace(
        told,
        is_tie=settled.is_tie,
        attacked=settled.attacked,
        is_exact=settled.is_exact,
    )


def _link_searched(found: SearchedRows, target: Target, rows: FloatArray, labels: IntArray) -> SearchedRows:
    """What the search of trees found, as linked columns let it be; a row that is a tie as it is stays one."""
    flips, witness = np.zeros(len(rows), dtype=bool), rows.copy()
    is_own_tie = ~is_sure_label(target.model.members[0], rows)[1] if len(rows) else flips
    at = np.flatnonzero((found.flips | found.is_tie) & ~is_own_tie)
    if at.size:
        flips[at], witness[at] = follow_links(target, rows[at], labels[at], found.witness[at])
    return found._replace(flips=flips, witness=witness, is_tie=found.is_tie & ~flips)


def _prefer_seen(
    certificates: Certificates, model: Model, rows: NDArray[np.generic], perturbation: Perturbation, search: TreeSearch
) -> Certificates:
    """The same with witnesses of categories that training saw, where there are such, in the place of others."""
    assert certificates.witness is not None
    assert certificates.flips is not None
    codes = list(model.categorical_features)
    after = certificates.witness[:, codes]
    is_other = ~(after >= 0) & ~are_same(after, np.asarray(rows[:, codes], dtype=np.float64))
    at = np.flatnonzero(certificates.flips & is_other.any(axis=1))
    if not at.size or not perturbation.unseen:
        return certificates
    threats = tuple(replace(one, unseen=False) for one in perturbation.threats)
    known = replace(perturbation, unseen=False, threats=threats)
    (seen,) = certify_perturbed(model, rows[at], certificates.noise, known, rule=certificates.rule, search=search)
    assert seen.flips is not None
    found = {name: np.array(getattr(certificates, name)) for name in ("witness", "flipped", "_changes")}
    for name, values in found.items():
        values[at[seen.flips]] = getattr(seen, name)[seen.flips]
    changes: NDArray[np.int8] = found["_changes"]
    return replace(certificates, witness=found["witness"], flipped=found["flipped"], _changes=changes)


def read_request(
    model: Model,
    X: ArrayLike,
    noise: Noise | str | float | None,
    threats: Sequence[Threat],
    rule: str,
    proof: str = "best",
    *,
    must_look: bool = True,
) -> tuple[Noise | None, NDArray[np.generic]]:
    """The noise and the rows of a request, checked; `must_look` as for `read_rows`."""
    chosen = resolve_noise(noise, norm=threats[0].norm if threats else "auto")
    check_request(rule, proof, chosen, threats)
    return chosen, read_rows(as_model(model), X, chosen, must_look=must_look)


def check_request(rule: str, proof: str, noise: Noise | None, threats: Sequence[Threat]) -> None:
    """Refuse a request that makes no sense before any work."""
    found = find_rule(rule)
    if proof not in ("best", "paper"):
        raise ValueError(f"`proof` must be 'best' or 'paper', got {proof!r}.")
    found.check(noise, proof)
    for one in threats:
        norm = one.find_norm(noise)
        if norm not in NORMS:
            known = ", ".join(map(str, NORMS))
            raise ValueError(f"`norm` of Threat must be one of {known} for the rule {rule!r}, got {norm!r}.")


def resolve_rows(
    threats: Threat | Sequence[Threat], model: Model, noise: Noise | None, rows: NDArray[np.generic]
) -> Perturbation:
    """Threats resolved for a model and rows; refused where they do not fit them."""
    found = resolve(threats, model, noise)
    found.check_rows(rows)
    if len(rows):
        for one in found.threats:
            warn_of_nothing(one)
    return found


def _name_bounds(
    bounds: Bounds, threat: Threat, rule: str, noise: Noise | None, n_classes: int, n_threads: int
) -> Certificates:
    failure = np.empty(bounds.log_failure.shape)

    def fill(part: slice) -> None:
        failure[part] = exp_upward(bounds.log_failure[part])

    share_out(fill, failure.size, 4 * failure.nbytes, n_threads)
    return Certificates(
        bounds.label,
        failure,
        bounds.log_failure,
        bounds.radius,
        threat,
        rule=rule,
        noise=noise,
        worst=bounds.worst,
        runner_up=1 - bounds.label if bounds.runner_up is None else bounds.runner_up,
        classes=np.arange(n_classes),
        _proof=bounds.proof,
        _path=bounds.path,
    )


def distribution(
    model: AdditiveEnsemble, X: ArrayLike, noise: Noise | str | float, backend: str | None = None
) -> Distribution:
    """Exact distribution of each row's score under noise (paper, Algorithm 1 and Theorem 3.1).

    Parameters
    ----------
    model : AdditiveEnsemble
    X : array-like of shape (n_rows, n_features)
    noise : Noise or str
    backend : {"numba", "numpy", "cuda"} or None

    Returns
    -------
    Distribution

    Examples
    --------
    >>> from derand import AdditiveEnsemble, Uniform, distribution
    >>> model = AdditiveEnsemble.from_stumps([0], [0.5], [0.1], [0.9], n_features=1)
    >>> d = distribution(model, [[0.0]], Uniform(2.0))
    >>> d.support[[0, -1]].tolist(), d.pmf[0, [0, -1]].round(3).tolist(), d.median.tolist()
    ([10, 90], [0.625, 0.375], [10])
    """
    chosen, kind = resolve_noise(noise), kind_of(as_model(model))
    if chosen is None:
        raise ValueError(
            f"`distribution` needs a noise such as 'gaussian:0.25', got {noise!r}: without noise a row has one score."
        )
    if isinstance(kind, Majority):
        raise TypeError(
            "`distribution` takes an AdditiveEnsemble: the members of a WeightedVote have distributions of scores, the "
            "vote has none."
        )
    if isinstance(kind, Linear):
        raise ValueError("`distribution` lists whole scores, of which a linear model has none.")
    if isinstance(kind, Trees):
        raise ValueError("`distribution` adds up terms apart from each other, which trees that join columns are not.")
    if isinstance(kind, Pairwise):
        raise ValueError(
            f"`distribution` lists the scores of one sum, got {model.n_classes} classes: ask for a `duel`."
        )
    (model,) = model.members
    rows = np.asarray(read_rows(model, X, chosen), dtype=np.float64)
    packed = pack_terms(model.terms)
    if packed.largest >= MAX_SUPPORT:
        raise ValueError(
            f"The scores of this model span {packed.largest + 1} levels, more than {MAX_SUPPORT}, of which no "
            "distribution can be listed: use fewer levels or coarser leaves."
        )
    shift = packed.base + packed.fixed_scores(rows)
    rows = fill_missing(packed, rows, chosen).rows
    lowest = int(shift.min()) if shift.size else packed.base
    spread = shift - lowest
    step = math.gcd(packed.step if packed.largest else 0, int(np.gcd.reduce(spread))) or 1
    stride = max(packed.step // step, 1)
    n_levels = packed.largest * stride + 1 + int(spread.max(initial=0)) // step
    if rows.shape[0] * n_levels > 2**28:
        raise ValueError(f"{rows.shape[0]} rows take {n_levels} levels each, too many: pass fewer rows at a time.")
    query = make_query(model, rows.shape[0], chosen, RULES["vote"], n_jobs=1, backend=backend or DEFAULT_BACKEND)
    kernels = query.kernels
    pmfs = kernels.pmfs(kernels.prepare(packed.starts, packed.scores, invert=False), packed.table(rows, chosen))
    pmf = np.zeros((rows.shape[0], n_levels))
    for row, start in enumerate(spread // step):
        pmf[row, start : start + packed.largest * stride + 1 : stride] = pmfs[row]
    return Distribution(lowest + step * np.arange(n_levels), pmf)


def read_rows(model: Model, X: ArrayLike, noise: Noise | None, *, must_look: bool = True) -> Numbers:
    """X as a numeric table that fits the model; it keeps its dtype, since blocks of rows are converted later.

    NaN and infinity are refused where the model takes none, unless `must_look` is False.
    """
    refuse_masked(X)
    cells = np.asarray(X)
    try:
        if cells.dtype.kind not in "biufOUS":  # neither complex numbers nor times become numbers by a cast
            raise TypeError(cells.dtype)
        rows = cells if cells.dtype.kind in "biuf" else np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"`X` must hold numbers, got dtype {cells.dtype}: encode text columns first (StumpClassifier does so)."
        ) from None
    if rows.ndim != 2 or rows.shape[1] != model.n_features:
        raise ValueError(
            f"`X` must have shape (n_rows, {model.n_features}), one column per feature of the model, got {rows.shape}."
        )
    require_numbered(None if noise is None else noise.units, "`units` of the noise")
    if noise is not None and noise.units is not None and len(noise.units) != model.n_features:
        raise ValueError(
            f"`units` of the noise must have one entry per feature, {model.n_features} in all, got {len(noise.units)}."
        )
    if rows is not cells:
        require_unchanged(cells, rows)
    elif rows.dtype.itemsize > 4:  # smaller types are exact, and converted block by block
        rows = cast_exactly(rows)
    if must_look:
        require_finite(rows, *model.number_columns)
    return rows
