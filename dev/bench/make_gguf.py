"""GPT-2s as GGUF files in float32, for llama.cpp: python dev/bench/make_gguf.py OUT [FOLDER ...]

FOLDERs are in the layout of Hugging Face, such as those of dev/train/grow_pair.py; without one, the bundled pair. Needs
the package gguf. llama.cpp cuts a text into words by a rule that it looks up by name: these vocabularies have GPT-2's.
"""

import sys
from pathlib import Path

import gguf
import numpy as np

import gpt2np
from gpt2np.files.safetensors import read_safetensors

BUNDLED = Path(gpt2np.__file__).parent / "tiny"
NAMES = {  # of GPT-2's layers, here and in GGUF
    "ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}  # fmt: skip


def convert(folder, path):
    """Write the model of a folder, and its tokenizer."""
    model, tokenizer = gpt2np.load(folder)
    hparams, writer = model.hparams, gguf.GGUFWriter(str(path), "gpt2")
    writer.add_block_count(hparams.n_layer)
    writer.add_context_length(hparams.n_ctx)
    writer.add_embedding_length(hparams.n_embd)
    writer.add_feed_forward_length(4 * hparams.n_embd)
    writer.add_head_count(hparams.n_head)
    writer.add_layer_norm_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    add_tokenizer(writer, tokenizer, hparams.n_vocab)
    tensors = {
        name.removeprefix("transformer."): w for name, w in read_safetensors(folder / "model.safetensors").items()
    }
    for name, w in tensors.items():
        if new := name_of(name):
            w = w.T if w.ndim == 2 and not name.startswith("w") else w  # [n_in, n_out] -> [n_out, n_in]
            writer.add_tensor(new, np.ascontiguousarray(w, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer, tokenizer, n_vocab):
    symbols = {token: symbol for symbol, token in tokenizer.vocabulary.items()}
    tokens = [symbols.get(token, f"[PAD{token}]") for token in range(n_vocab)]
    kinds = dict.fromkeys(range(n_vocab), gguf.TokenType.UNUSED) | dict.fromkeys(symbols, gguf.TokenType.NORMAL)
    if tokenizer.end_of_text is not None:
        kinds[tokenizer.end_of_text] = gguf.TokenType.CONTROL
        writer.add_bos_token_id(tokenizer.end_of_text)
        writer.add_eos_token_id(tokenizer.end_of_text)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds[token] for token in range(n_vocab)])
    writer.add_token_merges([" ".join(pair) for pair in sorted(tokenizer.ranks, key=tokenizer.ranks.get)])
    writer.add_add_bos_token(False)


def name_of(name):
    """The name of a tensor in GGUF; "" if it is not a parameter.

    >>> name_of("h.3.attn.c_attn.weight"), name_of("wte.weight"), name_of("h.0.attn.bias")
    ('blk.3.attn_qkv.weight', 'token_embd.weight', '')
    """
    layer, _, kind = name.rpartition(".")
    if layer.startswith("h."):
        _, i, part = layer.split(".", 2)
        return f"blk.{i}.{NAMES[part]}.{kind}" if part in NAMES else ""
    known = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm"}
    return f"{known[layer]}.{kind}" if layer in known else ""


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for folder in [Path(name) for name in sys.argv[2:]] or [BUNDLED / "tiny-target", BUNDLED / "tiny-draft"]:
        convert(folder, out / f"{folder.name}.gguf")
        print(out / f"{folder.name}.gguf")
