"""What an exception of TensorFlow or Keras means: an outcome, or no more than a note.

Apart from the backends, because it must work when importing TensorFlow is what failed.
"""

import traceback
from contextlib import contextmanager

from workloads.protocol import Stopped

# What TensorFlow and Keras say when they refuse a mode, not when something in it goes wrong.
_REFUSALS = (
    "tf.placeholder() is not compatible with eager execution",
    "tf.gradients is not supported when eager execution is enabled",
    "Call the `batch` method on the input Dataset in order to be able to split your input",
    # Keras 2.3.1 makes some values eagerly whatever the mode: the bias of an LSTM, for one, and
    # those of an optimizer that it saves.
    "Attempting to capture an EagerTensor without building a function",
    "numpy() is only available when eager execution is enabled",
)
_NO_MEMORY = (
    "bad_alloc",
    "Cannot allocate memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUDA out of memory",
    "RESOURCE_EXHAUSTED",
)
# The wheel has no code for this GPU: nothing that another attempt changes.
_NO_CODE = (
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "device kernel image is invalid",
    "no kernel image is available",
)
# A GPU that went away, was taken, or broke: it lies outside of what is measured.
_GPU_LOST = (
    "CUDA-capable device(s) is/are busy or unavailable",
    "CUDA_ERROR_",
    "GPU is lost",
    "failed to get device",
    "no CUDA-capable device is detected",
    "uncorrectable ECC error",
)
# What the model's own code does wrong on a GPU that is there.
_OWN_FAULT = ("ILLEGAL_ADDRESS", "LAUNCH_FAILED", "illegal memory access", "INVALID_VALUE")
_INTERNAL = ("AcceleratorError", "InternalError", "JaxRuntimeError", "XlaRuntimeError")


def stopped(error) -> Stopped:
    """Return the outcome that an exception stands for."""
    kind, message = type(error).__name__, str(error)
    if isinstance(error, Stopped):
        return error
    if isinstance(error, MemoryError) or kind == "ResourceExhaustedError" or _is(_NO_MEMORY, error):
        return Stopped("out_of_memory", kind, message or "Python could not allocate memory.")
    if any(known in message for known in _REFUSALS):
        return Stopped("unsupported", "refused", f"{kind}: {message}")
    return _of_gpu(error) or Stopped("failed", kind, message)


def traceback_of(stopped):
    """Return where a failure comes from, where its message alone may not tell; else None.

    Of what is wrong with a user's own file it is their part, never the guest's.
    """
    if stopped.kind == "workload":
        return stopped.traceback
    return traceback.format_exc() if stopped.outcome in ("failed", "environment_error") else None


def _of_gpu(error):
    """Return what it means if it is the GPU's; else None."""
    told = f"{type(error).__name__}: {error}"
    if _is(_NO_CODE, error):
        why = "This build has no code that this GPU can run."
        return Stopped("unsupported", "gpu_code", f"{why} {told}")
    if _is_gpu_lost(error):
        why = "The GPU went away, was taken by somebody else, or broke while the job ran."
        return Stopped("environment_error", "gpu_lost", f"{why} {told}")
    return None


def not_imported(error):
    """Return what it means that importing failed.

    A module or library that is missing or cannot be read is the environment's fault; whatever else
    happens in an import is a failure like any other.
    """
    known = stopped(error)
    if known.outcome != "failed" or not isinstance(error, (ImportError, OSError)):
        return known
    name = getattr(error, "name", None) or getattr(error, "filename", None) or "A module"
    return Stopped(
        "environment_error", "import", f"{name} could not be imported. {known.kind}: {error}"
    )


def _is(known, error) -> bool:
    return any(text in str(error) for text in known)


def _is_gpu_lost(error) -> bool:
    if _is(_OWN_FAULT, error):
        return False
    return _is(_GPU_LOST, error) or (type(error).__name__ in _INTERNAL and "CUDA" in str(error))


@contextmanager
def noted(result, name):
    """Let what fails inside cost no more than itself: the values around it stay a measurement."""
    try:
        yield
    except (Exception, SystemExit) as error:
        result.setdefault("diagnostics", {})[f"{name}_error"] = f"{type(error).__name__}: {error}"
