"""Reading all files of a tokenizer, with the same token ids as transformers 5.

tokenizer.json              everything; if it is there, vocab.json and merges.txt are not read
tokenizer_config.json       settings, the names of special tokens and, in added_tokens_decoder, all added tokens; if it
                            has the latter, the next two files are not read
special_tokens_map.json     the names of special tokens
added_tokens.json           {"<|pad|>": 50257, ...}: tokens that were added to the vocabulary

For the class GPT2Tokenizer, transformers 5 takes vocabulary, merges and added tokens from these files, and builds the
rest itself. For other classes, such as PreTrainedTokenizerFast, tokenizer.json counts. Both refuse the same here.
"""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ..tokenizer import END_OF_TEXT, AddedToken, Tokenizer, byte_symbols, parse_merges, symbols_made
from .errors import CheckpointError
from .raw import check_is_file, read_json, text_of
from .table import ADAPTERS, BESIDE, BPE

NAMED = [f"{kind}_token" for kind in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")]
LISTED = ("extra_special_tokens", "additional_special_tokens")
CLASS = "GPT2Tokenizer"


class Unsupported(ValueError):
    """A tokenizer that is not GPT-2's; the message says what to do."""


def load_tokenizer(path, merges_path=None, n_rows=0):
    """The Tokenizer of tokenizer.json, or of vocab.json and merges.txt, with the settings in the files beside them.

    transformers adds `<|endoftext|>` to a vocabulary without it; here, only if the model's `n_rows` tokens allow it.
    """
    beside = {file.name: read_json(file) for file in map(path.with_name, BESIDE) if file.is_file()}
    config, names, of_file = (beside.get(name, {}) for name in BESIDE)
    whole = {} if merges_path else read_json(path)
    with naming(" with ".join([str(path), *([merges_path.name] if merges_path else []), *beside])):
        vocabulary, merges = (read_vocabulary(path), read_merges(merges_path)) if merges_path else bpe_of(whole)
        is_gpt2 = is_gpt2s(config, bool(merges_path))
        of_config = config.get("added_tokens_decoder")
        if of_config is not None:
            names, of_file = {}, {}
        usual = dict.fromkeys(NAMED[:3], END_OF_TEXT) if is_gpt2 else {}
        listed = listed_in(config), [] if {*LISTED} & config.keys() else listed_in(names)
        names = {key: value for key, value in (usual | config | names).items() if value and key in NAMED}
        of_tokenizer = [] if is_gpt2 and of_config is not None else whole.get("added_tokens") or []
        added = added_tokens(of_tokenizer, of_config or {}, of_file, names, *listed)
        vocabulary = with_added(vocabulary, added, n_rows)
        prefix = config if is_gpt2 else steps(whole, "pre_tokenizer")[0]
        return Tokenizer(
            vocabulary,
            merges,
            [token for _, token in added],
            prefix_space=bool(prefix.get("add_prefix_space")),
            start=start_of(whole, config, names, vocabulary),
            end_of_text=content(names.get("eos_token", END_OF_TEXT)),
        )


@contextmanager
def naming(files):
    """Turn an error in the content of files into a CheckpointError that begins with their names."""
    try:
        yield
    except CheckpointError:
        raise
    except Unsupported as error:
        raise CheckpointError(f"{files}: {error}") from None
    except ValueError as error:
        raise CheckpointError(f"{files}: {error}; use the files of one model") from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise CheckpointError(f"{files}: not as transformers writes them ({error!r:.80}); get them again") from None


def is_gpt2s(config, is_two_files):
    """Whether transformers builds GPT-2's class. Unsupported if it builds one that reads the files differently."""
    kind = str(config.get("tokenizer_class") or CLASS).removesuffix("Fast")
    if is_two_files and kind != CLASS:
        raise Unsupported(f"tokenizer_class is {kind!r:.80}, expected {CLASS}: {ADAPTERS}")
    if config.get("split_special_tokens"):
        raise Unsupported("split_special_tokens in tokenizer_config.json is not supported: remove it")
    return kind == CLASS


def check(setting, value):
    values, remedy = BPE[setting]
    if value not in values:
        raise Unsupported(f"{setting} is {value!r:.80}, expected {' or '.join(map(repr, values))}: {remedy}")


# ------------------------------------------------------------------------------------------------ vocabulary and merges


def read_vocabulary(path):
    """The dict str -> int of a vocab.json (encoder.json): symbols, written as in `byte_symbols`, with their ids."""
    vocabulary = read_json(path)
    if not vocabulary.keys() >= symbols_made([]):
        raise CheckpointError(
            f"{path} has no token for some of the 256 bytes: not a byte-level vocabulary, or a program has changed its "
            "characters to Unicode's NFD; get it again"
        )
    return vocabulary


def read_merges(path):
    """The pairs of a merges.txt (vocab.bpe): a version line, then two symbols per line, in the order learned."""
    data = Path(path).read_bytes()
    check_is_file(data, path)
    with naming(path):
        merges = parse_merges(text_of(data))
        symbols_made(merges)
    return merges


def bpe_of(whole):
    """(vocabulary, merges) of a tokenizer.json. Unsupported unless it is a byte-level BPE like GPT-2's."""
    model, split = whole.get("model") or {}, steps(whole, "pre_tokenizer")
    check("model.type", model.get("type") or "BPE")
    check("pre_tokenizer", kinds(split) + " with use_regex false" * any(s.get("use_regex") is False for s in split))
    check("normalizer", kinds(steps(whole, "normalizer")))
    for setting in BPE:
        if setting.startswith("model.") and setting not in ("model.type", "model.unk_token"):
            check(setting, model.get(setting.removeprefix("model.")) or None)
    vocabulary = model["vocab"]
    check("Unicode's normal form", "NFD" if any("G\u0307" in symbol for symbol in vocabulary) else "NFC")
    check("model.unk_token", model.get("unk_token") if {*byte_symbols().values()} - vocabulary.keys() else "")
    return vocabulary, [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model["merges"]]


def steps(whole, key):
    """The steps (a list of dict) of a pre_tokenizer, normalizer or post_processor; a sequence has several."""
    step = whole.get(key)
    if step and step["type"] == "Sequence":
        return [part for value in step.values() if isinstance(value, list) for part in value]
    return [step] if step else []


def kinds(some):
    return " + ".join(step["type"] for step in some)


def start_of(whole, config, names, vocabulary):
    """The ids before every text: by the post_processor of a tokenizer.json, or without one by add_bos_token."""
    if not whole:
        check("a token after every text", "add_eos_token" if config.get("add_eos_token") else "")
        first = content(names.get("bos_token", END_OF_TEXT)) if config.get("add_bos_token") else None
        if first not in (None, *vocabulary):
            raise Unsupported(f"add_bos_token puts {first!r:.80} before a text, but the vocabulary lacks it: remove it")
        return [] if first is None else [vocabulary[first]]
    ids = []
    for step in steps(whole, "post_processor"):
        check("post_processor", step["type"])
        if step["type"] == "TemplateProcessing":
            *before, last = step["single"]
            check("a token after every text", "" if "Sequence" in last else last["SpecialToken"]["id"])
            ids += [vocabulary[name["SpecialToken"]["id"]] for name in before]
    return ids


# ------------------------------------------------------------------------------------------------ added tokens


def added_tokens(of_tokenizer, of_config, of_file, names, listed, more_listed):
    """The added tokens as [(id, or None for the next free one, AddedToken)], as transformers 5 finds them.

    The first three are added_tokens of tokenizer.json, added_tokens_decoder of tokenizer_config.json and
    added_tokens.json; `names` are tokens with a name, such as eos_token, the last two the other special tokens of
    tokenizer_config.json and of special_tokens_map.json, which do not make a token of added_tokens.json special.
    """
    found = {entry["content"]: (entry["id"], flags(entry)) for entry in of_tokenizer}
    found |= {entry["content"]: (int(token), flags(entry)) for token, entry in of_config.items()}
    named = [names[key] for key in NAMED if key in names]
    special = {*map(content, [*named, *listed])}
    for name, token in of_file.items():
        found.setdefault(name, (token, AddedToken(name, name in special, normalized=name not in special)))
    for entry in named + listed + more_listed:
        token, _ = found.get(content(entry), (None, None))
        if token is None:  # of two entries for one token, the last one counts
            found[content(entry)] = None, flags(entry) if isinstance(entry, dict) else AddedToken(entry)
    for name in map(content, named):
        found[name] = found[name][0], replace(found[name][1], special=True)
    return sorted(found.values(), key=lambda entry: (entry[0] is None, entry[0] or 0))


def with_added(vocabulary, added, n_rows):
    """The vocabulary with the tokens that it lacks, in the order of their ids."""
    lacking = [(token, entry.content) for token, entry in added if entry.content not in vocabulary]
    if len(vocabulary) + len(lacking) > n_rows:
        lacking = [entry for entry in lacking if entry != (None, END_OF_TEXT)]
    vocabulary = dict(vocabulary)
    for token, name in lacking:
        if token not in (None, len(vocabulary)):
            raise ValueError(
                f"the added token {name!r:.80} has the id {token!r:.40}, but the vocabulary ends at "
                f"{len(vocabulary) - 1}: transformers 4 and 5 give it different ids"
            )
        vocabulary[name] = len(vocabulary)
    return vocabulary


def flags(entry):
    fields = {key: bool(entry.get(key)) for key in ("normalized", "single_word", "lstrip", "rstrip")}
    return AddedToken(entry["content"], bool(entry.get("special", True)), **fields)


def content(name):
    """The name of a token, which files write as a string or as an object."""
    return name["content"] if isinstance(name, dict) else name


def listed_in(file):
    """The special tokens without a name in a file, which is a list, or an object with a name for each."""
    listed = file.get(LISTED[0]) or file.get(LISTED[1]) or []
    return [*(listed.values() if isinstance(listed, dict) else listed)]
