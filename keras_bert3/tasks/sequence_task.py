"""What tasks with one summary vector a sequence share: pooler, dropout, a dense head."""

import keras

from keras_bert3.tasks.preprocessor import Preprocessor, as_texts
from keras_bert3.tasks.task import Task


class SequenceTask(Task):
    """A `Task` that reads each sequence as one vector, in the way of its backbone.

        scores = Dropout(pool(backbone(tokens))) W + b

    | backbone | what `pool` is                                   | source                         |
    |----------|--------------------------------------------------|--------------------------------|
    | BERT     | its pooler, pretrained                           | Devlin et al. 2018, figure 4   |
    | DeBERTa  | `ContextPooler`, new                             | microsoft/DeBERTa `pooling.py` |
    | GPT-1    | the vector of the classify token, the row's last | Radford et al. 2018, eq. 3     |

    Args:
        backbone: any `Backbone`.
        head_name: attribute of the dense head.
        units: its width.
        preprocessor: see `Task`; where it has no length of its own, texts are truncated to the
            backbone's.
        dropout: rate on the summary; the backbone's when None.
        use_bias: whether the head has a bias.
    """

    def __init__(
        self, backbone, head_name, units, preprocessor=None, dropout=None, use_bias=True, **kwargs
    ):
        super().__init__(backbone, preprocessor, **kwargs)
        self.limit_length()
        if backbone.has_pooler and backbone.trainable:
            backbone.pooler.trainable = True  # a masked LM without next sentences had no use for it
        pooler = backbone.make_pooler()
        if pooler is not None:
            self.pooler = pooler
        self.dropout = backbone.dropout if dropout is None else dropout
        self.dropout_layer = keras.layers.Dropout(
            self.dropout, dtype=backbone.dtype_policy, name="summary_dropout"
        )
        head = keras.layers.Dense(
            units,
            use_bias=use_bias,
            kernel_initializer=backbone.initializer(),
            dtype=backbone.dtype_policy,
            name=head_name,
        )
        head.build((None, backbone.hidden_dim))
        self.use_bias = use_bias
        self._head = head_name
        setattr(self, head_name, head)

    def score(self, inputs, training=None):
        """Summarise and score a batch of sequences: `[b, units]`."""
        outputs = self.backbone(inputs, training=training)
        pooler = getattr(self, "pooler", None)
        summary = self.backbone.pool(outputs, inputs, pooler, training=training)
        return getattr(self, self._head)(self.dropout_layer(summary, training=training))

    def default_optimizer(self, updates):
        """The paper's recipe for fine-tuning this backbone; see `FineTuning`."""
        return self.backbone.fine_tuning.make(updates)

    @classmethod
    def usual_preprocessor(cls, tokenizer, backbone, **arguments):
        """As of any task; None where a tokenizer has no [CLS] and [SEP] to frame texts with."""
        if cls.preprocessor_class is Preprocessor and not hasattr(tokenizer, "cls_id"):
            return None
        return super().usual_preprocessor(tokenizer, backbone, **arguments)

    def prepare(self, texts, labels, weights, indices, epoch):
        """Pack a batch of texts."""
        return self.preprocess(texts), labels, weights

    def predict(self, x, batch_size=None, **kwargs):
        """Return scores for strings, arrays or anything Keras takes: `[n, units]`.

        Texts are run in the order of their lengths and returned in their own.
        """
        x = as_texts(x)
        if not self.is_text(x):
            return super().predict(x, batch_size, **kwargs)
        return self.predict_by_length(x, batch_size, **kwargs)
