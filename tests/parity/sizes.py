"""The small configurations of `transformers` that the parity tests of heads and files share."""

# float32 matrix products in another order; activations of size 1 after each LayerNorm.
TOLERANCE = 2e-5
ENCODER = {
    "vocab_size": 43,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 12,
}
V1 = {
    **ENCODER,
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["p2c", "c2p"],
}
V2 = {**V1, "position_buckets": 4, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
GPT = {"vocab_size": 43, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 12}
