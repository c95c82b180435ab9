"""Models of other libraries: how near what stands for them comes, and what can be certified of them."""

from experiments.importing._parity import Parity, compare_examples, list_examples, measure_parity

__all__ = ["Parity", "compare_examples", "list_examples", "measure_parity"]
