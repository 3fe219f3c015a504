import numpy as np
import pytest

from keras_bert3.checkpoints import mapping

RNG = np.random.default_rng(0)


def both_ways(rule, ours, theirs):
    """Assert that the rule makes `theirs` of `ours` and `ours` of `theirs`, to the bit."""
    for made, wanted in ((rule.save(ours), theirs), (rule.load(theirs), ours)):
        assert len(made) == len(wanted)
        for a, b in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def test_rename_changes_nothing_else():
    kernel = RNG.normal(size=(3, 4))
    rule = mapping.rename("block_{i}/ffn/kernel", "h.{i}.mlp.c_fc.weight")
    both_ways(rule, [kernel], [kernel])


def test_transpose_swaps_in_and_out():
    kernel = RNG.normal(size=(3, 4))
    theirs = np.array([[kernel[i, o] for i in range(3)] for o in range(4)])
    both_ways(mapping.transpose("a/kernel", "a.weight"), [kernel], [theirs])


def test_reshape_keeps_heads_together():
    kernel = RNG.normal(size=(5, 2, 3))
    ours = np.concatenate([kernel[:, 0], kernel[:, 1]], axis=1)
    rule = mapping.reshape("a/kernel", "a", (5, -1), (5, 2, -1))
    both_ways(rule, [ours], [kernel])


@pytest.mark.parametrize("transposed", [False, True])
def test_split_puts_query_key_and_value_side_by_side(transposed):
    query, key, value = RNG.normal(size=(3, 5, 4))
    theirs = np.zeros((5, 12))
    for column in range(4):
        theirs[:, column] = query[:, column]
        theirs[:, 4 + column] = key[:, column]
        theirs[:, 8 + column] = value[:, column]
    rule = mapping.split(("q", "k", "v"), "c_attn.weight", transposed=transposed)
    both_ways(rule, [query, key, value], [theirs.T if transposed else theirs])


def test_split_serves_biases_too():
    query, key, value = RNG.normal(size=(3, 4))
    theirs = np.array([*query, *key, *value])
    both_ways(mapping.split(("q", "k", "v"), "c_attn.bias"), [query, key, value], [theirs])


def test_interleave_reads_deberta_the_way_its_code_does():
    """x W^T, reshaped to heads of 3 d, each cut into query, key and value."""
    heads, width, batch = 2, 6, 7
    in_proj = RNG.normal(size=(3 * width, width))
    x = RNG.normal(size=(batch, width))
    projected = (x @ in_proj.T).reshape(batch, heads, 3 * width // heads)
    expected = [projected[:, :, 3 * n : 3 * n + 3].reshape(batch, width) for n in range(3)]
    rule = mapping.interleave(("q", "k", "v"), "in_proj.weight", heads, transposed=True)
    kernels = rule.load([in_proj])
    for kernel, want in zip(kernels, expected, strict=True):
        np.testing.assert_allclose(x @ kernel, want, atol=1e-12)
    both_ways(rule, kernels, [in_proj])


def test_tie_reads_any_copy():
    bias = RNG.normal(size=5)
    rule = mapping.tie("head/bias", "cls.bias", "decoder.bias")
    assert rule.any_of_theirs
    both_ways(rule, [bias], [bias])
    np.testing.assert_array_equal(rule.load([bias, bias])[0], bias)


def test_cast_changes_the_dtype_of_theirs_alone():
    kernel = RNG.normal(size=(2, 3)).astype("float32")
    rule = mapping.cast(mapping.transpose("a", "b"), "float16")
    np.testing.assert_array_equal(rule.save([kernel])[0], kernel.T.astype("float16"))
    assert rule.save([kernel])[0].dtype == np.float16
    np.testing.assert_array_equal(rule.load([kernel])[0], kernel.T)


@pytest.mark.parametrize(
    ("dtype", "value", "largest"),
    [("float16", -7e4, "65504.0.*`b`, whose largest value is 70000"), ("bfloat16", 3.4e38, "`b`")],
)
def test_cast_refuses_what_would_become_infinite(dtype, value, largest):
    rule = mapping.cast(mapping.rename("a", "b"), dtype)
    with pytest.raises(ValueError, match=f"Expected weights that {dtype} can hold.*{largest}"):
        rule.save([np.array([1.0, value, np.nan], "float32")])
    already = np.array([np.inf, np.nan, 65504.0], "float32")
    expected = already.astype(dtype).astype("float32")
    np.testing.assert_array_equal(rule.save([already])[0].astype("float32"), expected)


def test_for_layers_numbers_both_sides():
    rules = mapping.for_layers([mapping.rename("block_{i}/a", "h.{i}.b")], 11)
    assert [(rule.ours, rule.theirs) for rule in rules][10] == (("block_10/a",), ("h.10.b",))
    assert len(rules) == 11
