"""Replaced-token detection: the pretraining of DeBERTa v3."""

import keras
import numpy as np
from keras import ops

from keras_bert3.layers.replaced_token_head import ReplacedTokenHead
from keras_bert3.objectives.replaced_tokens import replace_tokens, replaced_labels, sample_tokens
from keras_bert3.tasks.masked_lm import MaskedLM, MaskedLMPreprocessor
from keras_bert3.tasks.task import Task
from keras_bert3.training.optimizers import BertAdam

SHARINGS = ("disentangled", "shared", "separate")


class ReplacedTokenPreprocessor(MaskedLMPreprocessor):
    """Texts with some tokens hidden, all of them behind [MASK]: each will be replaced anyway.

    Args:
        tokenizer: see `MaskedLMPreprocessor`.
        sequence_length: see `MaskedLMPreprocessor`.
        probabilities: see `MaskedLMPreprocessor`.
        **kwargs: its other arguments.
    """

    def __init__(self, tokenizer, sequence_length=None, probabilities=(1.0, 0.0, 0.0), **kwargs):
        super().__init__(tokenizer, sequence_length, probabilities=probabilities, **kwargs)


@keras.saving.register_keras_serializable(package="keras_bert3")
class ReplacedTokenDetection(Task):
    """A small masked LM fills in masks; the backbone learns to tell its tokens from real ones.

        loss = masked-LM loss of the generator
               + discriminator_weight x mean over real tokens (-log p(replaced or not))

    He, Gao & Chen 2021 (DeBERTa v3), sections 2.3 and 3. The sampled tokens carry no gradient, so
    the generator learns from the first term alone. The token vectors of the discriminator are, by
    `sharing` (section 3.2 and figure 1 of the paper),

        disentangled  E_D = stop_gradient(E_G) + E_delta     (GDES)
        shared        E_D = E_G                              (ES, ELECTRA's)
        separate      E_D of its own                         (NES)

    E_delta starts at 0 and stands where the backbone's own token table is. So `backbone` alone is
    not the trained model: `discriminator` is.

    `fit` trains both together, joint steps of one optimiser; `decoupled_steps` train one after the
    other.

    Args:
        backbone: a `DebertaBackbone`, the discriminator.
        generator: a backbone with a mask decoder (or its configuration), as wide as `backbone` and
            half as deep; v3-base and v3-large have 6 and 12 blocks.
        preprocessor: a `ReplacedTokenPreprocessor`, or None for those who bring tensors.
        sharing: see above.
        discriminator_weight: lambda (paper: 50; released code: 10).
        temperature: of the sampling (1).
        mask_decoder: arguments of the generator's `EnhancedMaskDecoder`.
        seed: of the sampling.

    Call arguments:
        inputs: the backbone's, and `mask_positions` `[b, p]`, 0 for unused slots.

    Returns:
        A dict: `masked_lm`, logits `[b, p, v]`; `sampled`, ids `[b, p]`; `replaced`, scores
        `[b, q, 1]`.

    Example:
        >>> task = ReplacedTokenDetection(DebertaBackbone(1000, 4, 4, 64, 256),
        ...     generator=DebertaBackbone(1000, 2, 4, 64, 256))
        >>> task.fit(batches, steps_per_epoch=100)
        >>> task.discriminator().save_to_preset("my_deberta")
    """

    head_names = (
        "generator_backbone",
        "generator_decoder",
        "generator_head",
        "replaced_token_head",
    )
    preprocessor_class = ReplacedTokenPreprocessor

    def __init__(
        self,
        backbone,
        generator,
        preprocessor=None,
        sharing="disentangled",
        discriminator_weight=50.0,
        temperature=1.0,
        mask_decoder=None,
        seed=0,
        **kwargs,
    ):
        super().__init__(backbone, preprocessor, **kwargs)
        if isinstance(generator, dict):
            generator = keras.saving.deserialize_keras_object(generator)
        _check(backbone, generator, sharing)
        if not 0 < temperature < float("inf"):
            raise ValueError(f"Expected a positive temperature. Received: {temperature!r}")
        if not 0 <= discriminator_weight < float("inf"):
            raise ValueError(
                f"Expected `discriminator_weight` of at least 0. Received: {discriminator_weight!r}"
            )
        self.sharing = sharing
        self.discriminator_weight = discriminator_weight
        self.temperature = temperature
        self.seed = seed
        self.generator = MaskedLM(generator, mask_decoder=mask_decoder, name="generator")
        self.replaced_token_head = ReplacedTokenHead(
            activation=backbone.activation,
            layer_norm_epsilon=backbone.layer_norm_epsilon,
            kernel_initializer=backbone.initializer(),
            dtype=backbone.dtype_policy,
            name="replaced_token_head",
        )
        self.replaced_token_head.build((None, None, backbone.hidden_dim))
        self.sampler = keras.random.SeedGenerator(seed)
        if sharing != "separate":
            _start_at_zero(backbone.token_embeddings)
            backbone.embeddings.token.trainable = sharing == "disentangled"

    @property
    def generator_backbone(self):
        """The generator's backbone."""
        return self.generator.backbone

    @property
    def generator_decoder(self):
        """The generator's mask decoder."""
        return self.generator.enhanced_mask_decoder

    @property
    def generator_head(self):
        """The generator's head."""
        return self.generator.masked_lm_head

    def call(self, inputs, training=None):
        """Fill the masks, and score every token."""
        if "mask_positions" not in inputs:
            raise ValueError(
                "Expected `inputs` with 'mask_positions', whose tokens are to be replaced. "
                f"Received: {sorted(inputs)}"
            )
        logits = self.generator(inputs, training=training)["masked_lm"]
        sampled = sample_tokens(logits, self.sampler, self.temperature)
        ids = replace_tokens(inputs["token_ids"], inputs["mask_positions"], sampled)
        given = {
            **inputs,
            "token_ids": ids,
            "token_vectors": self._generator_vectors(ids),
        }
        hidden = self.backbone(given, training=training)["sequence_output"]
        return {
            "masked_lm": logits,
            "sampled": sampled,
            "replaced": self.replaced_token_head(hidden),
        }

    def _generator_vectors(self, ids):
        """What the generator's table adds to the discriminator's: `[b, q, w]` or None."""
        if self.sharing == "separate":
            return None
        vectors = self.generator.backbone.embeddings.token(ids)
        return vectors if self.sharing == "shared" else ops.stop_gradient(vectors)

    def discriminator(self):
        """The trained model: a backbone like `backbone` whose token table is E_D."""
        twin = type(self.backbone).from_config(self.backbone.get_config())
        twin.set_weights(self.backbone.get_weights())
        if self.sharing != "separate":
            added = ops.convert_to_tensor(self.generator.backbone.token_embeddings)
            twin.token_embeddings.assign_add(ops.cast(added, twin.token_embeddings.dtype))
        return twin

    def compile(self, optimizer=None, loss=None, adversarial=None, **kwargs):
        """As of `Task`.

        Raises:
            ValueError: with `adversarial`. A perturbed pass is compared with the one before it, and
                each pass samples tokens anew: the two would not be of one text.
        """
        if adversarial is not None:
            raise ValueError(
                "Expected no `adversarial` in replaced-token detection, where every pass samples "
                "other tokens; fine-tune `discriminator()` with it. Received: "
                f"adversarial={adversarial!r}"
            )
        super().compile(optimizer, loss, **kwargs)

    def make_train_function(self, force=False):
        """As of `Task`.

        Raises:
            ValueError: where joint steps follow decoupled ones, or the reverse: the optimiser has
                moments of other variables than are to be trained.
        """
        optimizer = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        if optimizer.built:
            known = {id(variable) for variable in optimizer._trainable_variables}
            if known != {id(variable) for variable in self.trainable_variables}:
                raise ValueError(
                    "Expected joint steps alone, as of `fit`, or decoupled ones alone, until "
                    f"`compile` is called again. Received: {len(self.trainable_variables)} "
                    f"variables to train, and an optimiser of {len(known)}"
                )
        return super().make_train_function(force)

    def default_compile(self):
        """DeBERTa's optimiser; the weighted sum of both losses; accuracies."""
        losses = {
            "masked_lm": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight", name="masked_lm_loss"
            ),
            "replaced": keras.losses.BinaryCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight", name="replaced_loss"
            ),
        }
        return {
            "optimizer": BertAdam(),
            "loss": losses,
            "loss_weights": {"masked_lm": 1.0, "replaced": self.discriminator_weight},
            "weighted_metrics": {
                "masked_lm": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
                "replaced": [
                    keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy"),
                    keras.metrics.Recall(thresholds=0.0, name="recall"),
                    keras.metrics.Precision(thresholds=0.0, name="precision"),
                ],
            },
        }

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Both losses; the discriminator's labels follow from what was sampled."""
        y, y_pred, sample_weight = self._with_labels(x, y, y_pred, sample_weight)
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Metrics of both networks."""
        return super().compute_metrics(x, *self._with_labels(x, y, y_pred, sample_weight))

    def _with_labels(self, x, y, y_pred, sample_weight):
        """Labels, predictions and weights of both outputs; real tokens weigh 1, padding 0."""
        hidden = y["masked_lm"] if isinstance(y, dict) else y
        weights = sample_weight["masked_lm"] if isinstance(sample_weight, dict) else sample_weight
        positions, scores = x["mask_positions"], y_pred["replaced"]
        if weights is None:
            weights = ops.cast(positions > 0, "float32")
        length = ops.shape(scores)[1]
        labels = replaced_labels(positions, y_pred["sampled"], hidden, length)
        is_real = ops.cast(ops.not_equal(x["padding_mask"], 0), "float32")
        return (
            {"masked_lm": hidden, "replaced": labels[:, :, None]},
            {"masked_lm": y_pred["masked_lm"], "replaced": scores},
            {"masked_lm": weights, "replaced": is_real},
        )

    def prepare(self, texts, labels, weights, indices, epoch):
        """Mask a batch of texts."""
        x, hidden, hidden_weights = self.preprocessor.mask(
            self.preprocess(texts), indices, epoch or 0
        )
        rows = np.ones(len(hidden), "float32") if weights is None else weights
        return x, {"masked_lm": hidden}, {"masked_lm": hidden_weights * rows[:, None]}

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "generator": keras.saving.serialize_keras_object(self.generator.backbone),
            "sharing": self.sharing,
            "discriminator_weight": self.discriminator_weight,
            "temperature": self.temperature,
            "mask_decoder": dict(self.generator.mask_decoder),
            "seed": self.seed,
        }


def _start_at_zero(table) -> None:
    """Set a table to zeros, unless a checkpoint is about to give it its values."""
    from keras_bert3.checkpoints.blank import is_blank

    if not is_blank(table):
        table.assign(ops.zeros(table.shape, table.dtype))


def _check(backbone, generator, sharing) -> None:
    """Refuse what cannot be trained together."""
    if sharing not in SHARINGS:
        raise ValueError(f"Expected `sharing` among {SHARINGS}. Received: {sharing!r}")
    for name, model in (("backbone", backbone), ("generator", generator)):
        if not hasattr(model, "mask_decoder"):
            raise ValueError(f"Expected a DeBERTa for `{name}`. Received: {type(model).__name__}")
    sizes = [(model.vocabulary_size, model.hidden_dim) for model in (backbone, generator)]
    same = sizes[0] == sizes[1] if sharing != "separate" else sizes[0][0] == sizes[1][0]
    if not same:
        raise ValueError(
            "Expected a generator with the vocabulary, and where embeddings are shared the width, "
            f"of the backbone. Received: (vocabulary, width) {sizes[1]} and {sizes[0]}"
        )
