"""The bundled pair as GGUF files, for llama.cpp: python dev/bench/make_gguf.py LLAMA_CPP OUT [FOLDER ...]

LLAMA_CPP is a checkout of https://github.com/ggml-org/llama.cpp, whose convert_hf_to_gguf.py does the work; it needs
torch and transformers. It asks two things of a GPT-2: `n_ctx` in config.json, which the bundled pair has, and a
tokenizer that it recognizes by what it makes of a test text. A vocabulary of 2048 tokens is not on its list; it cuts a
text into words as GPT-2's does, and this script says so. FOLDERs are other GPT-2s with this tokenizer, such as those of
dev/train/grow_pair.py. The weights are stored in float32.
"""

import runpy
import sys
from pathlib import Path

BUNDLED = Path(__file__).parents[2] / "gpt2np" / "tiny"


def convert(llama_cpp, out, folders):
    sys.path[:0] = [str(llama_cpp), str(llama_cpp / "gguf-py")]
    from conversion.base import TextModel

    TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        sys.argv = ["convert", "--outtype", "f32", "--outfile", str(out / f"{folder.name}.gguf"), str(folder)]
        runpy.run_path(str(llama_cpp / "convert_hf_to_gguf.py"), run_name="__main__")


if __name__ == "__main__":
    if len(sys.argv) < 3 or not Path(sys.argv[1], "convert_hf_to_gguf.py").exists():
        raise SystemExit(f"{__doc__.splitlines()[0]}\nLLAMA_CPP must be a folder with convert_hf_to_gguf.py")
    folders = [Path(name) for name in sys.argv[3:]] or [BUNDLED / "tiny-target", BUNDLED / "tiny-draft"]
    convert(Path(sys.argv[1]), Path(sys.argv[2]), folders)
