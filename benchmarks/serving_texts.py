"""Does a served graph cut texts into the ids of its Python tokenizer? Counts the texts that differ.

    KERAS_BERT3_DATA=data python benchmarks/serving_texts.py
    KERAS_BERT3_DATA=data python benchmarks/serving_texts.py --only word_piece_cased --seed 5

For each published vocabulary below KERAS_BERT3_DATA/vocab the tokenizer's graph is saved alone and
run by TensorFlow's C library with XLA off, as a server runs it. It reads 2,000 lines spread over
KERAS_BERT3_DATA/corpora, 3,500 adversarial strings (odd characters of every kind between pieces of
such lines, and characters drawn from all of Unicode) and every code point once, between letters
and alone. Ends with 1 if any row of ids differs.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert3.serving.graph_library import tensorflow
from keras_bert3.serving.graph_text import GRAPH_TOKENIZERS
from keras_bert3.serving.session import SavedModelSession
from keras_bert3.tokenizers.byte_level_byte_pair import (
    ByteLevelBytePairTokenizer,
    deberta_vocabulary,
)
from keras_bert3.tokenizers.byte_pair import BytePairTokenizer
from keras_bert3.tokenizers.byte_pair_files import read_json_vocabulary, read_merges
from keras_bert3.tokenizers.sentence_piece import SentencePieceTokenizer
from keras_bert3.tokenizers.word_piece import WordPieceTokenizer

KINDS = ("ordinary", "adversarial", "points")
ORDINARY, ADVERSARIAL = 2000, 3500
AT_ONCE = 500
"""Texts of a request."""
ODD = [
    *(chr(c) for c in [*range(0x21), *range(0x7F, 0xA1), 0xAD]),  # controls, spaces
    *"!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~¡§«»¿–—‘’“”…。、「」",
    *"\u200b\u200c\u200d\u200e\u2028\u2029\u202e\u2060\u3000\u1680\u180e\ufeff\ufffd\ufffe\uffff",
    *"\u0300\u0301\u0307\u0308\u0323\u0327\u0342\u0345\u0903\u0e31\u302e\u3099\U0001d165\u20dd",
    *"éÉüßẞñåøłđıİſǅǆŉΐΰΣσςΆΩαЖжёЙאבعربيकषिไทกำ",
    *("e\u0301", "A\u030a\u0323", "q\u0307\u0323", "ΑΣ", "ΑΣ.", "Σ\u0301", "A\u00adΣ", "İI", "ﬃ"),
    *"中国豈\U0002b820\U0002f800かがガｶﾞ한각ᄀ\u1161ＡＢ１①Ⅷ²ªﷺ㎏…ﬁﬅ",
    *("😀", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "☃\ufe0f", "1\ufe0f\u20e3", "\U000e0041", "𝟘", "𝔘"),
    *("[MASK]", "[SEP]", "[CLS]", "[PAD]", "[UNK]", "<unk>", "</w>", "##s", "▁", "Ġ", "<0x41>"),
    *("it's", "'s", "'ll", "I'M", "''", "don't've", "x" * 99, "y" * 101, "z" * 201, "--" * 9),
    *("\ue000", "\U000f0000", "\U0010ffff", "\u0378", "\ud7ff", "\U0003fffd", "\U0001e900"),
]


def tokenizers(vocabularies: Path) -> dict[str, Callable[[], Any]]:
    """How to read each published vocabulary."""
    gpt2, gpt1 = vocabularies / "gpt2", vocabularies / "gpt1"

    def byte_level():
        tokens = read_json_vocabulary(gpt2 / "encoder.json")
        ids = {token: index for index, token in enumerate(tokens)}
        ordered = deberta_vocabulary(ids, map(str, range(len(tokens))))
        return ByteLevelBytePairTokenizer(ordered, read_merges(gpt2 / "vocab.bpe"))

    return {
        "word_piece_uncased": lambda: WordPieceTokenizer(
            vocabularies / "bert-base-uncased-vocab.txt"
        ),
        "word_piece_cased": lambda: WordPieceTokenizer(
            vocabularies / "bert-base-cased-vocab.txt", lowercase=False
        ),
        "sentence_piece": lambda: SentencePieceTokenizer(vocabularies / "deberta-v3" / "spm.model"),
        "byte_level": byte_level,
        "gpt_byte_pair": lambda: BytePairTokenizer.load(gpt1, text_standardization="bert"),
    }


def ordinary(corpora: Path) -> list[str]:
    """Take lines at equal distances through all corpora; where texts wrap, lines are long."""
    files = sorted(corpora.glob("*.txt"))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines() if line]
    step = len(lines) / ORDINARY
    return [lines[int(i * step)] for i in range(ORDINARY)]


def adversarial(lines: list[str], seed: int) -> list[str]:
    """Mix odd characters, pieces of lines, and characters from all of Unicode."""
    draw = random.Random(seed)

    def part() -> str:
        kind = draw.random()
        if kind < 0.6:
            return draw.choice(ODD)
        if kind < 0.85:
            line = draw.choice(lines)
            start = draw.randrange(len(line))
            return line[start : start + draw.randint(1, 12)]
        point = draw.choice([draw.randrange(0x3000), draw.randrange(0x110000)])
        return "" if 0xD800 <= point < 0xE000 else chr(point)

    texts = ["".join(part() for _ in range(draw.randint(0, 24))) for _ in range(ADVERSARIAL)]
    return ["", " ", "\x00", "\n \t", *texts[4:]]


def code_points() -> list[str]:
    """Every code point that UTF-8 can spell, between letters and alone, 100 a text."""
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = [f"a{chr(c)}a {chr(c)} " for c in points]
    return ["".join(texts[i : i + 100]) for i in range(0, len(texts), 100)]


def served(tokenizer, folder: Path) -> Callable[[list[str]], list[list[int]]]:
    """Save the graph of a tokenizer, and return a function that asks it by the C library."""
    tf = tensorflow()
    graph, module = GRAPH_TOKENIZERS[type(tokenizer)](tokenizer), tf.Module()
    module.resource = getattr(graph, "resource", None)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def ids(texts):
        found = graph(texts)
        return {"ids": found.values, "lengths": found.row_lengths()}

    tf.saved_model.save(module, str(folder), signatures=ids.get_concrete_function())
    session = SavedModelSession(folder)

    def ask(texts: list[str]) -> list[list[int]]:
        inputs = {"texts": np.array([text.encode("utf-8") for text in texts], object)}
        found = session.run("serving_default", inputs)
        rows = np.split(found["ids"], np.cumsum(found["lengths"])[:-1])
        return [row.tolist() for row in rows]

    return ask


def main() -> int:
    """Run from the command line."""
    data = Path(os.environ.get("KERAS_BERT3_DATA", "data"))
    known = tokenizers(data / "vocab")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=known, default=list(known))
    parser.add_argument("--texts", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    lines = ordinary(data / "corpora")
    made = (lines, adversarial(lines, chosen.seed), code_points())
    kinds = {kind: texts for kind, texts in zip(KINDS, made, strict=True) if kind in chosen.texts}
    print("| tokenizer | texts | of | ids | that differ | seconds |")
    print("|---|---|---|---|---|---|")
    total = 0
    for name in chosen.only:
        tokenizer = known[name]()
        with tempfile.TemporaryDirectory() as folder:
            ask = served(tokenizer, Path(folder))
            for kind, texts in kinds.items():
                begin = time.perf_counter()
                parts = [texts[i : i + AT_ONCE] for i in range(0, len(texts), AT_ONCE)]
                found = [row for part in parts for row in ask(part)]
                seconds = time.perf_counter() - begin
                rows = list(zip(texts, found, tokenizer(texts), strict=True))
                wrong = [text for text, found_ids, ids in rows if found_ids != ids]
                total, count = total + len(wrong), sum(len(row[2]) for row in rows)
                cells = (name, len(texts), kind, count, len(wrong), f"{seconds:.1f}")
                print(f"| {' | '.join(map(str, cells))} |", *map(ascii, wrong[:3]), flush=True)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
