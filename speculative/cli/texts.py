"""--output: the text of each prompt, with the draft, into a file; a text that is there is not generated again."""

from tqdm import tqdm

from speculative import collect
from speculative.measuring.experiment import Timed
from speculative.measuring.table import counted, pair
from speculative.trace.terminal import visible

from .drafters import length_of
from .journal import Journal
from .models import Models
from .prompts import prompts_of
from .samplers import Entrant


def write_texts(options):
    """Write the prompts and their texts, in order."""
    with Journal(options.output, options) as journal:
        models, n_tokens = Models(options), options.n_tokens_to_generate
        n_lanes = options.n_lanes if options.engine == "numpy" else 1
        prompts = prompts_of(options, *models.target())
        entrant = Entrant(options, models, n_prompt=len(prompts[0].tokens))
        if length_of(options).from_costs:
            entrant.settle(journal.keep("costs", lambda: entrant.settled(prompts[0].tokens)))
        new = [i for i in range(len(prompts)) if f"text {i + 1}" not in journal.parts]
        requests = [prompts[i].tokens for i in new], n_tokens, [options.seed + i for i in new], n_lanes
        ended, rounds, waiting = {}, [], list(new)
        with tqdm(total=n_tokens * len(new), unit=" tokens", leave=False, disable=None) as bar:
            texts = Timed(entrant.as_they_end(*requests, watch=lambda i, r: bar.update(len(r.tokens))))
            for i, text in texts:
                bar.total -= n_tokens - len(text.tokens)
                ended[new[i]] = text
                rounds += text.rounds
                while waiting and waiting[0] in ended:
                    i = waiting.pop(0)
                    part = text_of(prompts[i], ended[i], options.seed + i, entrant)
                    journal.keep(f"text {i + 1}", lambda part=part: part)
    n_kept = len(prompts) - len(new)
    there = f" ({n_kept} were there)" if n_kept else ""
    print(visible(pair(entrant.about["target"], entrant.about["draft"])))
    print(visible(f"{counted(len(prompts), 'text')} in {options.output}{there}; {n_lanes} at once"))
    if new:
        n, speed = (stats := collect([], rounds).stats).n_tokens, stats.n_tokens / texts.seconds
        print(f"{n} tokens in {texts.seconds:.2f} s, {speed:.1f} tokens per second over all")
        print(f"{stats.tokens_per_target_call:.2f} tokens of a text per call of the target")


def text_of(prompt, generation, seed, entrant):
    """The part of a journal for one text."""
    stats = generation.stats
    return {
        "question_id": prompt.question_id, "prompt": prompt.text, "seed": seed,
        "text": entrant.decode(generation.tokens.tolist()),
        "n_tokens": stats.n_tokens, "target_calls": stats.target_calls,
    }  # fmt: skip
