"""From logits to probabilities: temperature, truncation, penalties and a grammar."""
