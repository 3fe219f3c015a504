"""Gradients on TensorFlow: whole before they are clipped, and there before anything is counted.

Keras 3.15 on TensorFlow clips the gradients of each replica and adds them up afterwards, so that
the norm is that of a part of the batch; and the call that meets the end of a data set of unknown
length still runs whatever does not wait for a batch, such as the count of updates.
"""

import contextlib

import keras


def whole(gradients):
    """Return dense gradients of the whole batch; None stays None.

    A look-up's gradient comes row by row on TensorFlow, a repeated id several times; here it
    becomes one table. Under a `tf.distribute` strategy gradients are added up over the replicas.
    """
    if keras.backend.backend() != "tensorflow":
        return list(gradients)
    import tensorflow as tf

    dense = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return dense
    given = [g for g in dense if g is not None]
    summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, given))
    return [None if g is None else next(summed) for g in dense]


def after(gradients):
    """Return a context in which everything waits for the gradients, and so for a batch."""
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    import tensorflow as tf

    return tf.control_dependencies([g for g in gradients if g is not None])
