"""Why K + 1 tokens cost little more than one, bitwise the same as one by one. Nobody needs this room to read the ideas.

Start at matmul.py, which says why it takes more than `x @ w`.
"""
