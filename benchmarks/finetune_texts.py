"""Texts and pairs of texts: a class, or a number."""

import finetune_trainers as trainers


class Ours(trainers.Ours):
    """`TextClassifier`."""

    def load(self, folder):
        """The task, with a head for the benchmark's classes, or for a number."""
        from keras_bert3 import TextClassifier

        labels = list(self.benchmark.labels)
        outputs = {"labels": labels} if labels else {"num_classes": 1}
        task = TextClassifier.from_preset(folder, pad_to_multiple_of=trainers.MULTIPLE, **outputs)
        task.preprocessor.max_sequence_length = self.settings.sequence_length
        return task

    def predict(self, inputs):
        """Names of classes, or numbers."""
        return named(self.benchmark, self.task.predict(inputs, batch_size=64, verbose=0))


class Transformers(trainers.Transformers):
    """`AutoModelForSequenceClassification`."""

    def load(self):
        """The model, with a head for the benchmark's classes, or for a number."""
        from transformers import AutoModelForSequenceClassification

        return AutoModelForSequenceClassification.from_pretrained(
            self.settings.model, num_labels=len(self.benchmark.labels) or 1
        )

    def encode(self, columns):
        """Tensors of a batch."""
        return self.tokenizer(
            *columns,
            truncation=True,
            max_length=self.settings.sequence_length,
            padding=True,
            pad_to_multiple_of=trainers.MULTIPLE,
            return_tensors="pt",
        )

    def batches(self, inputs, labels):
        """Tokenise batch by batch."""
        names = self.benchmark.labels
        targets = [names.index(label) if names else label for label in labels]
        for *columns, part in trainers.parts(
            self.settings.batch_size, *columns_of(inputs), targets
        ):
            yield {**self.encode(columns), "labels": self.torch.tensor(part)}

    def predict(self, inputs):
        """Names of classes, or numbers."""
        self.model.eval()
        with self.torch.inference_mode():
            rows = [
                self.model(**self.encode(columns)).logits
                for columns in trainers.parts(64, *columns_of(inputs))
            ]
        return named(self.benchmark, self.torch.cat(rows).numpy())


def columns_of(inputs) -> tuple[list, ...]:
    """A list of texts, or a pair of lists, as columns."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def named(benchmark, outputs) -> list:
    """Names of classes, or numbers, for outputs `[n, c]`."""
    if not benchmark.labels:
        return [float(row[0]) for row in outputs]
    return [benchmark.labels[i] for i in outputs.argmax(-1)]


def read(settings, benchmark):
    """The examples to train on, and those to score by a prefix of their scores."""
    files = settings.data, settings.validation or settings.data
    training, validation = (
        benchmark.read(file, split, settings.quoted)
        for file, split in zip(files, ("train", "dev"), strict=True)
    )
    return training, {"": validation}


def score(benchmark, examples, predicted) -> dict[str, float]:
    """The scores of the benchmark."""
    return benchmark.score(examples, predicted)
