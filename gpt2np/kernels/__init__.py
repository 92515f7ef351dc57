"""Why K + 1 tokens cost little more than one, with bitwise identical results. The ideas can be read without this
folder.

Start at matmul.py, which explains why plain `x @ w` is not enough.
"""
