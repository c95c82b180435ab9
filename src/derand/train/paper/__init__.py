"""The paper's trainers: independent stumps, boosting with stumps, and a vote of ensembles."""
