"""Models of transformers with random weights, for the group `peers`."""

import pytest


def peer(test):
    return pytest.mark.peers(pytest.mark.filterwarnings("default")(test))


SHAPE = {"vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
LLAMA = SHAPE | {"intermediate_size": 40, "num_key_value_heads": 2, "max_position_embeddings": 128}
MIXED = LLAMA | {"head_dim": 6, "layer_types": ["linear_attention", "full_attention"]}
SHAPES = {
    "Llama": LLAMA,
    "Qwen3": LLAMA | {"head_dim": 6},
    "Mistral": LLAMA | {"sliding_window": 9},
    "Mamba": SHAPE | {"state_size": 4, "tie_word_embeddings": False},
    "Qwen3Next": MIXED
    | dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 4)
    | dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 2)
    | dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 8)
    | {"num_experts": 4, "num_experts_per_tok": 2},
    "Bamba": LLAMA
    | {"attn_layer_indices": [1], "mamba_n_heads": 6, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_chunk_size": 4},
    "MiniMax": MIXED | {"num_local_experts": 2, "num_experts_per_tok": 1, "block_size": 4},
    "GPT2": {"vocab_size": 61, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 128},
}


def random_model(name, seed=0, **changes):
    """A model of transformers with random weights, large enough that its text does not repeat one token."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config = getattr(transformers, f"{name}Config")(
        **SHAPES.get(name, {}) | changes, bos_token_id=None, eos_token_id=None
    )
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.3)
    return model
