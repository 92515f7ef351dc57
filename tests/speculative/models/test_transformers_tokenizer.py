"""Tokenizers of transformers: bytes and ids; a Llama with a draft of GPT-2's kind, against transformers' own."""

import pytest
from random_transformers import peer, random_model

from speculative import ModelDrafter, Sampling, SharedTokensModel, SpeculativeSampler, TextDrafter
from speculative.models import TransformersModel, TransformersTokenizer
from speculative.models.shared_tokens import Translation

TEXT = "the king and the queen went to the forest, and there the old king saw a café; then the queen said: no! " * 9
OTHER = "def the_king(queen): return forest[queen].said and went  # there is no café in an old forest\n" * 9


def trained(text, kind, n_vocab):
    """A tokenizer learned from a text: "bytes", of GPT-2's kind, or "pieces", of SentencePiece's."""
    tokenizers, transformers = pytest.importorskip("tokenizers"), pytest.importorskip("transformers")
    if kind == "bytes":
        bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
        bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        bpe.decoder = tokenizers.decoders.ByteLevel()
        first, special = tokenizers.pre_tokenizers.ByteLevel.alphabet(), ["<|endoftext|>"]
        names = {"eos_token": special[0]}
    else:
        bpe = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>"))
        norms = tokenizers.normalizers
        bpe.normalizer = norms.Sequence([norms.Prepend("▁"), norms.Replace(" ", "▁")])
        steps = tokenizers.decoders
        bpe.decoder = steps.Sequence(
            [steps.Replace("▁", " "), steps.ByteFallback(), steps.Fuse(), steps.Strip(" ", 1, 0)]
        )
        first, special = ["▁"], ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
        names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=n_vocab, initial_alphabet=first, special_tokens=special)
    bpe.train_from_iterator(text.splitlines() if kind == "bytes" else text.split(), trainer)
    if kind == "pieces":
        bpe.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", None, [("<s>", bpe.token_to_id("<s>"))])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, **names)


def pair(kind):
    """(tokenizer of the target, of the draft): the draft's is of GPT-2's kind."""
    return trained(TEXT, kind, 300 if kind == "bytes" else 310), trained(OTHER, "bytes", 290)


@peer
@pytest.mark.parametrize("kind", ["bytes", "pieces"])
@pytest.mark.parametrize("text", ["the king", " the king", "king", "\n\n  a", "é 😀\x00", "<|endoftext|></s>", ""])
def test_tokens_have_the_bytes_of_the_text(kind, text):
    tokenizer = TransformersTokenizer(pair(kind)[0])
    assert b"".join(map(tokenizer.bytes_of, tokenizer.encode(text))) == text.encode()
    assert tokenizer.bytes_of(tokenizer.end_of_text) == b""


@peer
def test_what_comes_before_a_text_is_there_once_and_only_for_the_draft():
    of_draft, of_target = map(TransformersTokenizer, pair("pieces"))
    to_draft, to_target = Translation(of_target, of_draft), Translation(of_draft, of_target)
    text = of_target.encode("the king")
    assert of_draft.start == [1] and to_draft(text)[:1] == [1] and to_draft(text).count(1) == 1
    assert 1 not in to_draft(text, is_whole=False) and to_target([1, *of_draft.encode("the king")]) == text


@peer
@pytest.mark.parametrize("kind", ["bytes", "pieces"])
def test_a_llama_with_a_draft_of_gpt2s_kind(kind):
    """Its own greedy text in every way, and as transformers continues it with the same two models."""
    torch = pytest.importorskip("torch")
    tokenizers = pair(kind)
    of_target, of_draft = map(TransformersTokenizer, tokenizers)
    models = [
        random_model(name, i, vocab_size=len(t)) for i, (name, t) in enumerate(zip(("Llama", "GPT2"), tokenizers))
    ]
    target, draft = map(TransformersModel, models)
    prompt, greedy = of_target.encode("the king and the", special=True), Sampling(0)
    shared = SharedTokensModel(draft, of_target, of_draft)
    options = {"max_new_tokens": 30, "min_new_tokens": 30, "do_sample": False, "pad_token_id": 0}
    ids = torch.tensor([prompt])
    options["attention_mask"] = torch.ones_like(ids)
    own = models[0].generate(ids, **options)[0, len(prompt) :].tolist()
    universal = {"assistant_model": models[1], "tokenizer": tokenizers[0], "assistant_tokenizer": tokenizers[1]}
    assert models[0].generate(ids, **options, **universal)[0, len(prompt) :].tolist() == own
    for drafter in (ModelDrafter(shared), TextDrafter(ModelDrafter(draft), of_target, of_draft)):
        found = SpeculativeSampler(target, drafter, K=3, sampling=greedy).generate(prompt, 30)
        assert found.tokens.tolist() == own and found.stats.drafted > 0
