"""What drafters borrow from a GPT-2: a part of its layers, or small networks that read its hidden states."""
