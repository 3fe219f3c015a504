import os

# Toy models spend their time in XLA's compiler: a fifth of it without its optimisations.
os.environ["XLA_FLAGS"] = " ".join(
    (
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_use_fusion_emitters=false",
        os.environ.get("XLA_FLAGS", ""),
    )
)

import keras  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    keras.utils.set_random_seed(17)
    yield
    keras.config.set_dtype_policy("float32")
