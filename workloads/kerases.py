"""Which Keras is in use: names of modules and classes, in every version that there was."""

import sys

from workloads.protocol import Stopped

# The first Keras package that only redirects to tf.keras, and so takes what tf.keras takes.
_REDIRECTING = (2, 4)
# From here on the `keras` package is tf.keras: first beside TensorFlow's own copy, then alone.
_SHARED = (2, 5)
_SHARED_BY_TENSORFLOW = (2, 6)
THREE = (3, 0)
PRIVATE = "tf.python.keras"  # the api

_PRIVATE_MODULE = "tensorflow.python.keras"
_IN_TENSORFLOW = "tensorflow.python.keras.optimizer_v2."


def release(version):
    """First two numbers of a version."""
    numbers = []
    for part in version.split(".")[:2]:
        digits = "".join(char for char in part if char.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def version(keras) -> str:
    """Version of a Keras module: 2.13 to 2.15 tell it only at the top of their package."""
    own = getattr(keras, "__version__", None)  # first: it loads the lazy module that 2.6 has here
    return str(own or sys.modules[keras.__name__.partition(".")[0]].__version__)


def is_separate(keras, api) -> bool:
    """Whether this Keras is a code base of its own, apart from any tf.keras."""
    return api == "keras" and release(version(keras)) < _REDIRECTING


def class_path(instance) -> str:
    """Module and name of an object's class; nothing for None."""
    if instance is None:
        return ""
    return f"{_one_name(type(instance).__module__)}.{type(instance).__qualname__}"


def check(keras, api, framework_version, optimizer):
    """Stopped (`invalid`) unless module and optimizer are those of the api's Keras.

    A layer's class path does not tell: in some versions tf.keras and the private
    tf.python.keras share it. The module's name and the optimizer's path do.
    """
    module, path = _one_name(keras.__name__), class_path(optimizer)
    modules, optimizers = _names(api, release(version(keras)), release(framework_version))
    is_private = module == _PRIVATE_MODULE
    is_right = module.startswith(modules) and is_private == (api == PRIVATE)
    # A model without compile() has no optimizer to tell by.
    if not is_right or not path.startswith(optimizers if optimizer is not None else ""):
        raise Stopped(
            "invalid",
            "wrong_keras",
            f"Asked for {api}, but the Keras in use is {module} with the optimizer {path}, "
            f"where {' or '.join(modules)} with one of {optimizers}* is expected.",
        )


def _names(api, keras, framework):
    """How the module of an api's Keras can be called, and how its optimizers' names begin."""
    if api == PRIVATE:
        return (_PRIVATE_MODULE,), f"{_PRIVATE_MODULE}.optimizer"
    if api == "tf_keras":
        return ("tf_keras",), "tf_keras."
    if api == "tf.keras":
        if framework < _SHARED_BY_TENSORFLOW:
            return ("tensorflow.",), _IN_TENSORFLOW
        return ("keras.", "tensorflow."), "keras."
    if _REDIRECTING <= keras < _SHARED:
        return ("keras",), _IN_TENSORFLOW
    return ("keras",), "keras."


def _one_name(module) -> str:
    """TensorFlow's package has two names in 1.15 to 2.1; which one shows is chance."""
    return module.replace("tensorflow_core.", "tensorflow.", 1)
