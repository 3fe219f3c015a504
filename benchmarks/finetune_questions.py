"""Questions and texts: where the answer stands, or that there is none."""

import json
from pathlib import Path
from typing import NamedTuple

import finetune_trainers as trainers

from keras_bert3.data.windows import padded_length

STEP = 128
"""Tokens from the beginning of one window to that of the next."""
BEST, LONGEST = 20, 30
"""Starts and ends that are paired, and tokens of an answer at most."""


class Found(NamedTuple):
    """The best answer, and by how much none at all is likelier."""

    text: str
    null_margin: float


class Ours(trainers.Ours):
    """`ExtractiveQA`."""

    def load(self, folder):
        """The task."""
        from keras_bert3 import ExtractiveQA

        length = self.settings.sequence_length
        return ExtractiveQA.from_preset(folder, sequence_length=length, stride=STEP)

    def predict(self, inputs):
        """Answers."""
        rows = self.task.candidates(*inputs, count=BEST, batch_size=64, max_answer_length=LONGEST)
        return [Found(row[0].text, row[0].null_margin) for row in rows]


class Transformers(trainers.Transformers):
    """`AutoModelForQuestionAnswering`."""

    def load(self):
        """The model."""
        from transformers import AutoModelForQuestionAnswering

        return AutoModelForQuestionAnswering.from_pretrained(self.settings.model)

    def windows(self, inputs):
        """Yield the number of a question and a row of features of it, question by question.

        A tokenizer's `stride` is the tokens that windows share, so it is another for each question.
        """
        most = self.settings.sequence_length
        for number, (question, text) in enumerate(zip(*inputs, strict=True)):
            room = most - 3 - len(self.tokenizer(question, add_special_tokens=False)["input_ids"])
            found = self.tokenizer(
                question,
                text,
                truncation="only_second",
                max_length=most,
                stride=room - STEP,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )
            for row in range(len(found["input_ids"])):
                yield (
                    number,
                    {name: found[name][row] for name in self.tokenizer.model_input_names},
                    # a token of the question, or a special one, has no place in the text
                    [
                        place if part == 1 else None
                        for place, part in zip(
                            found["offset_mapping"][row], found.sequence_ids(row), strict=True
                        )
                    ],
                )

    def pad(self, features):
        """Tensors of a batch, padded as far as ours is."""
        longest = max(len(row["input_ids"]) for row in features)
        length = padded_length(longest, self.settings.sequence_length)
        return self.tokenizer.pad(
            features, padding="max_length", max_length=length, return_tensors="pt"
        )

    def batches(self, inputs, labels):
        """Tokenise an epoch, then batch by batch; rows without the answer say [CLS]."""
        windows = list(self.windows(inputs))
        for (part,) in trainers.parts(self.settings.batch_size, windows):
            spans = [span_of(labels[number], places) for number, _, places in part]
            starts, ends = self.torch.tensor(spans).T
            batch = self.pad([row for _, row, _ in part])
            yield {**batch, "start_positions": starts, "end_positions": ends}

    def predict(self, inputs):
        """Answers: over all windows the best, and the least of what speaks for none."""
        self.model.eval()
        best = [(float("-inf"), (0, 0)) for _ in inputs[0]]
        null = [float("inf")] * len(best)
        # rows as long as one another share a batch, as in ours
        windows = sorted(self.windows(inputs), key=lambda window: -len(window[1]["input_ids"]))
        for (part,) in trainers.parts(64, windows):
            with self.torch.inference_mode():
                outputs = self.model(**self.pad([row for _, row, _ in part]))
            starts, ends = outputs.start_logits.numpy(), outputs.end_logits.numpy()
            for (number, _, places), start, end in zip(part, starts, ends, strict=True):
                null[number] = min(null[number], float(start[0] + end[0]))
                best[number] = max(best[number], best_span(places, start, end))
        texts = zip(inputs[1], best, null, strict=True)
        return [Found(text[slice(*span)], none - score) for text, (score, span), none in texts]


def span_of(label, places) -> tuple[int, int]:
    """The first and last token of the answer; 0 and 0 where the row does not hold it whole."""
    if not label["text"]:
        return 0, 0
    start = label["answer_start"][0]
    end = start + len(label["text"][0])
    inside = [i for i, place in enumerate(places) if place and place[0] < end and place[1] > start]
    if not inside or places[inside[0]][0] > start or places[inside[-1]][1] < end:
        return 0, 0
    return inside[0], inside[-1]


def best_span(places, start, end) -> tuple[float, tuple[int, int]]:
    """The likeliest span among the likeliest starts and ends, and its score."""
    found = (float("-inf"), (0, 0))
    start, end = start[: len(places)], end[: len(places)]  # without padding
    for first in start.argsort()[::-1][:BEST].tolist():
        for last in end.argsort()[::-1][:BEST].tolist():
            if places[first] and places[last] and first <= last < first + LONGEST:
                score = float(start[first] + end[last])
                found = max(found, (score, (places[first][0], places[last][1])))
    return found


def read(settings, benchmark):
    """The examples to train on, and those to score by a prefix of their scores.

    No article is both trained on and scored. For SQuAD 1.1 questions without an answer are left
    out.
    """
    known = titles(settings.data)
    count = len(known) - settings.held_out
    parts = {"training ": (settings.data, known[:count])}
    if settings.held_out:
        parts["held out: "] = settings.data, known[count:]
    if settings.validation:
        others = [title for title in titles(settings.validation) if title not in known]
        parts[f"{Path(settings.validation).stem}: "] = settings.validation, others
    read = {
        prefix: chosen(benchmark, benchmark.read(file, "train", articles))
        for prefix, (file, articles) in parts.items()
    }
    return read.pop("training "), read


def titles(file) -> list[str]:
    """Titles of the articles of a file."""
    return [article["title"] for article in json.loads(Path(file).read_text("utf-8"))["data"]]


def chosen(benchmark, examples):
    """All examples, or those with an answer where the benchmark has no others."""
    labels = examples.known_labels()
    rows = [i for i, label in enumerate(labels) if label["text"] or benchmark.has_null]
    columns = tuple([column[i] for i in rows] for column in examples.columns)
    ids = [examples.ids[i] for i in rows]
    return type(examples)(columns, [labels[i] for i in rows], ids)


def score(benchmark, examples, predicted) -> dict[str, float]:
    """Shares of SQuAD 1.1 where all questions have an answer, of 2.0 where some have none."""
    from keras_bert3.benchmarks.squad import SQUAD1

    texts, margins = zip(*predicted, strict=True)
    if all(label["text"] for label in examples.known_labels()):
        scores, names = SQUAD1.score(examples, texts), ("exact", "f1")
    else:
        scores, names = benchmark.score(examples, texts, margins), ("best_exact", "best_f1")
    return {name: scores[name] / 100 for name in names}
