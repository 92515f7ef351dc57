"""From logits to probabilities: temperature, truncation, and what looks back at the text, penalties and a grammar."""
