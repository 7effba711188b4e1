"""A user's own model: a plain file, what it has to define, and what went wrong in it."""

import os
import sys
import traceback
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, Callable, NamedTuple, Optional

from workloads import refusals
from workloads.protocol import Stopped

# Methods that need a model that was compiled; a user's own step may do without.
_COMPILED = (
    "train_on_batch",
    "fit",
    "custom_loop",
    "custom_loop_function",
    "test_on_batch",
    "evaluate",
    "life_cycle",
)


# Packages that are not called as the module in them, where people often need them.
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


class User(NamedTuple):
    """What a workload file defines.

    `build_model(keras, batch_shape)` returns a compiled model, `make_data(batch_shape, rng)` an x
    and a y (arrays, or dicts of them) or a tf.data.Dataset, and `step(model, batch)`, which it may
    leave out, is an iteration of its own.
    """

    build_model: Callable[..., Any]
    make_data: Callable[..., Any]
    step: Optional[Callable[..., Any]] = None


def load(path) -> User:
    """Import a workload file, with its folder first on the path for files beside it.

    Stopped (`failed`, kind `workload`) when it lacks one of the two functions.
    """
    sys.dont_write_bytecode = True  # the folder is the run's: others compare what is in it
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    for needed in User._fields[:2]:
        if not callable(getattr(module, needed, None)):
            raise _wrong(f"{os.path.basename(path)} defines no function {needed}.")
    return User(module.build_model, module.make_data, getattr(module, "step", None))


@contextmanager
def blamed(path):
    """Turn what goes wrong in the user's file into a Stopped that shows their traceback.

    What another part of the guest or the framework knows a reason for keeps it; without a `path`
    nothing is changed.
    """
    try:
        yield
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        known = refusals.stopped(error)
        theirs = _traceback(error, os.path.join(os.path.dirname(path), "")) if path else None
        if theirs is None or known.outcome != "failed":
            raise
        stopped = _wrong(f"{type(error).__name__}: {error}{_hint(error)}")
        stopped.traceback = theirs
        raise stopped from error


def check_data(found):
    """Return what make_data returned; Stopped when it is neither x and y nor a dataset."""
    if hasattr(found, "element_spec") or hasattr(found, "make_initializable_iterator"):
        return found
    if hasattr(found, "batch") and hasattr(found, "prefetch"):
        return found  # a dataset of the oldest kind
    if not isinstance(found, (tuple, list)) or len(found) not in (2, 3):
        raise _wrong(
            f"make_data returned {_a(found)}, where (x, y) or a tf.data.Dataset is expected."
        )
    rows = {len(array) for column in found for array in _arrays(column)}
    if len(rows) != 1:
        told = " and ".join(str(number) for number in sorted(rows))
        raise _wrong(f"make_data returned arrays of different lengths: {told} rows.")
    return tuple(found)


def builder(user, backend, method):
    """Return the user's build_model, which is Stopped when what it returns will not do."""

    def build(keras, batch_shape):
        model = user.build_model(keras, batch_shape)
        _check_model(backend, model, method)
        return model

    return build


def _check_model(backend, model, method):
    """Stopped when this is no model of the api's Keras, or was not compiled to be trained."""
    if not hasattr(model, "fit") or not hasattr(model, "predict_on_batch"):
        raise _wrong(f"build_model returned {_a(model)}, where a compiled model is expected.")
    if not isinstance(model, backend.keras.models.Model):
        raise Stopped(
            "invalid",
            "wrong_keras",
            f"build_model returned {_a(model)}, which is no model of {backend.api}: it has to "
            "build with the keras that it is given.",
        )
    if method in _COMPILED and getattr(model, "optimizer", None) is None:
        raise _wrong(f"build_model returned a model without compile(): {method} needs one.")


def _arrays(column):
    arrays = list(column.values()) if isinstance(column, dict) else [column]
    for array in arrays:
        if not hasattr(array, "shape") or not len(array.shape):
            raise _wrong(
                f"make_data returned {_a(array)} in its x or y, where arrays or dicts are expected."
            )
    return arrays


def _wrong(message) -> Stopped:
    return Stopped("failed", "workload", message)


def _a(found) -> str:
    """`a list`, `nothing`: what somebody returned, in words."""
    if found is None:
        return "nothing"
    kind = type(found)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    size = f" of {len(found)}" if isinstance(found, (tuple, list)) else ""
    return f"a {module}{kind.__qualname__}{size}"


def _hint(error) -> str:
    if not isinstance(error, ImportError) or not getattr(error, "name", None):
        return ""
    module = error.name.partition(".")[0]
    return (
        f". A package is added with --with {_DISTRIBUTIONS.get(module, module)}; for files beside "
        "yours, give the folder."
    )


def _traceback(error, folder):
    """The traceback from the user's first frame on; None when they have no part in it."""
    chain = error
    while chain is not None:
        trimmed = chain.__traceback__
        while trimmed is not None and not _is_theirs(trimmed, folder):
            trimmed = trimmed.tb_next
        if trimmed is not None:
            return "".join(
                traceback.format_exception(type(chain), chain, trimmed, chain=chain is error)
            )
        chain = chain.__cause__ or chain.__context__
    # It does not compile, or a framework that runs their code tells of it in its own words.
    if folder in str(error) or folder in str(getattr(error, "filename", "")):
        return "".join(traceback.format_exception_only(type(error), error))
    return None


def _is_theirs(frame, folder) -> bool:
    return frame.tb_frame.f_code.co_filename.startswith(folder)
