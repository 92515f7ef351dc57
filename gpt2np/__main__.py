"""`python -m gpt2np "Once upon a time"`: a model continues a text, greedily, with the page reference.py alone.

The words are picoGPT's, and so is the method: every token costs a pass over the whole text. `python main.py` has a
cache, sampling and drafts.
"""

import sys

import fire

from . import load, reference


@fire.decorators.SetParseFns(prompt=str, model_size=str, models_dir=str)
def main(prompt=None, *words, n_tokens_to_generate=40, model_size="tiny-target", models_dir="models", **others):
    """Continue a text.

    Args:
        prompt: the text
        n_tokens_to_generate: how many tokens to add
        model_size: tiny-target, tiny-draft, 124M, 355M, 774M, 1558M, a name on the Hugging Face hub, or a folder
        models_dir: the folder with the models; downloads go there
    """
    try:
        if prompt is None or words or others:
            what = f"got --{next(iter(others))}" if others else "got several words" if words else "the text is missing"
            raise ValueError(
                f"expected a text in quotes, and --n_tokens_to_generate, --model_size, --models_dir; {what}"
            )
        n_new = n_tokens_to_generate
        if type(n_new) is not int or n_new < 1:
            raise ValueError(f"--n_tokens_to_generate: expected a whole number of 1 or more, got {n_new!r:.60}")
        model, tokenizer = load(model_size, models_dir)
        tokens = tokenizer.encode(prompt) or [tokenizer.end_of_text]
        if len(tokens) + n_new > model.n_ctx:
            room = f"{len(tokens)} tokens and {n_new} new ones do not fit in n_ctx {model.n_ctx}"
            raise ValueError(f"{room}: shorten the prompt, or generate fewer")
        for _ in range(n_new):
            logits = reference.forward(tokens, model.params, model.hparams.n_head)
            tokens.append(int(logits[-1].argmax()))
        print(tokenizer.decode(tokens[-n_new:]))
    except (ValueError, OSError, MemoryError) as error:
        sys.exit(f"gpt2np: {error}")


if __name__ == "__main__":
    fire.Fire(main, name="python -m gpt2np")
