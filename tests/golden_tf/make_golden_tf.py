"""Writes two small checkpoints with TensorFlow itself.

    python -m pip install tensorflow-cpu==2.21.0 safetensors
    python tests/golden_tf/make_golden_tf.py

It wrote, with these versions and Python 3.11: model/ (the model of tests/golden in OpenAI's layout, its variables under
OpenAI's names and shapes) and many/ (an index of more than one data block, several types, two data files).
"""

import json
import shutil
from pathlib import Path

import many
import safetensors.numpy
import tensorflow as tf

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden"


def openai_name(name):
    """model/h0/attn/c_attn/w for transformer.h.0.attn.c_attn.weight"""
    *path, leaf = name.removeprefix("transformer.").split(".")
    if path[0] == "h":
        path[:2] = [f"h{path[1]}"]
    if path in (["wte"], ["wpe"]):
        return f"model/{path[0]}"
    leaf = "b" if leaf == "bias" else "g" if path[-1].startswith("ln_") else "w"
    return "/".join(["model", *path, leaf])


def write_model(folder):
    """As the OpenAI release: tf.compat.v1.train.Saver, and convolution weights of shape [1, n_in, n_out]."""
    config = json.loads((GOLDEN / "config.json").read_text("utf-8"))
    tensors = safetensors.numpy.load_file(GOLDEN / "model.safetensors")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, tensor in tensors.items():
            name = openai_name(name)
            tensor = tensor[None] if name.endswith("/w") else tensor
            tf.compat.v1.get_variable(name, initializer=tensor, use_resource=False)
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(save_relative_paths=True).save(
            session, str(folder / "model.ckpt"), write_meta_graph=False
        )
    hparams = {"n_vocab": config["vocab_size"], "n_ctx": config["n_positions"]}
    hparams |= {name: config[name] for name in ("n_embd", "n_head", "n_layer")}
    (folder / "hparams.json").write_text(json.dumps(hparams))


def write_many(folder):
    """In two data files."""
    names, values = zip(*many.tensors().items(), ("brain", tf.constant(many.BFLOAT16, tf.bfloat16)))
    parts = [str(folder / "part0"), str(folder / "part1")]
    for i, part in enumerate(parts):
        some = [tf.constant(value) for value in values[i::2]]
        tf.raw_ops.SaveV2(prefix=part, tensor_names=names[i::2], shape_and_slices=[""] * len(some), tensors=some)
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=parts, destination_prefix=str(folder / "many"), delete_old_dirs=False
    )


def main():
    for name, write in (("model", write_model), ("many", write_many)):
        shutil.rmtree(HERE / name, ignore_errors=True)
        (HERE / name).mkdir()
        write(HERE / name)


if __name__ == "__main__":
    main()
