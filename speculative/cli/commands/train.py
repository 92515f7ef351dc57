"""Train a drafter for a GPT-2 of your own: EAGLE's block, a parallel block, heads, or a smaller GPT-2. The target
writes its own text, and the drafter learns the target's distributions on it.

Needs PyTorch (pip install "speculative-decoding-numpy[train]"). Ctrl-C saves, and the same command continues from
there. The drafter goes into FOLDER, with the file KIND_figures.json, which records how often it is right.
"""

import json
import os
import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from tqdm import tqdm

from gpt2np.files.loading import find_folder
from gpt2np.files.writing import replacing
from speculative import AutoregressiveSampler, Sampling, generate_together

from .. import options as shared
from ..files import check_readable, digest, read_text, say
from ..journal import Journal, machine
from ..models import Models, model_name
from ..options import option
from ..values import Choice, flag, number, whole

TAKES = "target_model_size seed models_dir source"
KINDS = ("eagle", "parallel", "heads", "medusa", "draft")
MINUTES = 20.0
PAYS = 1.2  # tokens per call; drafting three tokens and verifying them costs about as much more than a token
MOST_CACHE = 1e9  # bytes for the keys and values of the texts that are written at once


def target_name(text):
    """The name of a model, whose folder may also be in PyTorch's format."""
    return text if os.path.isfile(os.path.join(text, "pytorch_model.bin")) else model_name(text)


def text_files(text):
    """The names of text files, or of folders with text files, between commas."""
    for name in text.split(","):
        if os.path.isdir(name) and not any(Path(name).glob("*.txt")):
            raise ValueError(f"expected a text file, or a folder with .txt files, and {name[:60]!r} has none")
        if not name:
            raise ValueError("expected a text file, or a folder with .txt files")
        if not os.path.isdir(name):
            check_readable(name)
    return tuple(text.split(","))


def shape_of_draft(text):
    """Read the three numbers of a draft's shape."""
    numbers = [int(part) if part.isdecimal() and len(part) < 6 else 0 for part in text.split(",")]
    if len(numbers) != 3 or not min(numbers) or numbers[1] % numbers[2]:
        raise ValueError(
            f"expected layers, width and heads, such as 2,128,4, the width a multiple of the heads, got {text[:60]!r}"
        )
    return tuple(numbers)


def paths_of(options):
    """The paths of the texts, in their order."""
    listed = [sorted(Path(name).glob("*.txt")) if os.path.isdir(name) else [Path(name)] for name in options.text]
    return [path for paths in listed for path in paths]


# fmt: off
@dataclass(frozen=True)
class Options(shared.Options):
    target_model_size: str = option("tiny-target", "M", target_name,
        "the target model: tiny-draft or tiny-target, which are bundled, 124M, 355M, 774M, 1558M, or a folder with a "
        "GPT-2", names_files=True)
    seed: int = option(0, "N", whole(0), "the seed of the random numbers; one seed gives one text")
    kind: str = option("eagle", "KIND", Choice(KINDS),
        "what to train\n"
        "eagle: a block that continues the target's hidden states, for any temperature\n"
        "parallel: a block that drafts all tokens in one pass; it starts from the target's eagle, if there is one\n"
        "heads: Hydra's heads, small layers that rank candidates, for temperature 0\n"
        "medusa: Medusa's heads, for load_heads in Python\n"
        "draft: a small GPT-2 with the target's vocabulary, for --draft_model_size", is_aside=True)
    text: tuple = option((), "FILES", text_files,
        "plain text like the text you will generate: the target continues pieces of it. Files, or folders of .txt "
        "files, between commas", names_files=True, is_aside=True)
    minutes: float | None = option(None, "N", number(least=0.01, most=100_000),
        f"how long to train, including writing the text ({MINUTES:g} without --tokens)", is_aside=True)
    tokens: int = option(0, "N", whole(0, 10**12),
        "how many tokens to train on, instead of a time or in addition; 0 means no limit. With --tokens alone one seed "
        "gives one result", is_aside=True)
    output: str = option("", "FOLDER", str,
        "where the drafter goes (the folder of the target; beside it for a draft; MODEL-KIND for a model with a name)",
        is_aside=True)
    shape: tuple | None = option(None, "L,E,H", shape_of_draft,
        "for a draft: layers, width, heads (a quarter, half and half of the target's)",
        is_aside=True)
    overwrite: bool = option(False, "", flag, "replace a drafter in FOLDER whose training is not there", is_aside=True)


# fmt: on
EXAMPLES = (
    "--target_model_size MY_GPT2 --text BOOKS --minutes 30",
    "--kind draft --text BOOKS --output MY_DRAFT",
)


def run(options):
    if options.shape and options.kind != "draft":
        raise ValueError(f"--shape has no effect, as it is for --kind draft, not {options.kind}: leave it out")
    if not options.text:
        raise ValueError("--text: which text? Give plain text like the text you will generate, a file or a folder")
    if not find_spec("torch"):
        raise ValueError("train needs PyTorch, which is missing: pip install torch")
    from gpt2np.training import folder

    name, named = options.target_model_size, options.output
    if not named:
        named = f"{name.rstrip('/')}-{options.kind}" if options.kind == "draft" or not os.path.isdir(name) else name
    output = Path(named)
    if folder.is_of_pytorch(Path(name)):
        folder.from_pytorch(Path(name))
    about = {"draft": options.kind == "draft"}
    may_differ = "version", "--target_model_size"  # a copy of the target in the folder is the same target
    remedy = f"choose a different --output, or delete {output / 'training'}"
    path = output / "training" / "journal.jsonl"
    with Journal(path, options, about=about, may_differ=may_differ, remedy=remedy) as journal:
        train(options, name, output, journal)


def train(options, name, output, journal):
    """Train the drafter of the target `name` in the folder `output`, and print how often it is right."""
    from gpt2np.training import run as training_run

    model, tokenizer = Models(options).target()
    source = find_folder(options.target_model_size, Path(options.models_dir), options.source)
    stream = tokens_of(options, tokenizer)
    minutes = MINUTES if options.minutes is None and not options.tokens else options.minutes or 0
    training, needs = training_run.begin(
        options.kind, source, output, model, stream, writing(model), shape=options.shape, minutes=minutes,
        tokens=options.tokens, seed=options.seed, is_begun=bool(journal.parts), overwrite=options.overwrite,
    )  # fmt: skip
    text = {"files": [str(path) for path in paths_of(options)], "tokens": len(stream)}
    text["digest"] = digest(*map(str, stream.tolist()))
    journal.keep("text", lambda: text)
    training_run.folder.remove_parts(output)
    say(f"for {name}, {needs}")
    if training.progress["steps"]:
        say(f"continuing after {training.progress['seconds'] / 60:.1f} minutes, {training.progress['steps']} steps")
    with stopping() as stopped, bar(options.kind) as show:
        training.run(lambda: bool(stopped), show)
    if not training.progress["steps"]:
        if not stopped:
            raise ValueError("--minutes: the target was still writing the first text: give more")
        raise KeyboardInterrupt("before the first step: nothing is kept but the text")
    ranks = training_run.save(training, output, model.n_vocab)
    if stopped:
        raise KeyboardInterrupt(f"the drafter so far is in {output}, and the same command continues")
    record = {"kind": options.kind, "target": name, "command": command(options), "machine": machine(), "text": text}
    record |= training_run.figures(training, options.kind, output, model, ranks)
    with replacing(output / f"{options.kind}_figures.json") as new:
        new.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    journal.keep(f"{options.kind}, {training.progress['steps']} steps", lambda: record)
    journal.finish(dict, page_of(record, options, output))


def writing(model):
    """The function that lets the target write texts, as `OwnText` calls it; as many at once as fit into memory."""
    n_lanes = max(1, int(MOST_CACHE / (8 * 192 * model.hparams.n_layer * model.hparams.n_embd)))

    def write(prompts, n_new, temperature, seeds):
        texts = generate_together(
            lambda lane: AutoregressiveSampler(lane, sampling=Sampling(temperature)),
            [model], prompts.tolist(), n_new, seeds, n_lanes=n_lanes,
        )  # fmt: skip
        for text in texts:
            if isinstance(text, BaseException):
                raise text
        return [[*prompt, *text.tokens.tolist()] for prompt, text in zip(prompts.tolist(), texts)]

    return write


def tokens_of(options, tokenizer):
    """The texts as one stream of tokens [n] int32, with `<|endoftext|>` before each if the vocabulary contains it."""
    stream = []
    for path in tqdm(paths_of(options), desc="tokenize", unit=" files", leave=False, disable=None):
        stream += [] if tokenizer.end_of_text is None else [tokenizer.end_of_text]
        stream += tokenizer.encode(read_text(str(path), "text"), special=True)
    return np.array(stream, np.int32)


@contextmanager
def stopping():
    """A list that Ctrl-C makes non-empty, so that the current step can end; a second Ctrl-C interrupts at once."""
    stopped, before = [], signal.getsignal(signal.SIGINT)

    def stop(number, frame):
        stopped.append(number)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def bar(kind):
    """A function (share, note) that moves a progress bar if there is a terminal."""
    with tqdm(total=100, desc=kind, disable=None, file=sys.stderr,
              bar_format="{desc} {percentage:3.0f}%|{bar:20}| {elapsed}<{remaining}{postfix}") as shown:  # fmt: skip

        def show(share, note):
            shown.set_postfix_str(note, refresh=False)
            shown.update(100 * share - shown.n)

        yield show


def command(options):
    written = {"target_model_size": options.target_model_size, "kind": options.kind, "text": ",".join(options.text)}
    written |= {name: getattr(options, name) for name in ("minutes", "tokens", "seed") if name in options.given}
    written |= {"shape": ",".join(map(str, options.shape))} if options.shape else {}
    return "python main.py train " + " ".join(f"--{name} {value}" for name, value in written.items())


def page_of(record, options, output):
    """The result of the training, and how to use it."""
    training, target = record["training"], options.target_model_size
    rows = [f"  {i}  {top:9.3f}" + (f"  {record['overlap'][i - 1]:14.3f}" if "overlap" in record else "")
            for i, top in enumerate(record["top_1"], 1)]  # fmt: skip
    use = {
        "draft": f"python main.py --target_model_size {target} --draft_model_size {output}",
        "medusa": f"gpt2np.load_heads({str(output)!r}, 'medusa')",
    }.get(options.kind, f"python main.py --target_model_size {output} --drafter {options.kind}")
    pays = "" if record["tokens_per_call"] > PAYS else ": this does not pay yet; train for longer, or on more text"
    return f"""\
{options.kind} for {target}: {training["steps"]} steps, {training["tokens_seen"] / 1e6:.2f} million tokens, of \
{training["tokens_of_text"] / 1e6:.2f} million that the target wrote, {training["seconds"] / 60:.1f} minutes

How often it is right, by the draft tokens before, on {record["n_texts"]} held-out texts:
   greedy{"  at temperature 1" * ("overlap" in record)}
{chr(10).join(rows)}
{record["tokens_per_call"]:.2f} tokens per call of the target, expected at temperature 0 and K = 3{pays}

{use}
{output / "training"} keeps text and checkpoint, for more minutes and other kinds; otherwise delete it.
"""
