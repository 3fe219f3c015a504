"""Masked language modelling: BERT's, with next-sentence prediction or without, and DeBERTa's."""

import keras
import numpy as np

from keras_bert3.layers.masked_lm_head import MaskedLMHead, gather_positions
from keras_bert3.objectives.masking import mask_batch
from keras_bert3.tasks.preprocessor import Preprocessor
from keras_bert3.tasks.task import Task
from keras_bert3.tokenizers.masked_text import ids_with_masks
from keras_bert3.training.optimizers import BertAdam


class MaskedLMPreprocessor(Preprocessor):
    """Texts with some tokens hidden.

    Args:
        tokenizer: see `Preprocessor`; also `mask_id`, `special_ids` and `is_continuation`.
        sequence_length: see `Preprocessor`.
        mask_rate: share of tokens to predict (Devlin et al. 2018: 0.15).
        whole_words: mask all pieces of a word together.
        longest_group: mask up to so many words in a row together (DeBERTa: 3).
        probabilities: how hidden tokens are shown, as [MASK], as themselves, as random tokens.
        seed: of the masks, which differ from epoch to epoch.
    """

    def __init__(
        self,
        tokenizer,
        sequence_length=None,
        mask_rate=0.15,
        whole_words=False,
        longest_group=1,
        probabilities=(0.8, 0.1, 0.1),
        seed=0,
    ):
        super().__init__(tokenizer, sequence_length)
        self.mask_rate = mask_rate
        self.whole_words = whole_words
        self.longest_group = longest_group
        self.probabilities = tuple(probabilities)
        self.seed = seed

    def mask(self, inputs, indices, epoch=0):
        """Return `(x, labels, weights)` for packed `inputs`: labels and weights `[b, p]`."""
        tokenizer, token_ids = self.tokenizer, inputs["token_ids"]
        is_special = np.zeros(tokenizer.vocabulary_size, bool)
        is_special[list(tokenizer.special_ids)] = True
        masked = mask_batch(
            token_ids,
            inputs["padding_mask"],
            np.asarray(indices) + (epoch << 40),
            seed=self.seed,
            is_special=is_special,
            mask_id=tokenizer.mask_id,
            max_predictions=max(1, int(np.ceil(token_ids.shape[1] * self.mask_rate))),
            rate=self.mask_rate,
            whole_words=self.whole_words,
            longest_group=self.longest_group,
            probabilities=self.probabilities,
            is_continuation=tokenizer.is_continuation,
        )
        x = {**inputs, "token_ids": masked.token_ids, "mask_positions": masked.mask_positions}
        return x, masked.labels, masked.weights

    def get_config(self):
        """The constructor's arguments, less the tokenizer."""
        return {
            **super().get_config(),
            "mask_rate": self.mask_rate,
            "whole_words": self.whole_words,
            "longest_group": self.longest_group,
            "probabilities": list(self.probabilities),
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable(package="keras_bert3")
class MaskedLM(Task):
    """Predict hidden tokens, and whether the second text followed the first.

        loss = sum_p w_p (-log p(token_p)) / sum_p w_p  +  mean_b (-log p(label_b))

    Devlin et al. 2018, section 3.1. The first term is divided by the number of predicted tokens in
    the whole batch, whatever their number in each row; softmax and loss are in float32.

    A backbone with a `mask_decoder` (DeBERTa) is asked through it: absolute positions enter just
    before the prediction, and the last block's ordinary pass is skipped; see `EnhancedMaskDecoder`.

    Args:
        backbone: a `Backbone`; next-sentence prediction needs its `pooled_output`.
        next_sentence: whether to predict the second text's origin too; where None, if the backbone
            has a pooler, as BERT does and DeBERTa does not. Label 0: it really
            followed. Label 1: it came from elsewhere. Without it the backbone's pooler has no part
            in the task, and is frozen.
        preprocessor: a `MaskedLMPreprocessor`, or None for those who bring tensors.
        mask_decoder: arguments of DeBERTa's `EnhancedMaskDecoder`, such as
            `{"num_steps": 1, "first_query": "hidden"}`, which is BERT's decoder.

    Call arguments:
        inputs: the backbone's, and `mask_positions` `[b, p]`; without it, every position is scored.

    Returns:
        A dict of logits: `masked_lm` `[b, p, v]` and, with `next_sentence`, `next_sentence`
        `[b, 2]`.

    Example:
        >>> task = MaskedLM(BertBackbone(**sizes.BERT["tiny"]))
        >>> task.compile()
        >>> task.fit(batches, steps_per_epoch=100)
    """

    newly_initialised: tuple[str, ...] | None = None
    """Paths of the weights that a checkpoint did not have; None where nothing was loaded."""
    head_names = ("enhanced_mask_decoder", "masked_lm_head", "next_sentence_head")
    preprocessor_class = MaskedLMPreprocessor

    def __init__(
        self, backbone, next_sentence=None, preprocessor=None, mask_decoder=None, **kwargs
    ):
        super().__init__(backbone, preprocessor, **kwargs)
        next_sentence = backbone.has_pooler if next_sentence is None else next_sentence
        if next_sentence and not backbone.has_pooler:
            raise ValueError(
                "Expected a backbone with a pooler for next_sentence=True. "
                f"Received: {type(backbone).__name__}"
            )
        if not hasattr(backbone, "activation") or not hasattr(backbone, "layer_norm_epsilon"):
            raise ValueError(
                "Expected a backbone of transformer blocks, whose activation and layer norm the "
                f"head has too. Received: {type(backbone).__name__}"
            )
        self.next_sentence = next_sentence
        self.mask_decoder = dict(mask_decoder or {})
        if backbone.has_pooler:  # no gradient would reach it, only weight decay
            backbone.pooler.trainable = next_sentence
        self.masked_lm_head = MaskedLMHead(
            backbone.vocabulary_size,
            embedding_dim=backbone.token_embeddings.shape[-1],
            activation=backbone.activation,
            layer_norm_epsilon=backbone.layer_norm_epsilon,
            kernel_initializer=backbone.initializer(),
            dtype=backbone.dtype_policy,
            name="masked_lm_head",
        )
        self.masked_lm_head.build((None, None, backbone.hidden_dim))
        if hasattr(backbone, "mask_decoder"):
            self.enhanced_mask_decoder = backbone.mask_decoder(**self.mask_decoder)
        if next_sentence:
            self.next_sentence_head = keras.layers.Dense(
                2,
                kernel_initializer=backbone.initializer(),
                dtype=backbone.dtype_policy,
                name="next_sentence_head",
            )
            self.next_sentence_head.build((None, backbone.hidden_dim))

    def call(self, inputs, training=None):
        """Score the vocabulary at the masked positions."""
        if hasattr(self, "enhanced_mask_decoder"):
            return self._decode(inputs, training)
        outputs = self.backbone(inputs, training=training)
        hidden = outputs["sequence_output"]
        if "mask_positions" in inputs:
            hidden = gather_positions(hidden, inputs["mask_positions"])
        logits = {"masked_lm": self.masked_lm_head(hidden, self.backbone.token_embeddings)}
        if self.next_sentence:
            logits["next_sentence"] = self.next_sentence_head(outputs["pooled_output"])
        return logits

    def _decode(self, inputs, training):
        """Ask the last block by the enhanced mask decoder instead of running it."""
        positions = inputs.get("mask_positions")
        hidden = self.backbone.masked_lm_features(
            self.enhanced_mask_decoder, inputs, positions=positions, training=training
        )
        return {"masked_lm": self.masked_lm_head(hidden, self.backbone.token_embeddings)}

    def default_compile(self):
        """BERT's optimiser; cross-entropy over predictions; accuracies."""
        outputs = ["masked_lm", "next_sentence"] if self.next_sentence else ["masked_lm"]
        # Keras puts an output's name before its metrics where there are several outputs.
        accuracy = "accuracy" if self.next_sentence else "masked_lm_accuracy"
        return {
            "optimizer": BertAdam(),
            "loss": {
                name: keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True, reduction="mean_with_sample_weight", name=f"{name}_loss"
                )
                for name in outputs
            },
            "weighted_metrics": {
                name: [keras.metrics.SparseCategoricalAccuracy(name=accuracy)] for name in outputs
            },
        }

    def prepare(self, texts, labels, weights, indices, epoch):
        """Mask a batch of texts; `labels` are next-sentence labels of pairs."""
        x, targets, target_weights = self.preprocessor.mask(
            self.preprocess(texts), indices, epoch or 0
        )
        row_weights = np.ones(len(targets), "float32") if weights is None else weights
        y = {"masked_lm": targets}
        sample_weight = {"masked_lm": target_weights * row_weights[:, None]}
        if self.next_sentence:
            if labels is None:
                raise ValueError(
                    "Expected labels for next-sentence prediction (0: the second text follows, "
                    "1: it does not), or a task made with next_sentence=False. Received: y=None"
                )
            y["next_sentence"] = labels
            sample_weight["next_sentence"] = row_weights
        return x, y, sample_weight

    def fill_mask(self, texts, top_k=5):
        """Suggest tokens for every [MASK] in texts.

        Args:
            texts: a string or a list of strings that contain `[MASK]`.
            top_k: suggestions a mask, at least one.

        Returns:
            For a string a list with one entry a mask, each a list of `(token, probability)`,
            likeliest first; for a list of strings a list of these.

        Raises:
            ValueError: if a text has no mask, or loses one by truncation; if the enhanced mask
                decoder or the head of a DeBERTa was neither loaded nor trained; for a `top_k`
                below 1.
        """
        if top_k < 1:
            raise ValueError(f"Expected `top_k` of at least 1. Received: {top_k}")
        if isinstance(texts, str):
            return self.fill_mask([texts], top_k)[0]
        self._check_heads_are_known()
        if not len(texts):
            return []
        inputs = self._inputs_with_masks(texts)
        logits = self.predict(inputs, verbose=0)["masked_lm"].astype("float32")
        probabilities = np.exp(logits - logits.max(-1, keepdims=True))
        probabilities /= probabilities.sum(-1, keepdims=True)
        is_mask = inputs["token_ids"] == self.preprocessor.tokenizer.mask_id
        return [
            [self._top(row[position], top_k) for position in np.flatnonzero(masks)]
            for row, masks in zip(probabilities, is_mask, strict=True)
        ]

    def _check_heads_are_known(self):
        """Refuse to guess with a decoder or head that was neither loaded nor trained."""
        optimizer = getattr(self, "optimizer", None)
        was_trained = optimizer is not None and int(optimizer.iterations) > 0
        if was_trained or not hasattr(self, "enhanced_mask_decoder"):
            return
        random = [
            name for name, head in self.heads.items() if self._is_random(name) and head.weights
        ]
        if random:
            raise ValueError(
                "Expected weights that were loaded or trained for every head. Received: random "
                f"ones for {', '.join(random)}"
            )

    def _is_random(self, name):
        """Whether a head, or a part of it, has the weights it was constructed with."""
        if self.newly_initialised is None:
            return True
        return any(path.split("/")[0] == name for path in self.newly_initialised)

    def load_weights(self, *arguments, **kwargs):
        """Load a file of weights that Keras has written; they count as known."""
        super().load_weights(*arguments, **kwargs)
        self.newly_initialised = ()

    def set_weights(self, weights):
        """Take all weights from a list; they count as known."""
        super().set_weights(weights)
        self.newly_initialised = ()

    def _inputs_with_masks(self, texts):
        """Pack texts in which "[MASK]" stands for the mask token."""
        tokenizer = self.preprocessor.tokenizer
        mask = tokenizer.id_to_token(tokenizer.mask_id)
        inputs = self.preprocessor.pack([ids_with_masks(tokenizer, text) for text in texts])
        found = (inputs["token_ids"] == tokenizer.mask_id).sum(1)
        for text, count in zip(texts, found, strict=True):
            if count != text.count(mask) or count == 0:
                raise ValueError(
                    f"Expected at least one {mask} in each text, within the first "
                    f"{inputs['token_ids'].shape[1]} tokens. Received: {text!r}"
                )
        return inputs

    def _top(self, probabilities, top_k):
        tokenizer = self.preprocessor.tokenizer
        best = np.argsort(-probabilities)[:top_k]
        return [(tokenizer.id_to_token(int(i)), float(probabilities[i])) for i in best]

    def get_config(self):
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "next_sentence": self.next_sentence,
            "mask_decoder": dict(self.mask_decoder),
        }
