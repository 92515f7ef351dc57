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
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from tqdm import tqdm

from gpt2np.files.loading import find_folder
from speculative import AutoregressiveSampler, Sampling, generate_together

from ..files import check_readable, digest, read_text, replacing, say
from ..models import Models, check_model_name
from ..options import SHARED, Choice, Option, number, pick, whole
from ..report import machine

KINDS = ("eagle", "parallel", "heads", "medusa", "draft")
MINUTES = 20.0
MOST_CACHE = 1e9  # bytes for the keys and values of the texts that are written at once
STRIDE = 4  # the distance between the positions that the card measures


def target_name(given):
    """The name of a model, whose folder may also be in PyTorch's format."""
    return given if os.path.isfile(os.path.join(given, "pytorch_model.bin")) else check_model_name(given)


def text_files(given):
    """The name of a text file, or of a folder with text files."""
    if os.path.isdir(given):
        if not any(Path(given).glob("*.txt")):
            raise ValueError(f"expected a text file, or a folder with .txt files, and {given[:60]!r} has none")
        return given
    if not given:
        raise ValueError("expected a text file, or a folder with .txt files")
    return check_readable(given)


def shape(given):
    """Read the three numbers of a draft's shape."""
    found = [int(part) if part.isdecimal() and len(part) < 6 else 0 for part in given.split(",")]
    if len(found) != 3 or not min(found) or found[1] % found[2]:
        raise ValueError(
            f"expected layers, width and heads, such as 2,128,4, the width a multiple of the heads, got {given[:60]!r}"
        )
    return found


# fmt: off
OPTIONS = {
    **pick("target_model_size"),
    "kind": Option("eagle", "KIND", Choice(KINDS),
        "what to train\n"
        "eagle: a block that continues the target's hidden states, for any temperature\n"
        "parallel: a block that drafts all tokens in one pass; it starts from the target's eagle, if there is one\n"
        "heads: Hydra's heads, small layers that rank candidates, for temperature 0\n"
        "medusa: Medusa's heads, for load_heads in Python\n"
        "draft: a small GPT-2 with the target's vocabulary, for --draft_model_size"),
    "text": Option(None, "FILES", text_files,
        "plain text like the text you will generate: the target continues pieces of it. Files, or folders of .txt "
        "files"),
    "minutes": Option(None, "N", number(least=0.01, most=100_000),
        f"how long to train, including writing the text ({MINUTES:g} without --tokens)"),
    "tokens": Option(0, "N", whole(0, 10**12),
        "how many tokens to train on, instead of a time or in addition; 0 means no limit. With --tokens alone one seed "
        "gives one result"),
    "output": Option("", "FOLDER", str,
        "where the drafter goes (the folder of the target; beside it for a draft; MODEL-KIND for a model with a name)"),
    "shape": Option(None, "L,E,H", shape,
        "for a draft: layers, width, heads (a quarter, half and half of the target's)"),
    **pick("seed models_dir source json"),
}
# fmt: on
OPTIONS["target_model_size"] = replace(SHARED["target_model_size"], read=target_name)
LISTS = ("text",)
EXAMPLES = (
    "--target_model_size MY_GPT2 --text BOOKS --minutes 30",
    "--kind draft --text BOOKS --output MY_DRAFT",
)


def run(options, report):
    if "text" not in options.given:
        raise ValueError("--text: which text? Give plain text like the text you will generate, a file or a folder")
    if options.shape and options.kind != "draft":
        raise ValueError(f"--shape is for --kind draft, and this is --kind {options.kind}")
    if not find_spec("torch"):
        raise ValueError("train needs PyTorch, which is missing: pip install torch")
    import torch

    from gpt2np.training import card, folder, kinds, loop, network
    from gpt2np.training.needs import check_needs, use_fastest_threads
    from gpt2np.training.text import lengths

    name, named = options.target_model_size, options.output
    if not named:
        named = f"{name.rstrip('/')}-{options.kind}" if options.kind == "draft" or not os.path.isdir(name) else name
    output = Path(named)
    if folder.is_of_pytorch(Path(name)):
        folder.from_pytorch(Path(name), output if options.kind != "draft" else Path(name))
        options = options.but(target_model_size=str(output if options.kind != "draft" else name))
    model, tokenizer = Models(options, report).target()
    source = find_folder(options.target_model_size, Path(options.models_dir), options.source)
    torch.manual_seed(options.seed)
    use_fastest_threads(model.hparams.n_embd)
    shape, eagle = options.shape or quarter(model.hparams), folder.eagle_of(output, source)
    kind = kinds.KINDS[options.kind](network.Target(source, model.hparams), shape, eagle)
    stream = tokens_of(options, tokenizer)
    minutes = MINUTES if options.minutes is None and not options.tokens else options.minutes or 0

    h = model.hparams
    n_lanes = max(1, int(MOST_CACHE / (8 * 192 * h.n_layer * h.n_embd)))

    def write(prompts, n_new, temperature, seeds):
        texts = generate_together(
            lambda lane: AutoregressiveSampler(lane, sampling=Sampling(temperature)),
            [model], prompts.tolist(), n_new, seeds, n_lanes=n_lanes,
        )  # fmt: skip
        return [[*prompt, *text.tokens.tolist()] for prompt, text in zip(prompts.tolist(), texts)]

    place = next(path for path in (output, *output.parents) if path.exists())
    needs = check_needs(kind, minutes, options.tokens, place)
    folder.prepare(output, source, kind, options.kind)
    training = loop.Training(kind, write, stream, output / "training", minutes, options.tokens, options.seed)
    n_own = sum(p.numel() for p in kind.params.values())
    say(f"{options.kind}, {n_own / 1e6:.2f} million parameters, for {name}: {needs}")
    if training.progress["steps"]:
        say(f"continuing after {training.progress['seconds'] / 60:.1f} minutes, {training.progress['steps']} steps")
    with stopping() as stopped, bar(options.kind) as show:
        training.run(lambda: bool(stopped), show)
    if not training.progress["steps"]:
        if not stopped:
            raise ValueError("--minutes: the target was still writing the first text: give more")
        raise KeyboardInterrupt("before the first step: nothing is kept but the text")
    counts = np.zeros(model.n_vocab, int)
    for i in range(training.progress["batches"]):
        counts += np.bincount(training.text.batch(i)[0].ravel(), minlength=model.n_vocab)
    accepted = training.ranks()
    folder.save(kind, output, kind.tensors(accepted, counts), replacing)
    if stopped:
        raise KeyboardInterrupt(f"the drafter so far is in {output}, and the same command continues")
    held_out = [np.array(training.held_out.batch(i)[0][:12]) for i in (0, 1)]
    found = {
        "kind": options.kind, "target": name, "command": command(options), "machine": machine(),
        "torch": f"{torch.__version__}, {torch.get_num_threads()} threads, {network.DEVICE}",
        "text": {"files": sorted(options.text), "tokens": len(stream), "digest": digest(*map(str, stream.tolist()))},
        "training": training.progress, "ranks": accepted.round(4).tolist(),
        **card.measured(options.kind, model, output, *held_out, lengths(model.n_ctx)[1], STRIDE),
    }  # fmt: skip
    found["tokens_per_call"] = round(loop.expected(np.array(found["top_1"])), 3)
    with replacing(output / f"{options.kind}_figures.json") as new:
        new.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    report.finish(found, page_of(found, options, output))


def tokens_of(options, tokenizer):
    """The texts as one stream of tokens [n] int32, with `<|endoftext|>` before each if the vocabulary contains it."""
    paths, stream = [], []
    for given in options.text.values():
        paths += sorted(Path(given).glob("*.txt")) if os.path.isdir(given) else [given]
    for path in tqdm(paths, desc="tokenize", unit=" files", leave=False, disable=None):
        stream += [] if tokenizer.end_of_text is None else [tokenizer.end_of_text]
        stream += tokenizer.encode(read_text(str(path), "text"), special=True)
    return np.array(stream, np.int32)


def quarter(hparams):
    """The shape of a draft model when --shape is not given."""
    n_head = max(1, hparams.n_head // 2)
    return [max(1, hparams.n_layer // 4), hparams.d_head * n_head, n_head]


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


def page_of(found, options, output):
    """The result of the training, and how to use it."""
    training, target = found["training"], options.target_model_size
    rows = [f"  {i}  {top:9.3f}" + (f"  {found['overlap'][i - 1]:14.3f}" if "overlap" in found else "")
            for i, top in enumerate(found["top_1"], 1)]  # fmt: skip
    use = {
        "draft": f"python main.py --target_model_size {target} --draft_model_size {output}",
        "medusa": f"gpt2np.load_heads({str(output)!r}, 'medusa')",
    }.get(options.kind, f"python main.py --target_model_size {output} --drafter {options.kind}")
    return f"""\
{options.kind} for {target}: {training["steps"]} steps, {training["tokens_seen"] / 1e6:.2f} million tokens, of \
{training["tokens_of_text"] / 1e6:.2f} million that the target wrote, {training["seconds"] / 60:.1f} minutes

How often it is right, by the draft tokens before, on {found["n_texts"]} held-out texts:
   greedy{"  at temperature 1" * ("overlap" in found)}
{chr(10).join(rows)}
{found["tokens_per_call"]:.2f} tokens per call of the target, expected at temperature 0 and K = 3

{use}
{output / "training"} keeps text and checkpoint, for more minutes and other kinds; otherwise delete it.
"""
