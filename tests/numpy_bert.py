"""BERT's pretraining loss in float64 numpy, written from the papers' formulas."""

import numpy as np


def _norm(x, weights, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return scaled * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def _dense(x, weights, name):
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def _gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _attention(x, weights, name, heads, mask):
    rows, length, width = x.shape
    query, key, value = (
        _dense(x, weights, f"{name}/{part}").reshape(rows, length, heads, -1).transpose(0, 2, 1, 3)
        for part in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(width // heads)
    scores = np.where(mask[:, None, None, :], scores, -np.inf)
    probabilities = np.exp(scores - scores.max(-1, keepdims=True))
    probabilities /= probabilities.sum(-1, keepdims=True)
    context = (probabilities @ value).transpose(0, 2, 1, 3).reshape(rows, length, width)
    return _dense(context, weights, f"{name}/output_projection")


def sequence_output(weights, x, layers, heads):
    """The last hidden vectors `[b, q, w]`; weights by path below the backbone."""
    length = x["token_ids"].shape[1]
    hidden = weights["embeddings/token/embeddings"][x["token_ids"]]
    hidden = hidden + weights["embeddings/segment/embeddings"][x["segment_ids"]]
    hidden = hidden + weights["embeddings/position/embeddings"][:length]
    hidden = _norm(hidden, weights, "embeddings/norm")
    for i in range(layers):
        name = f"block_{i}"
        attended = _attention(hidden, weights, f"{name}/attention", heads, x["padding_mask"])
        hidden = _norm(hidden + attended, weights, f"{name}/attention_norm")
        inner = _gelu(_dense(hidden, weights, f"{name}/feed_forward/intermediate"))
        inner = _dense(inner, weights, f"{name}/feed_forward/output_projection")
        hidden = _norm(hidden + inner, weights, f"{name}/output_norm")
    return hidden


def pretraining_loss(weights, batch, layers, heads):
    """Masked-LM loss per predicted token plus next-sentence loss per row."""
    x, y, w = batch
    hidden = sequence_output(weights, x, layers, heads)
    picked = np.take_along_axis(hidden, x["mask_positions"][..., None], 1)
    features = _gelu(_dense(picked, weights, "masked_lm_head/dense"))
    features = _norm(features, weights, "masked_lm_head/norm")
    logits = features @ weights["embeddings/token/embeddings"].T + weights["masked_lm_head/bias"]
    pooled = np.tanh(_dense(hidden[:, 0], weights, "pooler/dense"))
    sentence = _dense(pooled, weights, "next_sentence_head")
    losses = _cross_entropy(logits, y["masked_lm"]) * w["masked_lm"]
    next_sentence = _cross_entropy(sentence, y["next_sentence"])
    return losses.sum() / w["masked_lm"].sum() + next_sentence.mean()


def _cross_entropy(logits, labels):
    log_sum = np.log(np.exp(logits).sum(-1))
    return log_sum - np.take_along_axis(logits, labels[..., None], -1)[..., 0]
