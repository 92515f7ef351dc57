"""Why K + 1 tokens cost little more than one, bitwise the same as one by one. Nobody needs this room to read the ideas.

matmul.py says why it takes more than `x @ w`, and chooses a strategy for this machine; panels.py and attention.py
multiply by it: the weights, and the queries with the cache. threads.py divides what is large among cores.py's number of
threads. memory.py aligns arrays.
"""
