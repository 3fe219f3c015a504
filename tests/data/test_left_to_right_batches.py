import numpy as np

from keras_bert3.data.left_to_right_batches import LeftToRightBatches, LeftToRightEvaluation
from keras_bert3.data.pretraining_examples import build_examples
from keras_bert3.data.tokenized_corpus import write_tokenized_corpus
from tests.tasks import toy

DOCUMENTS = [["the cat sat", "a dog ran on the mat"], ["it slept all day long"]]


def test_labels_are_the_tokens_that_follow(tmp_path):
    tokenizer = toy.tokenizer()
    corpus = write_tokenized_corpus(tmp_path / "corpus", iter(DOCUMENTS), tokenizer)
    rows = build_examples(
        corpus, np.arange(2), tmp_path / "rows.npy", 12, 1, seed=0, next_sentence=False
    )
    for cls in (LeftToRightBatches, LeftToRightEvaluation):
        x, y, weights = cls(corpus, rows, tokenizer, 12, batch_size=4)[0]
        ids, labels, counted = x["token_ids"], y["masked_lm"], weights["masked_lm"]
        assert set(y) == set(weights) == {"masked_lm"}
        assert tokenizer.mask_id not in ids
        for row in range(4):
            real = int(x["padding_mask"][row].sum())
            assert ids[row, 0] == tokenizer.cls_id and ids[row, real - 1] == tokenizer.sep_id
            for place in range(11):
                seen = x["mask_positions"][row, place]
                assert labels[row, place] == ids[row, seen + 1]
                is_row = cls is LeftToRightBatches or row < len(rows)  # the rest fills a batch up
                assert counted[row, place] == float(is_row and place + 1 < real)
