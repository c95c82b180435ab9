"""Claims about models with trees, proven again by a tree of splits (docs/trust.md)."""

from derand.auditing.trees.proofs import TreeLabelProof, TreeNumberProof, read_tree_labels, read_tree_numbers

__all__ = ["TreeLabelProof", "TreeNumberProof", "read_tree_labels", "read_tree_numbers"]
