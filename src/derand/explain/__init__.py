"""Models and rows explained to people: what pushes an answer, what would flip it, and the shapes behind both.

`_pushes` measures what each column adds, `_words` says changes and radii in the user's values, `_row` holds what
`explain` of a classifier gives, `_number` that of a regressor, `_model` draws all shapes of a model. Must not know
scikit-learn or how tables are read: names, categories and units are given (`Names`).
"""

from derand.explain._model import Picture, draw_model
from derand.explain._names import Names, name_category
from derand.explain._number import Extreme, NumberExplanation, Reach, tell_number
from derand.explain._pushes import Pushes
from derand.explain._row import Explanations, RowExplanation, tell_row
from derand.explain._words import SCALING_UNITS, move_alone, multiply_down, say_change

__all__ = [
    "SCALING_UNITS",
    "Explanations",
    "Extreme",
    "Names",
    "NumberExplanation",
    "Picture",
    "Pushes",
    "Reach",
    "RowExplanation",
    "draw_model",
    "move_alone",
    "multiply_down",
    "name_category",
    "say_change",
    "tell_number",
    "tell_row",
]
