import gc
import os

# Tracing makes and keeps objects by the million: looking through them seldom saves JAX 7 %.
gc.set_threshold(100_000, 50, 1000)

# Toy models spend their time in XLA's compiler: a fifth of it without its optimisations.
os.environ["XLA_FLAGS"] = " ".join(
    (
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_use_fusion_emitters=false",
        "--xla_cpu_parallel_codegen_split_count=1",
        os.environ.get("XLA_FLAGS", ""),
    )
)

import keras  # noqa: E402
import pytest  # noqa: E402

if keras.backend.backend() == "tensorflow":
    import tensorflow

    # A toy's graph runs a few times: rewriting it takes longer than it saves.
    tensorflow.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.fixture(autouse=True, scope="module")
def _seeded_module():
    keras.utils.set_random_seed(17)


@pytest.fixture(autouse=True)
def _seeded():
    keras.utils.set_random_seed(17)
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture(autouse=True)
def _one_program(request, monkeypatch):
    if keras.backend.backend() == "jax" and "eager" not in request.keywords:
        from keras_bert3.backbones.backbone import Backbone
        from tests.compiled_calls import as_one_program

        for kind in (Backbone, keras.Model):
            monkeypatch.setattr(kind, "__call__", as_one_program(kind.__call__))
