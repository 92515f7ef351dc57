"""Why K + 1 tokens cost little more than one, with bitwise identical results. Skip this folder on a first reading.

Start at matmul.py, which explains why plain `x @ w` is not enough.
"""
