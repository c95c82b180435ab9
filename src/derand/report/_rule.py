"""How the answer is found and what proves that it stays, in words. Text and counts only."""

from __future__ import annotations

from derand._core.text import format_threshold
from derand.report._inputs import Inputs
from derand.report._text import join_words, plural, shorten
from derand.report._types import ProofCount, RuleFacts

_PROOFS = ("paper", "dual", "exact", "none")


def describe_rule(inputs: Inputs) -> RuleFacts:
    """The rule, and how many radii each proof gave."""
    answer = _say_answer(inputs)
    counts = _count_proofs(inputs)
    return {
        "name": inputs.plain.rule,
        "answer": answer,
        "sentence": f"The model's answer is {answer}.{_say_threshold(inputs)}",
        "proof": inputs.proof,
        "proofs": counts,
        "proof_sentence": " ".join(
            [_say_proofs(inputs, {one["proof"]: one["n_rows"] for one in counts}), _say_exact(inputs)]
        ),
    }


def _say_answer(inputs: Inputs) -> str:
    subject, rule = inputs.subject, inputs.plain.rule
    if subject.classes.size > 2:
        return _say_largest(inputs)
    low, high = (f"“{shorten(str(name), 40)}”" for name in subject.classes.tolist())
    if subject.noise is None:
        start = "that of the model as deployed, without noise"
        return start if subject.additive is None else f"{start}: {high} where the score is above the threshold"
    if subject.additive is None:
        each = (
            "the label that most noisy copies of the row get"
            if rule == "vote"
            else f"{high} where its own expected score is above its threshold"
        )
        return f"a weighted vote of {plural(len(subject.model.members), 'ensemble')}, each of which says {each}"
    if rule == "vote":
        return "the label that most noisy copies of the row get"
    return f"{high} where the expected score under noise is above the threshold, and {low} elsewhere"


def _say_threshold(inputs: Inputs) -> str:
    """From which probability on the score decides for the second class, where that is not one half."""
    threshold = getattr(inputs.subject.estimator, "decision_threshold_", None)
    if threshold is None or threshold == 0.5:
        return ""
    high = f"“{shorten(str(inputs.subject.classes[1]), 40)}”"
    start = f" Each noisy copy counts for {high}" if inputs.plain.rule == "vote" else f" It says {high}"
    return f"{start} from a probability of {format_threshold(threshold)} on."


def _say_largest(inputs: Inputs) -> str:
    """The answer of several classes."""
    if inputs.subject.noise is None:
        return "the class of the largest score, by the model as deployed, without noise"
    if inputs.plain.rule == "vote":
        return "the class that beats each of the others on most noisy copies of the row"
    return "the class of the largest expected score under noise"


def _count_proofs(inputs: Inputs) -> list[ProofCount]:
    found = inputs.plain.proof
    return [{"proof": name, "n_rows": int((found == name).sum())} for name in _PROOFS if (found == name).any()]


def _say_proofs(inputs: Inputs, counts: dict[str, int]) -> str:
    """Which proof gave how many radii, or verdicts where limits alone say what may change."""
    what = "radius" if inputs.threat.norm is not None else "proof that a row holds"
    nothing = counts.get("none", 0)
    if nothing == inputs.n_rows:
        return f"Nothing is proven for any of {plural(nothing, 'row')}."
    rest = f"; for {plural(nothing, 'row')} nothing is proven" if nothing else ""
    if inputs.plain.rule == "mean":
        kind = "score" if inputs.subject.noise is None else "expected score"
        exact, bound = counts.get("exact", 0), counts.get("dual", 0)
        ways = [f"without any gap for {plural(exact, 'row')}"] if exact else []
        ways += [f"as a lower bound for {plural(bound, 'row')}"] if bound else []
        return f"Each {what} follows from the worst case of the {kind}, {join_words(ways)}{rest}."
    paper, second, constant = (plural(counts.get(name, 0), "row") for name in ("paper", "dual", "exact"))
    other = "the other label" if inputs.subject.classes.size == 2 else "the nearest rival"
    always = f", and {constant} no change can flip" if counts.get("exact") else ""
    if inputs.proof == "paper":
        return (
            f"Each {what} follows from the probability of {other} alone, the proof of the paper: it gave one "
            f"for {paper}{always}{rest}."
        )
    larger = "the larger one of" if what == "radius" else "one of"
    return (
        f"Each {what} is {larger} two proofs: the probability of {other} gave it for {paper}, the worst case "
        f"of the expected score for {second}{always}{rest}."
    )


def _say_exact(inputs: Inputs) -> str:
    """Why a radius is a proof."""
    law = "the law of the score under noise"
    if inputs.subject.model.weights is not None:
        law = "each member's law under noise"
    elif inputs.subject.classes.size > 2:
        law = "the law of the difference to every rival under noise"
    if inputs.plain.rule == "mean" or inputs.subject.model.is_linear:
        return "Nothing is sampled: the bound covers every change that is allowed, and rounding errs on the safe side."
    return f"Nothing is sampled: {law} is computed exactly, and rounding errs on the safe side."
