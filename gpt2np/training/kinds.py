"""The kinds of drafter for a target: EAGLE's block, a parallel block, Hydra's or Medusa's heads, a smaller GPT-2.

A kind defines parameters, under the names in its file, and predictions. The target's states along a text are known,
and so is the target's distribution at each position. A kind learns that distribution, because it decides which draft
tokens are accepted. The author's next word may be a token that the target would not choose. loop.py does the rest.
Sources: Li et al. (EAGLE), arXiv:2401.15077, section 4.2, with layer-normed states and no noise on them; Ankner et al.
(Hydra), arXiv:2402.05109, section 3; Cai et al. (Medusa), arXiv:2401.10774, section 2.2; DFlash, arXiv:2602.06036, and
DSpark, arXiv:2607.05147, for the parallel block; Zhou et al. (DistillSpec), arXiv:2310.08461, for the draft.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from ..files.params import param_shapes
from ..model import HParams
from .network import DEVICE, Network, block, normed


class Kind:
    """`predictions(tokens [n_texts, n + 1], hidden [n_texts, n, n_embd], rows)` -> (logits by depth, further losses).

    `rows` are the positions of the target's states whose distributions are predicted (see the method `rows`). The
    logits of depth j [n_texts, .., n_vocab] are for the positions that `of_depth(j)` selects.
    """

    file, prefix = "heads.safetensors", ""  # and how the names of its tensors begin, if others are in the file
    weights = (1.0,)  # for each depth, the weight of the loss on distributions
    rate, decay = 0.02, 0.0  # learning rate and weight decay of the matrices
    mixes = False  # whether the loss moves from KL to the rejection rate during training
    n_slots = 1  # the number of rows that belong together
    first = 0  # the first position that can be predicted

    def __init__(self, target, shape=None, eagle=None):
        """`shape` is for a draft; `eagle` has the tensors of an EAGLE block, from which a parallel block starts."""
        self.target = target
        self.hparams = target.hparams
        self.shape = shape
        self.eagle = eagle
        self.params = {name: p.to(DEVICE).requires_grad_() for name, p in self.new(self.hparams.n_embd).items()}

    @property
    def n_params(self):
        return sum(p.numel() for p in self.params.values())

    def rows(self, n, begin, step):
        """Every step-th of n positions."""
        return torch.arange(max(begin, self.first), n, step)

    def of_depth(self, j):
        return slice(None)

    def by_muon(self, name):
        """Whether Muon updates this matrix: not if it is a table whose rows are looked up."""
        return self.params[name].ndim == 2 and name.split(".")[0] not in ("wte", "wpe", "mask", "markov")

    def tensors(self, accepted, counts):
        """The tensors of the drafter's file, given the shares of ranks (loop.py) and the token counts of the text."""
        return {name: p.detach().cpu().numpy().astype(np.float16) for name, p in self.params.items()}


class EagleBlock(Kind):
    """See gpt2np/drafting/eagle.py. It learns states as well as distributions, to continue from predicted states.

    These stay close to the states in training, and the fourth draft token is right nearly as often as the first.
    """

    file, weights = "eagle.safetensors", (0.1,)

    def new(self, n):
        of_block = {name: shape for name, shape in param_shapes(HParams(1, 1, n, 1, 1)).items() if name[:2] == "h."}
        params = {"input.weight": torch.cat([torch.eye(n), 0.02 * torch.randn(n, n)]), "input.bias": torch.zeros(n)}
        return params | fresh(of_block, out=0)  # so at the start it returns the state that it is given

    def pairs(self, before, embeddings):
        pair = torch.cat([before, normed(embeddings)], -1)
        return pair @ self.params["input.weight"] + self.params["input.bias"]

    def predictions(self, tokens, hidden, rows):
        n = hidden.shape[1]
        wte, wpe = self.target.embeddings(n)
        before = F.pad(hidden[:, :-1], (0, 0, 1, 0))  # the state of the token before; zeros for the first token
        pairs = self.pairs(before, wte[tokens[:, :n]] + wpe)
        predicted = normed(block(pairs, self.params, "h.0", self.hparams.n_head))  # [n_texts, n, n_embd]
        return [self.target.logits(predicted[:, rows])], [F.smooth_l1_loss(predicted, hidden)]

    def tensors(self, accepted, counts):
        return super().tensors(accepted, counts) | {"frequent": np.argsort(-counts, kind="stable")}


class ParallelBlock(EagleBlock):
    """See gpt2np/drafting/parallel.py. Slots follow each anchor, and attend to the text before it and to earlier slots.

    Each slot learns the target's distribution of its token. Earlier slots get more weight, since a token counts only if
    all tokens before it were accepted. The table sees the previous token of the text. Training starts from an EAGLE
    block, if the target has one, so that the first slot is right at once.
    """

    file = "parallel.safetensors"
    n_slots = 8
    first = 1
    rank = 32
    weights = tuple(np.exp(-np.arange(8) / 3) / np.exp(-np.arange(8) / 3).sum())

    def new(self, n):
        params = super().new(n)
        if self.eagle:
            params = {name: torch.from_numpy(np.array(self.eagle[name], np.float32)) for name in params}
            self.rate = 0.008
        wte = self.target.params["wte.weight"].cpu()
        params["mask"] = wte.mean(0) + 0.02 * torch.randn(self.n_slots - 1, n)
        table = {"markov.w1": 0.1 * torch.randn(len(wte), self.rank), "markov.w2": torch.zeros(self.rank, len(wte))}
        return params | table

    def rows(self, n, begin, step):
        """The rows of the slots [n_anchors * n_slots]; the spacing of the anchors makes n / step rows in all."""
        anchors = torch.arange(max(begin, self.first), n + 1 - self.n_slots, step * self.n_slots)
        return (anchors[:, None] + torch.arange(self.n_slots)).flatten()

    def of_depth(self, j):
        return slice(j, None, self.n_slots)

    def predictions(self, tokens, hidden, rows):
        n_texts, n, _ = hidden.shape
        wte, wpe = self.target.embeddings(n)
        before = F.pad(hidden[:, :-1], (0, 0, 1, 0))  # [n_texts, n, n_embd]: the states of the tokens before
        slots = rows.view(-1, self.n_slots)  # [n_anchors, n_slots]: the positions of each anchor's slots
        anchors = slots[:, :1]  # [n_anchors, 1]

        # The first slot of an anchor is the anchor's own pair. The others pair a mask with the state before the anchor.
        context = self.pairs(before, wte[tokens[:, :n]] + wpe)  # -> [n_texts, n, n_embd]
        masks = self.params["mask"] + wpe[slots[:, 1:]]  # [n_slots - 1, n_embd] -> [n_anchors, n_slots - 1, n_embd]
        masks = masks.expand(n_texts, -1, -1, -1)  # -> [n_texts, n_anchors, n_slots - 1, n_embd]
        masked = self.pairs(before[:, anchors].expand_as(masks), masks)  # of the same shape
        x = torch.cat([context[:, anchors], masked], 2)  # -> [n_texts, n_anchors, n_slots, n_embd]
        x = x.flatten(1, 2)  # -> [n_texts, n_rows, n_embd], n_rows = n_anchors * n_slots

        # A slot attends to the text before its anchor, to earlier slots of the anchor, and to itself.
        i = torch.arange(len(rows))
        same_anchor = i[:, None] // self.n_slots == i // self.n_slots  # [n_rows, n_rows]
        earlier_slots = same_anchor & (i <= i[:, None])
        earlier_text = torch.arange(n) < anchors.repeat_interleave(self.n_slots, 0)  # [n_rows, n]
        seen = torch.cat([earlier_text, earlier_slots], 1).to(DEVICE)  # -> [n_rows, n + n_rows]

        states = normed(block(x, self.params, "h.0", self.hparams.n_head, context, seen))  # [n_texts, n_rows, n_embd]
        by_depth = [self.target.logits(states[:, self.of_depth(j)]) for j in range(self.n_slots)]
        for j in range(1, self.n_slots):  # the table's term, from the token before: [n_texts, n_anchors, n_vocab]
            by_depth[j] = by_depth[j] + self.params["markov.w1"][tokens[:, slots[:, j]]] @ self.params["markov.w2"]
        return by_depth, []


class Heads(Kind):
    """Hydra's heads, see gpt2np/drafting/heads.py. A new head returns the hidden state unchanged."""

    prefix = "hydra"
    weights = (1.0,) * 3
    first = 3

    def new(self, n):
        heads = [self.head(i, n) for i in range(1, len(self.weights) + 1)]
        return {f"{self.prefix}.{i}.{part}": p for i, head in enumerate(heads, 1) for part, p in head.items()}

    @staticmethod
    def head(i, n):
        return {"a": torch.eye((i + 1) * n, n), "w": 0.02 * torch.randn((i + 1) * n, n)}

    def replaced(self, i, h, embeddings):
        """y [.., n_embd], which replaces h, from the embeddings of the i tokens that follow."""
        a, w = (self.params[f"{self.prefix}.{i}.{part}"] for part in "aw")
        x = torch.cat([h, *embeddings], -1)
        return x @ a + F.silu(x @ w)

    def predictions(self, tokens, hidden, rows):
        wte, _ = self.target.embeddings(0)
        e = wte[tokens] / wte.std()
        by_depth = []
        for i in range(1, len(self.weights) + 1):
            embeddings = [e[:, rows - i + j] for j in range(1, i + 1)]
            by_depth.append(self.target.logits(self.replaced(i, hidden[:, rows - i], embeddings)))
        return by_depth, []

    def tensors(self, accepted, counts):
        shares = {f"{self.prefix}.{i}.accepted": np.float16(share) for i, share in enumerate(accepted, 1)}
        return self.unscaled(super().tensors(accepted, counts)) | shares

    def unscaled(self, tensors):
        """The tensors with the scale that embeddings have in training moved into the weights."""
        n, std = self.hparams.n_embd, np.float16(self.target.embeddings(0)[0].std().item())
        return {name: np.concatenate([w[:n], w[n:] / std]) for name, w in tensors.items()}


class Medusa(Heads):
    """Heads that see only the hidden state."""

    prefix = "medusa"

    @staticmethod
    def head(i, n):
        return {"w": torch.zeros(n, n), "b": torch.zeros(n)}

    def replaced(self, i, h, embeddings):
        w, b = (self.params[f"{self.prefix}.{i}.{part}"] for part in "wb")
        return h + F.silu(h @ w + b)

    def unscaled(self, tensors):
        return tensors


class Draft(Kind):
    """A GPT-2 of a different shape. If it is as wide as the target, it starts from some of the target's blocks."""

    file = "model.safetensors"
    decay = 0.1
    mixes = True

    def new(self, n_target):
        n_layer, n_embd, n_head = self.shape
        self.draft_hparams = HParams(self.hparams.n_vocab, self.hparams.n_ctx, n_embd, n_head, n_layer)
        params = fresh(param_shapes(self.draft_hparams), out=0.02 / math.sqrt(2 * n_layer))
        if n_embd == n_target and n_layer <= self.hparams.n_layer:  # the first, the last and some between
            kept = np.linspace(0, self.hparams.n_layer - 1, n_layer).round().astype(int)
            given = {f"h.{i}.": f"h.{j}." for i, j in enumerate(kept)}
            for name in params:
                block = name[: name.find(".", 2) + 1] if name[:2] == "h." else ""
                params[name] = self.target.params[given.get(block, "") + name.removeprefix(block)].clone()
        return params

    def predictions(self, tokens, hidden, rows):
        draft = Network(self.params, self.draft_hparams)
        return [draft.logits(draft.states(tokens[:, :-1])[:, rows])], []


def fresh(shapes, out):
    """New parameters of a GPT-2. Matrices that add to the residual stream have standard deviation `out`."""
    params = {name: torch.full(shape, float(name.endswith("weight"))) for name, shape in shapes.items()}
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    return params | {n: (out if "c_proj" in n else 0.02) * torch.randn(shapes[n]) for n in matrices}


KINDS = {"eagle": EagleBlock, "parallel": ParallelBlock, "heads": Heads, "medusa": Medusa, "draft": Draft}
