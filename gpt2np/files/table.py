"""What a folder with a GPT-2 may contain, in tables; docs/models.md has the same (tests/gpt2np/files/test_table.py).

    WEIGHTS, TOKENIZERS     the files, in the order in which they are looked for
    SETTINGS, ALIASES       the keys of config.json and their values
    PREFIXES, TENSORS       the names of tensors: what is dropped from them, and those that GPT-2 does not have
    BPE                     the settings in tokenizer.json

What is read has an entry, and so has what is not, with the sentence for it: what it is, and what to do.
"""

from fnmatch import fnmatchcase
from typing import NamedTuple

ADAPTERS = "other models run with --engine of main.py, or in Python with an adapter (docs/adapters.md)"
PICKLE = "is a pickle, which may run code, so it is not read:"
AS_SAFETENSORS = "load it with the library that wrote it, and save it as model.safetensors"
OTHER_FORMAT = f"is in the format of a different program: {AS_SAFETENSORS}"
UNQUANTISED = "use the original weights, in float32, float16 or bfloat16"
MERGE = "load it with peft, and save model.merge_and_unload() with save_pretrained"
BYTE_LEVEL = "GPT-2's is a byte-level BPE"
BY_IDS = "without that file, a text is a list of token ids"


class Form(NamedTuple):
    """A way to store weights or a tokenizer. A folder has it if each pattern is the name of one of its files."""

    patterns: tuple  # one that ends in "/" is the name of a folder
    layout: str  # "" if it is not read
    sentence: str  # about a form that is read, a note; otherwise what follows the name of the file


WEIGHTS = (
    Form(("config.json", "model.safetensors"), "hub", "in float32, float16 or bfloat16"),
    Form(("config.json", "model.safetensors.index.json"), "hub", "with the files that the index names"),
    Form(("hparams.json", "model*.index", "model*.data-00000-of-?????"), "openai", "a TensorFlow 1 checkpoint; "
         "of several steps, the last"),
    Form(("adapter_*",), "", f"belongs to a LoRA adapter, which is not a model: {MERGE}"),
    Form(("*.gguf",), "", f"is a GGUF file, which llama.cpp runs: {ADAPTERS}"),
    Form(("ckpt*.pt",), "", f"{PICKLE} PyTorch converts nanoGPT's. c = torch.load('ckpt.pt', map_location='cpu'); "
         "json.dump(c['model_args'], open('config.json', 'w')); "
         "safetensors.torch.save_file({k: v.clone() for k, v in c['model'].items()}, 'model.safetensors')"),
    Form(("pytorch_model*.bin",), "", f"{PICKLE} save_pretrained of transformers writes model.safetensors, and so does "
         "python main.py train"),
    Form(("*.pt*",), "", f"{PICKLE} {AS_SAFETENSORS}"),
    Form(("*.bin",), "", OTHER_FORMAT),
    Form(("*.h5",), "", OTHER_FORMAT),
    Form(("*.msgpack",), "", OTHER_FORMAT),
    Form(("*.onnx",), "", OTHER_FORMAT),
    Form(("checkpoint-*/",), "", "is a model in the output folder of a trainer: name that folder"),
)  # fmt: skip

TOKENIZERS = (
    Form(("tokenizer.json",), "hub", "a byte-level BPE, with the token ids of transformers 5"),
    Form(("vocab.json", "merges.txt"), "hub", "the same"),
    Form(("encoder.json", "vocab.bpe"), "hub", "OpenAI's names"),
    Form(("*.model",), "", f"is a SentencePiece tokenizer, and {BYTE_LEVEL}: {ADAPTERS}"),
    Form(("vocab.txt",), "", f"is a WordPiece (BERT) vocabulary, and {BYTE_LEVEL}: {ADAPTERS}"),
    Form(("meta.pkl",), "", f"is nanoGPT's table of single characters, a pickle, and {BYTE_LEVEL}: docs/models.md has "
         "lines that make a tokenizer.json of it"),
)  # fmt: skip
BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")  # settings of either tokenizer
NUMBERS = "without any of these files, and with a vocabulary that is not GPT-2's, a text is a list of token ids"

# the sizes in config.json, as in HParams, and their other names: OpenAI's hparams.json has n_vocab and n_ctx, nanoGPT's
# model_args have block_size
ALIASES = {
    "vocab_size": ("n_vocab",), "n_positions": ("n_ctx", "block_size", "max_position_embeddings"),
    "n_embd": ("hidden_size",), "n_head": ("num_attention_heads",), "n_layer": ("num_hidden_layers",),
}  # fmt: skip
TANH = ("gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate")  # one function, five names
EXACT = ("gelu", "gelu_python")
SETTINGS = {  # key -> (the values that are read, GPT-2's first; about the others)
    "model_type": (("gpt2",), ADAPTERS),
    "activation_function": (TANH + EXACT, "the model has a different function"),
    "tie_word_embeddings": ((True,), "the model has an lm_head of its own"),
    "n_inner": ((None, "4 n_embd"), "the model's MLPs have a different width"),
    "scale_attn_weights": ((True, False), ""),
    "scale_attn_by_inverse_layer_idx": ((False, True), ""),
    "add_cross_attention": ((False,), "the decoder of an encoder is not a language model"),
    "is_causal": ((True,), "a model that sees the next token cannot generate"),
    "quantization_config": ((None,), UNQUANTISED),
}

PREFIXES = (
    "transformer.", "model.", "module.", "_orig_mod.", "base_model.", "lm.", "gpt2.", "gpt.", "net.",
    "language_model.", "pretrained_model.",
)  # fmt: skip
MASKS = ("h.*.attn.bias", "h.*.attn.masked_bias")  # some files also contain the causal mask
TENSORS = {  # patterns of a tensor's name, without prefixes: about the model
    ("*lora_*", "*.base_layer.*"): f"a LoRA adapter that is not merged: {MERGE}",
    ("*.qweight", "*.qzeros", "*.scales", "*.g_idx"): f"weights quantised by GPTQ or AWQ: {UNQUANTISED}",
    ("*.SCB", "*.absmax", "*.quant_map", "*.quant_state*"): f"weights quantised by bitsandbytes: {UNQUANTISED}",
    ("score.*", "classifier.*", "qa_outputs.*", "multiple_choice_head.*"):
        "the head of a classifier: a language model is needed",
    ("v_head.*", "value_head.*"):
        "a value head: save the language model without it (pretrained_model of trl) with save_pretrained",
    ("*crossattention.*", "*ln_cross_attn.*"): "cross-attention, which GPT-2 does not have",
}  # fmt: skip

BPE = {  # the same for tokenizer.json
    "Unicode's normal form": (("NFC",), "a program has changed the characters of the vocabulary: get the file again"),
    "model.type": (("BPE",), f"Unigram is SentencePiece, WordPiece is BERT's, and {BYTE_LEVEL}: {ADAPTERS}; {BY_IDS}"),
    "pre_tokenizer": (("ByteLevel",), f"{BYTE_LEVEL}, split by GPT-2's own expression: {ADAPTERS}"),
    "normalizer": (("",), "it changes each text first: set it to null, and change texts yourself"),
    "post_processor": (("", "ByteLevel", "TemplateProcessing"), "set it to null"),
    "model.unk_token": (("", None), "it replaces bytes without a symbol: train with initial_alphabet"),
    "a token after every text": (("",), "a model would begin a new text: remove it from the post_processor"),
} | {
    f"model.{key}": ((None,), f"GPT-2's tokenizer does not have it: set it to null; {ADAPTERS}")
    for key in (
        "dropout", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
    )
}  # fmt: skip


def find_form(forms, names):
    """(Form, its files) of the first form that these names of files have: those that are read come first."""
    for form in (*forms, Form((), "", "")):
        files = [matching(pattern, names) for pattern in form.patterns]
        if all(files):
            return form, files


def matching(pattern, names):
    """The name that fits a pattern, or None; of several the longest, and then the largest, such as model-2000.index."""
    return max((n for n in names if fnmatchcase(n, pattern)), key=lambda name: (len(name), name), default=None)


def about_tensor(name, table=TENSORS):
    """The sentence about a tensor of this name, or None."""
    return next((text for patterns, text in table.items() if any(fnmatchcase(name, p) for p in patterns)), None)


def files_read(names):
    """Of the names of all files in a folder or a repository, those that are read: what a download fetches.

    >>> files_read(["README.md", "config.json", "model.safetensors", "pytorch_model.bin", "vocab.json", "merges.txt"])
    ['config.json', 'model.safetensors', 'vocab.json', 'merges.txt']
    """
    forms = [find_form(forms, names) for forms in (WEIGHTS, TOKENIZERS)]
    files = [file for form, files in forms for file in files if form.layout]
    if "model.safetensors.index.json" in files:
        files += sorted(name for name in names if fnmatchcase(name, "*-of-*.safetensors"))
    return files + [name for name in BESIDE if name in names]
