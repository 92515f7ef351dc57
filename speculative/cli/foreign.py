r"""The words of other programs' command lines that are no options here: llama.cpp, LMFlow, transformers, vLLM.

An option of theirs that means the same as one of ours is in its entry (options.py, `also`). One that changes no result
here is in NOTES: the command runs, and a note names all of them. One that does is in STOPS, with what to write instead.
"""

from json import loads
from re import sub

NOTES = {  # what an option is about there: its names
    "GPU": "-ngl -ngld --n-gpu-layers --gpu-layers --gpu-layers-draft -mg -ts -sm -dev --gpu --device --device_map "
    "--tensor-parallel-size -tp --gpu-memory-utilization --use_accelerator -fa --flash-attn",
    "threads: see GPT2NP_THREADS": "-t -tb -td --threads --threads-batch --threads-draft",
    "context and batches": "-c --ctx-size -b -ub --batch-size --ubatch-size --max-model-len -cd --ctx-size-draft",
    "number formats": "--dtype --torch_dtype --load_in_8bit --load_in_4bit -ctk -ctv --arch_type",
    "output": "--color -v --verbose -lv --log-disable --no-warmup",
    "asking for texts: see --prompt": "-i --interactive -cnv -no-cnv",
    "chat: see --template": "--jinja",
    "the order of samplers": "--sampling-seq --samplers",
    "drafts too short to verify": "--draft-min --spec-draft-n-min",
    "branches of the draft: see --tree": "-np",
    "the line breaks of a prompt": "-e --escape",
    "always so here": "--use_cache --ignore-eos --trust_remote_code --no-mmap --mlock --enforce-eager",
    "the model's own": "--tokenizer",
    "a constant draft length": "--num_assistant_tokens_schedule",
    "--temperature 1 samples, 0 does not": "--do_sample",
    "one beam": "--num_beams",
}
NO_SERVER = "there is no server here: leave it out"
ENGINES = {"draft-simple": "model", "draft_model": "model", "ngram-simple": "prompt_lookup", "ngram": "prompt_lookup",
           "[ngram]": "prompt_lookup", "eagle": "eagle", "eagle3": "eagle", "medusa": "heads"}  # fmt: skip


def drafter(text, others):
    found = ENGINES.get(text)
    return f"write --drafter {found}" if found else "see --drafter for the drafters here"


def config(text, others):
    """What to write for vLLM's JSON."""
    try:
        found = dict(loads(text))
    except (ValueError, TypeError):
        return "expected JSON there; here write --draft_model_size and --K"
    names = {"model": "--draft_model_size", "num_speculative_tokens": "--K"}
    names |= {"prompt_lookup_max": "--n_max", "prompt_lookup_min": "--n_min"}
    way = ENGINES.get(found.get("method"), "model")
    words = [f"{names[key]} {value}" for key, value in found.items() if key in names and (way, key) != (way, "model")]
    words += [f"--draft_model_size {found['model']}" for _ in [1] if way == "model" and "model" in found]
    words += [f"--drafter {way}"] * (way != "model")
    words += ["--draft_temperature 0"] * (found.get("draft_sample_method") == "greedy")
    return f"write {' '.join(words)}" if words else "write --draft_model_size and --K"


def if_text(value, sentence):
    """A stop at one value only."""
    return lambda text, others: sentence if text == value else ""


def samples(text, others):
    is_drawn = float(others.get("temperature", others.get("temp", "0")) or 0) > 0
    return "write --temperature 0" if text.lower() in ("false", "0") and is_drawn else ""


STOPS = {  # names: a sentence, where {} is the value; or a function (value, dict name -> text of all) -> one, or ""
    "--draft-p-split": "the draft becomes a tree there: write --tree N",
    "--draft-p-min --spec-draft-p-min --assistant_confidence_threshold":
        "it ends a draft at an improbable token: write --K confidence, which does so at 0.4",
    "--prompt_lookup_num_tokens": "write --drafter prompt_lookup --K {}",
    "--assistant_early_exit": "write --drafter early_exit --exit_layer {}",
    "--num_assistant_tokens_schedule": lambda text, others: "" if text == "constant" else "write --K heuristic",
    "--max_length --len-out": "it counts the prompt as well: write --n_tokens_to_generate N",
    "--num_beams": lambda text, others: "" if text == "1" else "beam search is not for speculation: leave it out",
    "--do_sample": samples,
    "--spec-type": drafter,
    "--speculative-config -sc": config,
    "--speculative-model": if_text("[ngram]", "write --drafter prompt_lookup"),
    "-n --predict --n-predict": if_text("-1", "-1 means endless there: give a number"),
    "-s --seed": if_text("-1", "-1 means a random seed there: give a number"),
    "--host --port": NO_SERVER,
}  # fmt: skip


def plain(name):
    return name.lstrip("-").replace("-", "_")


def by_name(table):
    """dict name -> (the name as it is written there, the key, the value) of a table with the names as keys."""
    return {plain(name): (name, value) for names, value in table.items() for name in names.split()}


ABOUT = by_name({names: about for about, names in NOTES.items()})
STOPPED = by_name(STOPS)


def stop(name, text, others):
    """What to write instead of an option of theirs; an empty text if it need not stop the command."""
    _, found = STOPPED.get(name, ("", ""))
    sentence = found.format(text) if isinstance(found, str) else found(text, others)
    return sentence and f"{STOPPED[name][0]}: {sentence}"


def note(names):
    """The line about options of theirs that change nothing here."""
    spelled = ", ".join(ABOUT[name][0] for name in names)
    about = ", ".join(dict.fromkeys(ABOUT[name][1] for name in names))
    return f"{spelled} {'have' if len(names) > 1 else 'has'} no effect here ({about})"


def server(words, others):
    """What to write instead of `serve TARGET`."""
    more = config(others["speculative_config"], {}).removeprefix("write ") if "speculative_config" in others else ""
    return f"there is no server here: write --target_model_size {' '.join([*words[:1], more]).strip() or 'TARGET'}"


def unescaped(text):
    r"""A prompt as llama.cpp reads it, where \n is a line break."""
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return sub(r"\\([nrt\\\"'])", lambda found: escapes.get(found[1], found[1]), text)
