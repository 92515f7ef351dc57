"""Why K + 1 tokens cost little more than one: matrix products, attention's inner loop, threads, memory."""
