import itertools

import numpy as np
import pytest

from keras_bert3 import CausalLM, GPTBackbone
from keras_bert3.tasks import generation
from keras_bert3.tasks.samplers import Beam, Contrastive, Greedy, Sample
from tests.layer_checks import to_numpy

RNG = np.random.default_rng(2)
PROMPTS = [[3, 1], [4, 1, 5, 9, 2, 6], [5, 3, 5]]
V = 13


@pytest.fixture(scope="module")
def task():
    backbone = GPTBackbone(V, 2, 2, 8, 16, max_sequence_length=40)
    for weight in backbone.weights:
        if "seed" not in weight.path:
            weight.assign(RNG.normal(0, 0.7, weight.shape))
    return CausalLM(backbone)


def plain(task, rows):
    """Last layers and logits of whole rows, without any cache; one length, compiled once."""
    length = len(rows[0])
    ids = np.pad(np.array(rows, "int32"), ((0, 0), (0, 12 - length)))
    inputs = {"token_ids": ids, "padding_mask": np.arange(12) < np.full((len(rows), 1), length)}
    hidden = to_numpy(task.backbone(inputs)["sequence_output"])
    return hidden[:, :length], to_numpy(task(inputs))[:, :length]


def softmax(x):
    return (
        np.exp(x - x.max(-1, keepdims=True))
        / np.exp(x - x.max(-1, keepdims=True)).sum(-1)[..., None]
    )


def test_greedy_with_the_cache_equals_greedy_without_it(task):
    expected = []
    for prompt in PROMPTS:
        row = list(prompt)
        while len(row) < 12:
            row.append(int(plain(task, [row])[1][0, -1].argmax()))
        expected.append(row)
    assert task.generate(PROMPTS, 12) == expected
    assert task.generate(PROMPTS[1:2], 12, Greedy()) == expected[1:2]
    assert task.generate(PROMPTS, 12, Beam(1)) == expected
    assert task.generate(PROMPTS, 12, Contrastive(3, 0.0)) == expected
    assert task.generate(PROMPTS, 12, Sample(top_k=1)) == expected
    assert task.generate(PROMPTS, 12, Sample(temperature=1e-4)) == expected


def test_one_program_serves_all_prompts_of_a_length(task):
    task.generate(PROMPTS, 12)
    number = len(task.__dict__["_generation_programs"])
    task.generate([[1, 2, 3], [4], [7, 8]], 12)
    assert len(task.__dict__["_generation_programs"]) == number
    assert not any("writer" in weight.path.lower() for weight in task.weights)


def test_it_stops_at_the_end_token(task):
    full = task.generate(PROMPTS, 20)
    end = full[0][6]
    stopped = task.generate(PROMPTS, 20, end_id=end)
    for prompt, row, whole in zip(PROMPTS, stopped, full, strict=True):
        new = whole[len(prompt) :]
        assert row == [*prompt, *(new[: new.index(end) + 1] if end in new else new)]
    assert len(stopped[0]) < 20


def test_samples_follow_the_distribution_and_the_seed(task):
    rows = [[3, 1]] * 600
    drawn = np.array(task.generate(rows, 3, Sample(temperature=0.7, seed=1)))[:, -1]
    expected = softmax(plain(task, [[3, 1]])[1][0, -1] / 0.7)
    observed = np.bincount(drawn, minlength=V) / len(rows)
    assert np.abs(observed - expected).max() < 4 * 0.5 / np.sqrt(len(rows))
    again = np.array(task.generate(rows, 3, Sample(temperature=0.7, seed=1)))[:, -1]
    other = np.array(task.generate(rows, 3, Sample(temperature=0.7, seed=2)))[:, -1]
    np.testing.assert_array_equal(drawn, again)
    assert (drawn != other).any()


def test_top_k_and_top_p_leave_out_the_unlikely(task):
    probabilities = softmax(plain(task, [[3, 1]])[1][0, -1] / 3.0)
    order = np.argsort(-probabilities)
    rows = [[3, 1]] * 400
    drawn = np.array(task.generate(rows, 3, Sample(temperature=3.0, top_k=3)))[:, -1]
    assert set(drawn) == set(order[:3])
    before = np.cumsum(probabilities[order]) - probabilities[order]
    wanted = set(order[before < 0.6])
    assert 1 < len(wanted) < V
    drawn = np.array(task.generate(rows, 3, Sample(temperature=3.0, top_p=0.6)))[:, -1]
    assert set(drawn) == wanted


def test_a_wide_beam_finds_the_best_of_all_continuations(task):
    def best(prompt, number):
        rows = [[*prompt, *new] for new in itertools.product(range(V), repeat=number)]
        logs = np.log(softmax(plain(task, rows)[1]))[:, len(prompt) - 1 : -1]
        totals = np.take_along_axis(logs, np.array(rows)[:, len(prompt) :, None], -1).sum((1, 2))
        return rows[totals.argmax()]

    assert task.generate([[3, 1]], 5, Beam(V * V)) == [best([3, 1], 3)]
    # Longer prompts in the batch end sooner, and their beams are judged there.
    both = task.generate([[3, 1], [4, 1, 5]], 5, Beam(V * V))
    assert both == [best([3, 1], 3), best([4, 1, 5], 2)]


def test_contrastive_search_equals_its_equation(task):
    row, alpha, k = [3, 1, 4], 0.6, 4
    while len(row) < 10:
        hidden, logits = plain(task, [row])
        probabilities = softmax(logits[0, -1])
        best = np.argsort(-probabilities)[:k]
        scores = []
        for token in best:
            tried = plain(task, [[*row, token]])[0][0]
            unit = tried / np.linalg.norm(tried, axis=-1, keepdims=True)
            scores.append((1 - alpha) * probabilities[token] - alpha * (unit[:-1] @ unit[-1]).max())
        row.append(int(best[np.argmax(scores)]))
    assert task.generate([[3, 1, 4], [5, 6]], 10, Contrastive(k, alpha))[0] == row


def test_wrong_arguments_are_named(task):
    for prompts, length, message in (
        ([[1], []], 5, "at least one token. Received: lengths \\[1, 0\\]"),
        ([[1, 2]], 41, "at most 40.*Received: max_length=41"),
        ([[1, 2, 3]], 3, "shorter than max_length=3 tokens. Received: one of 3"),
        ([1, 2, 3], 5, r"list of ids for each prompt. Received: \[1, 2, 3\]"),
        ([[1, 2], [V]], 5, f"vocabulary of {V} tokens, from 0. Received: {V}"),
        ([[1, -1]], 5, f"vocabulary of {V} tokens, from 0. Received: -1"),
    ):
        with pytest.raises(ValueError, match=message):
            task.generate(prompts, length)
    for sampler, end_id, message in (
        ("greedy", None, r"a sampler, such as `Greedy\(\)`. Received: 'greedy'"),
        (Contrastive(V + 1), None, f"top_k up to the vocabulary's {V}"),
        (Greedy(), V, f"Received: {V}"),
    ):
        with pytest.raises(ValueError, match=message):
            task.generate([[1]], 5, sampler, end_id)
    with pytest.raises(ValueError, match="no preprocessor"):
        task.generate("text", 5)
    for make, message in (
        (lambda: Sample(temperature=0), "temperature above 0"),
        (lambda: Sample(top_k=0), "top_k of at least 1"),
        (lambda: Sample(top_p=1.5), r"top_p in \(0, 1\]"),
        (lambda: Beam(0), "num_beams of at least 1"),
        (lambda: Contrastive(alpha=2), r"alpha in \[0, 1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_the_network_sees_no_more_than_new_tokens(task, monkeypatch):
    seen, original = [], generation._Stepper._run

    def spy(self, token_ids, *rest):
        seen.append(tuple(token_ids.shape))
        return original(self, token_ids, *rest)

    monkeypatch.setattr(generation._Stepper, "_run", spy)
    task.generate([[1, 2, 3]], 21)
    assert seen[0] == (1, 21) and set(seen[1:]) == {(1, 1)}
