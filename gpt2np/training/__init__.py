"""A drafter for any GPT-2, trained with PyTorch on text that the GPT-2 itself has written.

Only `python main.py train` (speculative/cli/commands/train.py) imports this package. network.py is GPT-2 in PyTorch,
kinds.py defines the kinds of drafter, text.py writes the text, loop.py trains, card.py measures the results, and
needs.py forecasts memory, disk and time.
"""
