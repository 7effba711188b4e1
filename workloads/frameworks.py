"""Which framework and Keras a request means, and whether those are the ones that are there."""

import os
import re
from importlib.util import find_spec

from workloads import kerases
from workloads.protocol import Stopped

TITLES = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
APIS = ("tf.keras", "keras", "tf_keras")


def load(framework, api, mode=None):
    """Import a framework and the Keras of `api`; set the mode, or leave it as it comes."""
    if framework == "tensorflow":
        from workloads import tensorflow_backend  # noqa: PLC0415 (another may be all there is)

        return tensorflow_backend.load(api, mode)
    from workloads import keras3_backend  # noqa: PLC0415

    return keras3_backend.load(framework, api, mode)


def expected(request) -> str:
    """The one framework that a request expects a version of."""
    named = [name for name in TITLES if getattr(request.expected, name)]
    return named[0] if named else "tensorflow"


def installed() -> str:
    """The framework that Keras would compute with here; Stopped when there is none."""
    found = [name for name in TITLES if find_spec(name) is not None]
    wished = os.environ.get("KERAS_BACKEND")
    if wished in found:
        return wished
    if not found:
        raise Stopped(
            "environment_error",
            "import",
            f"None of {', '.join(TITLES.values())} is installed in this environment.",
        )
    return found[0]


def apis(framework, *, private=False):
    """The apis that could be there: what stands in no package's folder cannot be imported.

    An environment works without the `private` one, which TensorFlow lets decay.
    """
    if framework != "tensorflow":
        return ["keras"]
    found = [api for api in APIS if api == "tf.keras" or find_spec(api) is not None]
    return [*found, kerases.PRIVATE] if private else found


def check_versions(backend, wanted):
    """Stopped (`invalid`) unless framework and Keras are the expected ones."""
    found = [(backend.title, backend.version, getattr(wanted, backend.framework))]
    if wanted.keras and _is_package(backend):
        found.append(("Keras", kerases.version(backend.keras), wanted.keras))
    for name, version, asked in found:
        if normal(version, asked) != normal(asked, asked):
            raise Stopped(
                "invalid",
                "version",
                f"{name} {version} is installed where {asked} is expected.",
            )


def check_keras(backend, model):
    """Stopped (`invalid`) unless the model is one of the api's Keras, on the framework."""
    kerases.check(backend.keras, backend.api, backend.version, getattr(model, "optimizer", None))
    if kerases.release(kerases.version(backend.keras)) < kerases.THREE:
        return
    used = backend.keras.backend.backend()
    if used != backend.framework:
        raise Stopped(
            "invalid",
            "wrong_backend",
            f"Keras computes with {used}, where {backend.title} is expected: KERAS_BACKEND or "
            "keras.json says so.",
        )


def normal(version, like) -> str:
    """`version` in the spelling of package indexes; its local part only if `like` has one."""
    spelled = re.sub(r"[-_.]?(dev|rc|a|b|post)\.?(?=\d)", r".\1", version.lower())
    return spelled if "+" in like else spelled.partition("+")[0]


def _is_package(backend) -> bool:
    """Whether this Keras is the `keras` package, whichever way it was reached."""
    return backend.keras.__name__.partition(".")[0] == "keras"
