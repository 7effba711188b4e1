"""What an exception of TensorFlow or Keras means: an outcome, or no more than a note.

Apart from `backend.py`, because it must work when importing TensorFlow is what failed.
"""

from contextlib import contextmanager

from workloads.protocol import Stopped

# What TensorFlow and Keras say when they refuse a mode, not when something in it goes wrong.
_REFUSALS = (
    "tf.placeholder() is not compatible with eager execution",
    "tf.gradients is not supported when eager execution is enabled",
)


def stopped(error) -> Stopped:
    """Return the outcome that an exception stands for."""
    kind, message = type(error).__name__, str(error)
    if isinstance(error, Stopped):
        return error
    if isinstance(error, MemoryError) or kind == "ResourceExhaustedError":
        return Stopped("out_of_memory", kind, message or "Python could not allocate memory.")
    if any(known in message for known in _REFUSALS):
        return Stopped("unsupported", "refused", f"{kind}: {message}")
    return Stopped("failed", kind, message)


@contextmanager
def noted(result, name):
    """Let what fails inside cost no more than itself: the values around it stay a measurement."""
    try:
        yield
    except (Exception, SystemExit) as error:
        result.setdefault("diagnostics", {})[f"{name}_error"] = f"{type(error).__name__}: {error}"
