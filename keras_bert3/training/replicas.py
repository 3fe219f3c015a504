"""Gradients whole before they are clipped, and there before anything is counted.

On JAX the step is one program over all devices. On PyTorch each process has gradients of its own
rows, which are averaged here, once an update. Keras 3.15 on TensorFlow clips the gradients of each
replica and adds them up afterwards, so that the norm is that of a part of the batch; and the call
that meets the end of a data set of unknown length still runs whatever does not wait for a batch,
such as the count of updates.
"""

import contextlib
import importlib

import keras

_BUCKET = 2**24
"""Numbers sent at a time (PyTorch): 64 MiB of float32, sent while the next are gathered."""


def count() -> int:
    """How many replicas compute gradients of their own: 1 on JAX, on any mesh."""
    backend = keras.backend.backend()
    if backend == "torch":
        distributed = importlib.import_module("torch.distributed")
        ready = distributed.is_available() and distributed.is_initialized()
        return distributed.get_world_size() if ready else 1
    if backend == "tensorflow":
        tf = importlib.import_module("tensorflow")
        return tf.distribute.get_strategy().num_replicas_in_sync
    return 1


def whole(gradients):
    """Return dense gradients of the whole batch; None stays None.

    A look-up's gradient comes row by row on TensorFlow, a repeated id several times; here it
    becomes one table. Under a `tf.distribute` strategy gradients are added up over the replicas,
    on PyTorch averaged over the processes.
    """
    backend = keras.backend.backend()
    if backend == "torch":
        return _averaged(list(gradients)) if count() > 1 else list(gradients)
    return _dense_and_summed(gradients) if backend == "tensorflow" else list(gradients)


def _dense_and_summed(gradients):
    tf = importlib.import_module("tensorflow")
    dense = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return dense
    given = [g for g in dense if g is not None]
    summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, given))
    return [None if g is None else next(summed) for g in dense]


def _averaged(gradients):
    torch, distributed = map(importlib.import_module, ("torch", "torch.distributed"))
    number, sent = distributed.get_world_size(), []
    for bucket in _buckets([g for g in gradients if g is not None]):
        flat = torch.cat([g.reshape(-1) for g in bucket]).div_(number)
        sent.append((bucket, flat, distributed.all_reduce(flat, async_op=True)))
    averaged = []
    for bucket, flat, work in sent:
        work.wait()
        pieces = flat.split([g.numel() for g in bucket])
        averaged += [piece.view_as(g) for piece, g in zip(pieces, bucket, strict=True)]
    given = iter(averaged)
    return [None if g is None else next(given) for g in gradients]


def _buckets(gradients):
    """Group gradients of one kind up to the size of a bucket, in their order."""
    groups = []
    for gradient in gradients:
        last = groups[-1] if groups else []
        size = sum(g.numel() for g in last) + gradient.numel()
        if last and last[0].dtype == gradient.dtype and size <= _BUCKET:
            last.append(gradient)
        else:
            groups.append([gradient])
    return groups


def after(gradients):
    """Return a context in which everything waits for the gradients, and so for a batch.

    One operation waits for them all, and the others for it: an edge from each gradient to each
    operation of an optimiser are over a million at base size, and slow TensorFlow's first step.
    """
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    tf = importlib.import_module("tensorflow")
    return tf.control_dependencies([tf.group(*(g for g in gradients if g is not None))])


class GlobalMetrics(keras.callbacks.Callback):
    """Make the metrics of an epoch those of all processes (PyTorch); first among the callbacks.

    Sums and counts of `keras.metrics` are added up. Other backends do so by themselves.
    """

    def on_epoch_end(self, epoch, logs=None):
        """Add up, and put the results in the place of those of this process."""
        if keras.backend.backend() != "torch" or count() == 1 or logs is None:
            return
        distributed = importlib.import_module("torch.distributed")
        for variable in self.model.metrics_variables:
            value = variable.value.detach().clone()
            distributed.all_reduce(value)
            variable.assign(value)
        results = self.model.get_metrics_result()
        logs.update({name: float(results[name]) for name in logs if name in results})
