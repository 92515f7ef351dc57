"""Ordinary against speculative generation: the same target model, without and with a draft.

    python main.py                                  the bundled pair, no download
    python main.py --draft_model_size 124M --target_model_size 355M --K 4

--prompt TEXT              what to continue; an empty one starts from <|endoftext|>
--n_tokens_to_generate N   how many tokens to add, exactly, unless --stop ends the text (120)
--target_model_size M      the model whose text it is (tiny-target): tiny-draft or tiny-target, which are bundled, 124M,
                           355M, 774M, 1558M, or a folder with a GPT-2
--drafter D                who guesses (model): model, or without one ngram (counts of a text), prompt_lookup and suffix
                           (copies of the text so far), early_exit (the target's own first layers)
--draft_model_size M       the model that guesses (tiny-draft), with the target's vocabulary; for --drafter model alone
--corpus FILE              a text to count n-grams in (ngram: some tales that neither bundled model knows) or to copy
                           from, too (suffix: none)
--ngram_table FILE         where the counts of ngram are kept: read if it is there, else counted and written
--n_max N                  the longest n-gram of ngram, the longest match of prompt_lookup (3)
--exit_layer L             after how many layers early_exit leaves the target (2)
--K K                      how many tokens to guess before the target checks them (3): a number; auto, from costs
                           measured first and the acceptance so far, 0 included; heuristic, two more after a whole
                           acceptance and one less otherwise; confidence, until the draft is unsure. With auto the
                           clock has a say: one seed is then not one text
--verifier V               the rule that keeps or drops guesses (rejection): rejection, block, exact_match, gumbel
                           (one seed, one text, with and without a draft), or, LOSSY, lenient and typical
--temperature T            0 takes the likeliest token each time, 1 draws from the model's own distribution (0)
--top_k N                  draw from the N likeliest tokens only; 0 from all (0)
--top_p P                  ... from the likeliest that together reach probability P (1)
--min_p P                  ... from those with at least P times the probability of the likeliest (0)
--repetition_penalty X     makes tokens that occurred before less likely, above 1 (1)
--stop TEXT                end where the new text contains this ()
--seed N                   of the random numbers: one seed, one text (0)
--models_dir DIR           where the folders 124M, 355M, ... are, and are downloaded to (models)
--source S                 what to download, where a size is not here: hub (safetensors) or openai (TensorFlow) (hub)
--show S                   of the second text: text, or rounds, a line for each call of the target with the guesses that
                           were accepted, those that were not, and what came instead (text)
--trace FILE               keep all rounds with p, q, the random numbers and the decisions: FILE.html is a page to look
                           at, FILE.jsonl is for programs and for replay ()
--json [FILE.json]         print one JSON object with all that was measured, and nothing else; or keep it in a file,
                           beside the page
--help                     print this

    python main.py prompts         native against assisted on the prompts of a well-known evaluation
    python main.py calibrate       what the draft costs and is worth on this machine: the speedup for K = 1 to 8,
                                   predicted and measured
    python main.py gamma_table     K = 1 to 10: speedup in time and in target calls, the alpha and c that fit
    python main.py drafters        every drafter in a table: alpha, c, tokens per call, speedup
    python main.py alpha_table     every drafter: alpha at each temperature, for each target
    python main.py method_table    drafters and verifiers on tales, dialogue, text that repeats itself, known prompts:
                                   tokens per call, speedup, exact or not
    python main.py compare_sizes   seconds of targets of several sizes, natively and with each drafter

Each takes ten seconds to two minutes with the bundled pair on two cores. They take the models and the options above
where these make sense, which is all but --prompt, --stop, --show and --trace; and
--n_prompts N              how many tales to continue (36; 12 for gamma_table, alpha_table, 8 for compare_sizes, 4 for
                           drafters, 3 of each kind for method_table)
--n_tokens_to_generate N   (120; 100 for gamma_table, 64 for calibrate, drafters, alpha_table, 48 for method_table)
--temperature T            (0; 0.5 for method_table, where the rules differ and text still repeats itself)
--prompts P, --prompt_file FILE
                           the prompts of prompts, gamma_table, alpha_table and compare_sizes: tales, beginnings that
                           neither bundled model knows; known, the seven of the evaluation; or those of a file, one a
                           line (tales, and known for prompts)
--temperatures T,T         of gamma_table and alpha_table (0,1)
--max_K K                  the largest K of gamma_table (10)
--target_sizes M,M         of alpha_table and compare_sizes (tiny-draft,tiny-target)
--drafters D,D             of method_table (model,ngram,prompt_lookup,suffix,early_exit), of compare_sizes (model,ngram)
--verifiers V,V            of method_table (rejection,block,exact_match,gumbel,lenient,typical)
--log FILE.txt             both texts of every prompt of prompts ()
--plot FILE.png            draw the table, too; .pdf or .svg for print; needs matplotlib ()
--json FILE.json           each finished part is kept at once: when interrupted, the same command goes on from there

    python main.py bench           a forward pass for 1 to 9 tokens, against the memory's limit, plain NumPy and, where
                                   it is installed, transformers

--sizes M,M                the models to time, with random weights of that shape where they are not here (124M,355M)
--strategies S,S           panels, rows, plain, transformers; see gpt2np/matmul.py (all that there are)
--rows N, --context N, --prompt_tokens N, --repeats N
                           passes for up to 9 tokens, 100 before them, a prompt of 512, each 7 times
and with transformers, whole generation by both: --draft_model_size, --target_model_size (the bundled pair), --K (3),
--n_tokens_to_generate (60), --n_prompts (3)

    python main.py museum          real mistakes, how far each bends the law, which check sees it
    python main.py replay FILE.jsonl [--trace FILE.html]
                                                    the rounds that --trace FILE.jsonl has kept, without a model
"""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

import fire
import numpy as np

from command_line.commands import COMMANDS
from command_line.models import draft_length, load, set_up
from command_line.prompts import prompt_tokens
from command_line.request import OPTIONS, VERIFIERS, as_text, check_texts, machine, read
from command_line.saved import Saved, settings_of
from command_line.views import JsonView, TextView, print_museum, print_trace, progress, show, timings_page
from gpt2np import matmul
from speculative import AutoregressiveSampler, Gumbel, SpeculativeSampler, Timed, collect
from speculative.checks import check_request
from speculative.trace import Trace, page


@as_text
def compare(*words, **options):
    """Run both samplers on one prompt and report. The options are checked before anything is loaded or printed."""
    request = read(words, options, OPTIONS - {"n_prompts"})
    file = Saved(request.json, "compare", settings_of(request, OPTIONS - {"n_prompts"}))
    model, tokenizer, load_seconds = load(request.target_model_size, request)
    setting = set_up(request.drafter, request, model, tokenizer)
    tokens, stop = prompt_tokens(request.prompt, tokenizer), request.stop_text(tokenizer)
    check_request(tokens, request.n_tokens_to_generate, model)
    K, costs = draft_length(request, setting, tokens)

    target, drafter, draft = Timed(setting.target, load_seconds), setting.drafter, None
    if hasattr(drafter, "model"):
        draft = drafter.model = Timed(drafter.model, setting.load_seconds)
    rule, sampling = VERIFIERS[request.verifier], request.sampling
    samplers = {
        "autoregressive": AutoregressiveSampler(target, sampling=sampling),
        "speculative": SpeculativeSampler(target, drafter, verifier=rule, K=K, sampling=sampling),
    }
    noise = Gumbel if request.verifier == "gumbel" else np.random.default_rng
    report = {
        "target": {"name": request.target_model_size, "parameters": model.n_params},
        "draft": setting.draft, "drafter": request.drafter, "K": request.K, "costs": costs and asdict(costs),
        "seed": request.seed, "verifier": request.verifier, "exactness": rule.exactness, **asdict(sampling),
        "prompt": request.prompt, "prompt_tokens": len(tokens), "n_tokens": request.n_tokens_to_generate,
        "stop": request.stop, "matmul": matmul.strategy(), "machine": machine(),
    }  # fmt: skip
    about = dict(report)
    report["trace"] = request.trace
    view = JsonView(report) if request.json is True else TextView(report, tokenizer, stop, request.show)
    for name, sampler in samplers.items():
        warm_up(sampler, tokens, request.n_tokens_to_generate, noise(request.seed), (target, draft))
        view.begin(name)
        rounds = sampler.rounds(tokens, request.n_tokens_to_generate, noise(request.seed), stop=stop)
        trace = Trace(tokens, tokenizer.decode, about)
        kept = trace.add if request.trace or request.show == "rounds" else lambda step: None
        generation, seconds = clocked(tokens, rounds, lambda step, kept=kept: view.see(step, kept(step)))
        report[name] = measured(generation, seconds, tokenizer, stop)
        view.end(report[name])
    report["speedup"] = report["speculative"]["tokens_per_second"] / report["autoregressive"]["tokens_per_second"]
    report["same_tokens"] = report["autoregressive"]["tokens"] == report["speculative"]["tokens"]
    sampling_seconds = seconds - target.seconds - (draft.seconds if draft else 0)
    if request.trace:
        write_trace(trace, request.trace)
    report["llama_cpp"] = llama_cpp(generation.stats, target, draft, sampling_seconds, seconds)
    file.finish(report)
    view.summary(report, timings_page(generation.stats, target, draft, sampling_seconds, seconds))


@fire.decorators.SetParseFn(str)
def replay(*words, **options):
    """A trace round by round, without a model."""
    if len(words) != 1:
        raise ValueError(f"replay takes one file, python main.py replay trace.jsonl; got {len(words)}")
    request = read((), options, {"trace"})
    trace = Trace.load(words[0])
    print_trace(trace)
    if request.trace:
        write_trace(trace, request.trace)


@as_text
def bench(*words, **options):
    """Time forward passes, and say what a pass for several tokens costs."""
    from command_line import bench

    bench.bench(words, options)


def museum(*words, **options):
    """Print the museum of bugs: each mistake, the error of its law on the toy case, and the check that catches it."""
    request = read(words, options, {"json"})
    from speculative.museum import EXHIBITS, caught_by, law_error

    parts, table = Saved(request.json, "museum", {}), []
    for exhibit in progress(list(EXHIBITS.values())):
        error, message = law_error(exhibit), caught_by(exhibit)
        error = error if error > 1e-12 else 0.0
        check = exhibit.grader.__name__ if message else "NOT CAUGHT"
        table.append({"mistake": exhibit.name, "law_error": error, "check": check, "message": message,
                      "what": exhibit.what, "seen": exhibit.seen})  # fmt: skip
    parts.finish({"mistakes": table})
    show(table, print_museum, request.json is True)


# ------------------------------------------------------------------------------------------------ the run


def warm_up(sampler, tokens, n_tokens, rng, models):
    """A few tokens that do not count: they bring the weights into memory and start the threads."""
    sampler.generate(tokens[:1], min(n_tokens, 8), rng)
    for model in models:
        if model:
            model.reset()


def write_trace(trace, path):
    """As a page or as JSON lines, by the file's name."""
    if path.endswith(".html"):
        Path(path).write_text(page(trace), encoding="utf-8")
    else:
        trace.save(path)


def clocked(tokens, rounds, see):
    """(generation, seconds); `see` is shown each round, in time that does not count."""
    seconds = 0.0

    def steps():
        nonlocal seconds
        while True:
            started = perf_counter()
            step = next(rounds, None)
            seconds += perf_counter() - started
            if step is None:
                return
            see(step)
            yield step

    return collect(tokens, steps()), seconds


def measured(generation, seconds, tokenizer, stop):
    """One sampler's results as plain numbers and lists."""
    stats, text = generation.stats, tokenizer.decode(generation.tokens.tolist())
    return {
        "text": stop.cut(text) if stop else text,
        "tokens": generation.tokens.tolist(),
        "origins": [origin for r in generation.rounds for origin in r.origins],
        "seconds": seconds,
        "seconds_by_part": stats.seconds,
        "tokens_per_second": stats.n_tokens / seconds,
        "target_calls": stats.target_calls,
        "tokens_per_target_call": stats.tokens_per_target_call,
        "drafted": stats.drafted,
        "accepted": stats.accepted,
        "rejected": stats.rejected,
        "acceptance": stats.acceptance,
        "drafted_by_position": stats.drafted_by_position,
        "accepted_by_position": stats.accepted_by_position,
        "acceptance_by_position": stats.acceptance_by_position,
    }


def llama_cpp(stats, target, draft, sampling_seconds, seconds):
    """What `timings_page` prints, under llama.cpp's names; times in milliseconds."""
    return {
        "n_draft": len(stats.drafted_by_position),
        "n_predict": stats.n_tokens,
        "n_drafted": stats.drafted,
        "n_accept": stats.accepted,
        "accept": 100 * stats.acceptance,
        "target": target.report(),
        "draft": draft.report() if draft else None,
        "sampling time": 1000 * sampling_seconds,
        "total time": 1000 * seconds,
    }


def main():
    """Run the command; what cannot be done ends in one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal that lacks a character shows a question mark
    if {"--help", "-h"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return
    try:
        check_texts(sys.argv[1:])
        commands = {**COMMANDS, "bench": bench, "museum": museum, "replay": replay}
        named = sys.argv[1:2] and sys.argv[1] in commands
        fire.Fire(commands[sys.argv[1]] if named else compare, command=sys.argv[2 if named else 1 :])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as error:
        remedy = str(error) or "a download goes on from here when it is run again"
        print(f"main.py: interrupted; {remedy}", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError, MemoryError) as error:
        print(f"main.py: {error or 'not enough memory'}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
