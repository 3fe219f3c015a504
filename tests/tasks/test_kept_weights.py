import numpy as np
import pytest

from tests.tasks import toy


@pytest.mark.parametrize("bad_batch", [0, 2])
def test_an_error_in_the_data_leaves_the_model_its_weights(bad_batch):
    task = toy.masked_lm()
    task.compile("sgd")
    before = task.backbone.get_weights()
    texts = list(toy.TEXTS)
    texts[4 * bad_batch + 1] = None
    for call in (task.evaluate, task.fit):
        with pytest.raises(Exception, match="Received: None"):
            call(texts, batch_size=4, verbose=0, **({"shuffle": False} if call == task.fit else {}))
    after = task.backbone.get_weights()
    assert all(np.isfinite(value).all() for value in after)
    changed = any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert changed == (bad_batch > 0)
    task.fit(toy.TEXTS, batch_size=4, verbose=0)
