"""--output: the texts of many prompts, several at once, appended to a file line by line."""

from json import dumps, loads
from pathlib import Path
from time import perf_counter

from tqdm import tqdm

from speculative import collect

from .files import check_distinct
from .models import Models
from .page import counted, pair
from .prompts import prompts_of
from .settings import decoded, with_draft

OF_ONE = ("trace", "show", "timings", "json")  # options for one prompt
ASIDE = ("--output", "--n_lanes", "--prompt_file", "--models_dir")  # options that change no text
REMEDY = "name a different file, or delete it"


def write_texts(options, report):
    """Write the prompts and their texts as objects, in order; texts already in the file are kept."""
    for name in options.given:
        if name in OF_ONE:
            raise ValueError(f"--{name} is for one prompt: leave it out with --output")
    check_distinct({"output": options.output}, {"prompt_file": options.prompt_file})
    models = Models(options, report)
    target, tokenizer = models.target()
    prompts, n_tokens = prompts_of(options, target, tokenizer), options.n_tokens_to_generate
    entrant, about = with_draft(options, models, prompts[0].tokens)
    given = {name: text for name, text in report.about.items() if name[:2] == "--" and name not in ASIDE}
    heads = [
        {"question_id": prompt.question_id, "prompt": prompt.text, "seed": options.seed + i, "made_with": given}
        for i, prompt in enumerate(prompts)
    ]
    n_kept = kept(options.output, heads)
    new, ended, generations = range(n_kept, len(prompts)), {}, []
    requests = [prompts[i].tokens for i in new], n_tokens, [heads[i]["seed"] for i in new], options.n_lanes
    started, bar = perf_counter(), tqdm(total=n_tokens * len(new), unit=" tokens", leave=False, disable=None)
    try:
        with bar, open(options.output, "a", encoding="utf-8") as file:
            for i, generation in entrant.as_they_end(*requests, watch=lambda i, r: bar.update(len(r.tokens))):
                bar.total -= n_tokens - len(generation.tokens)
                ended[i] = generation
                while (n := len(generations)) in ended:
                    generations.append(ended[n])
                    stats, text = ended[n].stats, decoded(ended[n].tokens.tolist(), tokenizer, entrant.ends)
                    counts = {"n_tokens": stats.n_tokens, "target_calls": stats.target_calls}
                    print(dumps({**heads[new[n]], "text": text, **counts}), file=file, flush=True)
    except KeyboardInterrupt:
        n = counted(n_kept + len(generations), "text")
        raise KeyboardInterrupt(f"{n} in {options.output}: the same command resumes from there") from None
    seconds, stats = perf_counter() - started, collect([], [r for one in generations for r in one.rounds]).stats
    there = f" ({n_kept} were there)" if n_kept else ""
    print(pair(about["target"], about["draft"]))
    print(f"{counted(len(prompts), 'text')} in {options.output}{there}; {options.n_lanes} at once")
    if len(new):
        print(f"{stats.n_tokens} tokens in {seconds:.2f} s, {stats.n_tokens / seconds:.1f} tokens per second over all")
        print(f"{stats.tokens_per_target_call:.2f} tokens of a text per call of the target")


def kept(name, heads):
    """How many of these texts, from the first on, the file already contains; an incomplete last line is removed."""
    path = Path(name)
    *lines, cut = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    for number, line in enumerate(lines, 1):
        try:
            found = loads(line)
            head = {key: found[key] for key in heads[0]}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ValueError(f"--output: line {number} of {name} is not a text of this program: {REMEDY}") from None
        if number > len(heads) or head != heads[number - 1]:
            raise ValueError(f"--output: line {number} of {name} was made with different options or prompts: {REMEDY}")
    if cut:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)
