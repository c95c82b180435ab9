"""Certifies 100,000 random ensembles and checks every claim against exact arithmetic: none may be unsound.

    python scripts/check_against_oracle.py --ensembles 100000 --seed 0      # about 15 minutes on one core

Ensembles, noises, threats and rules of every kind are drawn (`tests/fuzz/drawing.py`); failing masses and radii are
compared with rational arithmetic or 60 digits, and every claim is attacked (`tests/fuzz/checking.py`). Exit code 1, and
the cases as Python, where a claim is unsound.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # the oracle lives with the tests, beside this folder

from tests.fuzz.checking import Tally, check_many
from tests.fuzz.drawing import draw_any_case

N_ENSEMBLES = 100_000


def check_against_oracle(n_ensembles: int, seed: int, *, is_quiet: bool = True) -> Tally:
    """Check that many random ensembles; says on stderr how far it is."""
    tally, start = Tally(), time.perf_counter()
    for done in check_many(n_ensembles, seed, tally, draw=draw_any_case):
        if not is_quiet:
            seconds = time.perf_counter() - start
            print(f"{done} ensembles, {len(tally.unsound)} unsound, {seconds:.0f} s", file=sys.stderr, flush=True)
    return tally


def describe(tally: Tally) -> str:
    """The figures as lines of text."""
    lines = [
        f"ensembles {tally.ensembles:,}, of which {tally.members:,} are members of {tally.votes:,} votes",
        f"of three to five classes {tally.several:,}, whose labels meet rivals in {tally.duels:,} duels",
        f"rows {tally.rows:,}, claims of a radius {tally.n_claims:,}",
        f"failing masses {tally.masses:,}, witnesses {tally.witnesses:,}",
        f"changed rows tried {tally.attacks:,}, decided exactly {tally.decided_exactly:,}",
        *(f"claims by {kind}: " + ", ".join(f"{name} {count:,}" for name, count in sorted(found.items()))
          for kind, found in tally.claims.items()),
        *(f"least slack, {name}: {slack:.2g}" for name, slack in sorted(tally.slack.items())),
        f"unsound {len(tally.unsound)}",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    """Check, print figures and faults, and say whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ensembles", type=int, default=N_ENSEMBLES)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start = time.perf_counter()
    tally = check_against_oracle(given.ensembles, given.seed, is_quiet=False)
    print(f"seed {given.seed}, {time.perf_counter() - start:.0f} s")
    print(describe(tally))
    for fault in tally.unsound:
        print(f"\nUNSOUND {fault}")
    return int(bool(tally.unsound))


if __name__ == "__main__":
    sys.exit(main())
