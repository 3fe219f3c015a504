"""Lists of words: a tag for each, learned and read off at its first token."""

import finetune_trainers as trainers

from keras_bert3.data.windows import padded_length

IGNORED = -100
"""A label that the loss of transformers leaves out."""


class Ours(trainers.Ours):
    """`TokenClassifier`, which reads longer lists in windows."""

    def load(self, folder):
        """The task, with a head for the benchmark's tags."""
        from keras_bert3 import TokenClassifier

        labels, length = list(self.benchmark.labels), self.settings.sequence_length
        return TokenClassifier.from_preset(folder, labels=labels, sequence_length=length)

    def predict(self, inputs):
        """Tags of each list."""
        return self.task.predict(inputs, batch_size=64)


class Transformers(trainers.Transformers):
    """`AutoModelForTokenClassification`, which cuts longer lists off."""

    def load(self):
        """The model, with a head for the benchmark's tags."""
        from transformers import AutoModelForTokenClassification

        return AutoModelForTokenClassification.from_pretrained(
            self.settings.model, num_labels=len(self.benchmark.labels)
        )

    def encode(self, words):
        """Tensors of a batch, padded as far as ours is."""
        options = {"is_split_into_words": True, "truncation": True}
        most = self.settings.sequence_length
        longest = max(map(len, self.tokenizer(words, max_length=most, **options)["input_ids"]))
        return self.tokenizer(
            words,
            max_length=padded_length(longest, most),
            padding="max_length",
            return_tensors="pt",
            **options,
        )

    def batches(self, inputs, labels):
        """Tokenise batch by batch; every token but a word's first is ignored."""
        for words, tags in trainers.parts(self.settings.batch_size, inputs, labels):
            batch = self.encode(words)
            targets = self.torch.full(batch["input_ids"].shape, IGNORED)
            for row, names in enumerate(tags):
                for word, place in first_tokens(batch.word_ids(row)).items():
                    targets[row, place] = self.benchmark.labels.index(names[word])
            yield {**batch, "labels": targets}

    def predict(self, inputs):
        """Tags of each list, O for words that were cut off."""
        self.model.eval()
        predicted = []
        for (words,) in trainers.parts(64, inputs):
            batch = self.encode(words)
            with self.torch.inference_mode():
                best = self.model(**batch).logits.argmax(-1).tolist()
            for row, one in enumerate(words):
                tags = [self.benchmark.labels[0]] * len(one)
                for word, place in first_tokens(batch.word_ids(row)).items():
                    tags[word] = self.benchmark.labels[best[row][place]]
                predicted.append(tags)
        return predicted


def first_tokens(word_ids) -> dict[int, int]:
    """From words to the places of their first tokens.

    Example: `first_tokens([None, 0, 0, 1, None])` is `{0: 1, 1: 3}`.
    """
    places: dict[int, int] = {}
    for place, word in enumerate(word_ids):
        if word is not None:
            places.setdefault(word, place)
    return places


def read(settings, benchmark):
    """The examples to train on, and those to score by a prefix of their scores."""
    validation = benchmark.read(settings.validation or settings.data, "dev")
    return benchmark.read(settings.data, "train"), {"": validation}


def score(benchmark, examples, predicted) -> dict[str, float]:
    """Scores over all kinds of entities."""
    scores = benchmark.score(examples, predicted)
    return {name: value for name, value in scores.items() if "/" not in name}
