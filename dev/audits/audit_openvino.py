"""openvino-genai with a draft model: do_sample with top_k 1, and the audit: python dev/audits/audit_openvino.py [N]

Needs openvino-genai (pip install openvino openvino-genai openvino-tokenizers transformers). The bundled pair becomes
OpenVINO models, whose logits are compared with NumPy's. With top_k 1 only the greedy text is possible; with a draft
model, 2026.4.1 returns a different one. Then N texts of three tokens with top_k 3 are compared with the target's
probabilities. The last line is what the rule would give as its source reads (the museum's "the ratio of a different
token"), for the first two tokens, so the release has more of it, or something else as well.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import openvino as ov
import openvino_genai as genai
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo
from openvino_tokenizers import convert_tokenizer
from transformers import AutoTokenizer

import gpt2np
from gpt2np.files.safetensors import read_safetensors
from speculative import Draft, Sampling, exact_distribution
from speculative.logits.probs import sample_token
from speculative.testing import audit_samples
from speculative.testing.museum import EXHIBITS

F32 = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "INFERENCE_NUM_THREADS": 1}
PROMPT = "Once upon a time"


def constant(value, dtype=np.float32):
    return op.constant(np.array(value, dtype))


def ints(*values):
    return constant(values, np.int64)


def converted(folder, hparams):
    """A GPT-2 with its KV cache as state, as LLMPipeline expects it."""
    h, assigns = hparams, []
    weights = {
        name.removeprefix("transformer."): w for name, w in read_safetensors(folder / "model.safetensors").items()
    }
    ids, mask, positions = (op.parameter([-1, -1], np.int64, name=name) for name in
                            ("input_ids", "attention_mask", "position_ids"))  # fmt: skip
    beam = op.parameter([-1], np.int32, name="beam_idx")
    for each in (ids, mask, positions, beam):
        each.output(0).set_names({each.friendly_name})

    def weight(name):
        return constant(weights[name])

    def norm(x, name):
        x = op.mvn(x, ints(-1), True, 1e-5, "inside_sqrt")
        return op.add(op.multiply(x, weight(f"{name}.weight")), weight(f"{name}.bias"))

    def linear(x, name):
        return op.add(op.matmul(x, weight(f"{name}.weight"), False, False), weight(f"{name}.bias"))

    def heads(x):
        return op.transpose(op.reshape(x, ints(0, 0, h.n_head, h.n_embd // h.n_head), True), ints(0, 2, 1, 3))

    def cached(new, name):
        info = VariableInfo()
        info.data_shape = ov.PartialShape([-1, h.n_head, -1, h.n_embd // h.n_head])
        info.data_type, info.variable_id = ov.Type.f32, f"past_key_values.{name}present.{name}"
        variable, batch = Variable(info), op.gather(op.shape_of(ids, "i64"), ints(0), constant(0, np.int32))
        empty = op.broadcast(constant(0.0), op.concat([batch, ints(h.n_head, 0, h.n_embd // h.n_head)], 0))
        both = op.concat([op.gather(op.read_value(empty, variable), beam, constant(0, np.int32)), new], 2)
        assigns.append(op.assign(both, variable))
        return both

    def counted(tensor):  # the number of its columns
        return op.squeeze(op.gather(op.shape_of(tensor, "i64"), ints(1), constant(0, np.int32)), ints(0))

    def span(first, end):
        return op.range(first, end, constant(1, np.int64), "i64")

    zero, n_new, n_all = constant(0, np.int64), counted(ids), counted(mask)
    columns = op.unsqueeze(span(zero, n_all), zero)
    rows = op.unsqueeze(span(op.subtract(n_all, n_new), n_all), constant(1, np.int64))
    padded = op.unsqueeze(op.unsqueeze(op.not_equal(mask, zero), ints(1)), ints(1))
    visible = op.logical_and(op.unsqueeze(op.unsqueeze(op.less_equal(columns, rows), zero), zero), padded)
    bias = op.select(visible, constant(0.0), constant(-65504.0))
    x = op.add(op.gather(weight("wte.weight"), ids, constant(0, np.int32)),
               op.gather(weight("wpe.weight"), positions, constant(0, np.int32)))  # fmt: skip
    for i in range(h.n_layer):
        q, k, v = map(
            heads, op.split(linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn"), constant(-1, np.int64), 3).outputs()
        )
        attended = op.scaled_dot_product_attention(q, cached(k, f"{i}.key"), cached(v, f"{i}.value"), bias)
        attended = op.reshape(op.transpose(attended, ints(0, 2, 1, 3)), ints(0, 0, h.n_embd), True)
        x = op.add(x, linear(attended, f"h.{i}.attn.c_proj"))
        x = op.add(x, linear(op.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), "tanh"), f"h.{i}.mlp.c_proj"))
    logits = op.matmul(norm(x, "ln_f"), weight("wte.weight"), False, True)
    logits.output(0).set_names({"logits"})
    return ov.Model([op.result(logits)], assigns, [ids, mask, positions, beam], "gpt2")


def write(name, folder):
    """The model of a name, and its tokenizers, in a folder; prints how far its logits are from NumPy's."""
    source, (model, tokenizer) = Path(gpt2np.__file__).parent / "tiny" / name, gpt2np.load(name)
    gpt2np.save(model, tokenizer, folder)
    made = converted(source, model.hparams)
    ov.save_model(made, folder / "openvino_model.xml", compress_to_fp16=False)
    of_text, of_tokens = convert_tokenizer(AutoTokenizer.from_pretrained(folder), with_detokenizer=True)
    ov.save_model(of_text, folder / "openvino_tokenizer.xml")
    ov.save_model(of_tokens, folder / "openvino_detokenizer.xml")
    ids = np.array([[5, 6, 7, 8]])
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(4)[None]}
    request = ov.Core().compile_model(made, "CPU", F32).create_infer_request()
    logits = request.infer({**inputs, "beam_idx": np.zeros(1, np.int32)})[0][0]
    print(f"{name}: logits {abs(logits - model(ids[0], 4)).max():.1e} from NumPy's at most")


def pipeline(folder, draft):
    scheduler = genai.SchedulerConfig()
    scheduler.cache_size, scheduler.enable_prefix_caching = 1, False
    more = {"draft_model": genai.draft_model(str(folder / "tiny-draft"), "CPU", **F32)} if draft else {}
    return genai.LLMPipeline(str(folder / "tiny-target"), "CPU", scheduler_config=scheduler, **more, **F32)


def setting(n_tokens, draft, **values):
    config = genai.GenerationConfig()
    values |= {"max_new_tokens": n_tokens, "ignore_eos": True} | ({"num_assistant_tokens": 3} if draft else {})
    for name, value in values.items():
        setattr(config, name, value)
    return config


def drawn(pipe, prompt, draft):
    seeds = iter(range(10**6))

    def draw(n):
        texts = []
        for _ in range(n):
            config = setting(3, draft, do_sample=True, temperature=1.0, top_k=3, rng_seed=next(seeds))
            inputs = genai.TokenizedInputs(
                ov.Tensor(np.array([prompt])), ov.Tensor(np.ones((1, len(prompt)), np.int64))
            )
            texts.append([int(token) for token in pipe.generate(inputs, config).tokens[0]])
        return texts

    return draw


def predicted(target, draft, prompt):
    """The total variation of the first two tokens with the museum's rule; the first one is not drafted."""
    sampling, rule, distance = Sampling(top_k=3), EXHIBITS["the ratio of a different token"].wrong, 0.0
    for first, share in enumerate(sampling(target(prompt))[0]):
        if share > 0:
            row, q = sampling(target([*prompt, first]))[0], sampling(draft([*prompt, first]))[0]

            def second(rng, first=first, row=row, q=q):
                token = sample_token(q, rng)
                rows = np.array([row, sampling(target([*prompt, first, token]))[0]])
                verdict = rule(Draft(np.array([token]), q[None]), rows, rng)
                return token if verdict.n_accepted else verdict.next_token

            found = exact_distribution(second)
            distance += share * sum(abs(found.get(x, 0) - p) for x, p in enumerate(row)) / 2
    return distance


def main(n_max):
    print("openvino-genai", genai.__version__)
    model, tokenizer = gpt2np.load("tiny-target")
    prompt, rows, texts = tokenizer.encode(PROMPT), {}, [()]
    for _ in range(3):
        for text in texts:
            row = Sampling(top_k=3)(model([*prompt, *text]))[0]
            rows[text] = {int(token): float(row[token]) for token in np.flatnonzero(row)} | {"(any other)": 1e-6}
        texts = [(*text, token) for text in texts for token in rows[text] if token != "(any other)"]
    rule = predicted(model, gpt2np.load("tiny-draft")[0], prompt)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name in ("tiny-target", "tiny-draft"):
            write(name, folder / name)
        for draft in (False, True):
            pipe = pipeline(folder, draft)
            print("with a draft model" if draft else "without a draft")
            for about, values in {"greedy": {}, "do_sample, top_k 1": {"do_sample": True, "top_k": 1}}.items():
                print(f"    {about:18} {pipe.generate(PROMPT, setting(16, draft, **values))!r}")
            audit = audit_samples(drawn(pipe, prompt, draft), 3, rows=rows, n_max=n_max)
            *_, (_, _, _, least, most) = audit.bounds()
            said = f"DIFFERENT, {audit.winner}" if audit.differs else "no difference found"
            print(
                f"    top_k 3, {audit.n} texts: {said}; total variation {least:.2f} at least, {most:.2f} at most",
                flush=True,
            )
    print(f"the rule as its source reads: total variation {rule:.2f} of the first two tokens")


main(int([*sys.argv[1:], 2048][0]))
