"""The commands: one thin function per file, which calls a room and prints what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.commands._attacks import attacks
from experiments.commands._bench import bench
from experiments.commands._beyond import beyond
from experiments.commands._classes import classes
from experiments.commands._datasets import datasets
from experiments.commands._deployed import deployed
from experiments.commands._deployed_check import deployed_check
from experiments.commands._import_cost import import_cost
from experiments.commands._import_parity import import_parity
from experiments.commands._import_table import import_table
from experiments.commands._interactions import interactions
from experiments.commands._joint import joint
from experiments.commands._limits import limits
from experiments.commands._natural import natural, price
from experiments.commands._regression import regression
from experiments.commands._reproduce import reproduce
from experiments.commands._retrain import retrain
from experiments.commands._robust import convergence, robust
from experiments.commands._scale import scale
from experiments.commands._sharper import sharper
from experiments.commands._trained import trained

COMMANDS: Sequence[Callable[..., None]] = (
    reproduce,
    bench,
    datasets,
    scale,
    sharper,
    limits,
    attacks,
    natural,
    price,
    trained,
    beyond,
    joint,
    robust,
    convergence,
    classes,
    interactions,
    regression,
    import_parity,
    import_table,
    import_cost,
    deployed,
    deployed_check,
    retrain,
)
