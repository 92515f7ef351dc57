"""A drafter for any GPT-2, trained with PyTorch on text that the GPT-2 itself has written.

`python main.py train` (speculative/cli/commands/train.py) imports it, and nothing else does. network.py is GPT-2 in
PyTorch, kinds.py the kinds of drafter, text.py the text, loop.py the training, card.py the results, needs.py a
forecast.
"""
