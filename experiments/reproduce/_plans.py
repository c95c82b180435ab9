"""Plans: one model on one evaluation, certified one way. Lines of tables that need the same plan share its outcome.

Owns how the fields of a recipe become a plan. Must not know how plans are carried out.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Literal

from experiments.datasets import CATALOG
from experiments.reproduce._specification import TomlTable

SEED = 0
_NOISES = {"l1": "uniform", "l2": "gaussian"}
_BUDGETS = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is trained and certified.

    Attributes
    ----------
    dataset : str
        A name of the catalog of datasets.
    evaluation : "fixed" or "folds"
    scaling : "standard", "range" or None
        How the numbers are scaled before training.
    cut_numbers : bool
        Whether the scaled numbers are cut to whole ones.
    features : "all", "numerical" or "categorical"
    noise : str or None
        Such as "gaussian:0.25"; None for a model without noise.
    trainer, certifier : str
        Names in TRAINERS and CERTIFIERS.
    training, certification : str
        Their parameters, as JSON with sorted keys.
    budgets : tuple of int
        How many categorical features may change.
    part : int or None
        With how many test rows at most; None is all of them, and all splits.
    """

    dataset: str
    evaluation: str
    scaling: Literal["standard", "range"] | None
    cut_numbers: bool
    features: str
    noise: str | None
    trainer: str
    training: str
    certifier: str
    certification: str
    budgets: tuple[int, ...]
    seed: int = SEED
    part: int | None = None

    @property
    def key(self) -> str:
        """A name for the outcome's files: equal plans, and only they, have the same."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        extra = [value for value in (self.noise, self.features if self.features != "all" else None) if value]
        return ", ".join([self.dataset, self.trainer, *extra, self.certifier, self.evaluation])


def make_plan(recipe: TomlTable) -> Plan:
    """The plan behind a recipe."""
    training = dict(recipe["training"])
    for field, parameter in (("discretization", "levels"), ("bin_size", "split_step")):
        if field in recipe:
            training[parameter] = recipe[field]
    dataset = recipe.get("source", recipe["dataset"])
    has_noise = "noise" in recipe and recipe["features"] != "categorical"
    certification = dict(recipe["certification"])
    if recipe["certifier"] == "knapsack":
        certification["norm"] = recipe["norm"]
    mixed = bool(getattr(CATALOG[dataset], "categorical", ())) and recipe["features"] != "numerical"
    return Plan(
        dataset=dataset,
        evaluation=recipe["evaluation"],
        scaling=recipe.get("scaling"),
        cut_numbers=recipe.get("cut_numbers", False),
        features=recipe["features"],
        noise=f"{_NOISES[recipe['norm']]}:{float(recipe['noise'])}" if has_noise else None,
        trainer=recipe["trainer"],
        training=json.dumps(training, sort_keys=True),
        certifier=recipe["certifier"],
        certification=json.dumps(certification, sort_keys=True),
        budgets=_BUDGETS if mixed else (0,),
        seed=recipe.get("seed", SEED),
    )


def shorten(plan: Plan, part: int) -> Plan:
    """The same plan on a part of the test rows of the first split."""
    return replace(plan, part=part)
