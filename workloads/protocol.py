"""The wire format: a request is read, phases are announced, a result is written.

The names repeat `orchestrator/model/request.py` and `result.py`, because guest and host share files
and never imports; a contract test holds the two together.
"""

import json
import math
import os
import pwd
import re
from typing import Any, Dict, NamedTuple, Optional, Tuple

REQUEST_SCHEMA = "stackrace.request/1"
RESULT_SCHEMA = "stackrace.result/1"

_CHOICES = {
    "action": ("measure", "probe", "describe", "profile", "sweep"),
    "api": ("keras", "tf.keras", "tf_keras", "tf.python.keras"),
    "mode": ("graph", "eager", "run_eagerly"),
    "input": (
        "numpy",
        "tensor",
        "generator",
        "sequence",
        "dataset",
        "dataset_cached",
        "dataset_prefetch",
        "given",
    ),
    "method": (
        "train_on_batch",
        "fit",
        "custom_loop",
        "custom_loop_function",
        "step",
        "test_on_batch",
        "evaluate",
        "predict",
        "predict_on_batch",
        "call",
        "call_function",
        "life_cycle",
    ),
    "device": ("cpu", "gpu"),
}
_POSITIVE = ("batches", "iterations", "minimum_iterations", "budget_s")


class Stopped(Exception):  # noqa: N818 (it is often no error: `unsupported` is knowledge)
    """There will be no number, for a known reason, which becomes the result's outcome."""

    def __init__(self, outcome, kind, message):
        super().__init__(message)
        self.outcome = outcome
        self.kind = kind
        self.message = message
        self.traceback = None  # of a user's own file: the part that is theirs


class Expected(NamedTuple):
    """The versions that must really be there; one framework is named, unless it is not known."""

    tensorflow: str = ""
    jax: str = ""
    torch: str = ""
    keras: str = ""


class Seeds(NamedTuple):
    """Fixed as the origin fixes them."""

    numpy: int = 1
    python: int = 2
    tensorflow: int = 3


class SweepCell(NamedTuple):
    """One combination of a sweep."""

    input: str
    method: str
    model: str = "tiny"
    knobs: Dict[str, str] = {}  # noqa: RUF012 (a tuple's default, and only read)


class Request(NamedTuple):
    """What this process is to do; the meaning of each field stands on the host's side."""

    action: str
    environment: str
    phase_path: str
    expected: Expected = Expected()
    api: str = "tf.keras"
    mode: str = "graph"
    model: str = "tiny"
    data: str = "tiny"
    batch_shape: Tuple[int, ...] = (8, 20, 30)
    batches: int = 8
    input: str = "numpy"
    method: str = "train_on_batch"
    device: str = "cpu"
    knobs: Dict[str, str] = {}  # noqa: RUF012 (a tuple's default, and only read)
    workload: str = ""
    cells: Tuple[SweepCell, ...] = ()
    trace_folder: str = ""
    parameters: Optional[int] = None
    iterations: int = 1
    minimum_iterations: int = 3
    warmup: int = 1
    budget_s: float = 60.0
    seeds: Seeds = Seeds()
    parent_pid: Optional[int] = None
    host_on_stdin: bool = False


# How JSON spells the types that are not written as themselves.
_SPELLED = {
    float: (int, float),
    Dict[str, str]: (dict,),
    Expected: (dict,),
    Optional[int]: (int, type(None)),
    Seeds: (dict,),
    Tuple[SweepCell, ...]: (list,),
    Tuple[int, ...]: (list,),
}


def read_request(path) -> Request:
    """Read and check the request; Stopped (`failed`, kind `request`) when it is not one."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        raise malformed(f"{path} is not readable JSON: {error}") from error
    if not isinstance(found, dict):
        raise malformed("it is not a JSON object")
    schema = found.pop("schema", None)
    if schema != REQUEST_SCHEMA:
        raise malformed(f"its schema is {schema!r}, this guest reads {REQUEST_SCHEMA!r}")
    for name, value in found.items():
        _check(name, value)
    try:
        found["expected"] = Expected(**found.get("expected", {}))
        found["seeds"] = Seeds(**found.get("seeds", {}))
        found["cells"] = tuple(SweepCell(**cell) for cell in found.get("cells", ()))
        found["batch_shape"] = tuple(found.get("batch_shape", (8, 20, 30)))
        request = Request(**found)
    except TypeError as error:
        raise malformed(f"a field is missing or unknown: {error}") from error
    named = [name for name in Expected._fields[:-1] if getattr(request.expected, name)]
    if len(named) != 1 and request.action != "describe":
        raise malformed(f"it expects {' and '.join(named) or 'no framework'}, and not one")
    return request


def malformed(problem) -> Stopped:
    """What to raise for a request that cannot be done as it stands."""
    return Stopped("failed", "request", f"This guest cannot read its request: {problem}.")


def _check(name, value):
    """Refuse a value that the field cannot have; what is measured must be what was asked for."""
    kind = Request.__annotations__.get(name)
    if kind is None:
        raise malformed(f"it has an unknown field {name!r}")
    is_misplaced = isinstance(value, bool) and kind is not bool  # to Python, True is a number
    if is_misplaced or not isinstance(value, _SPELLED.get(kind, (kind,))):
        raise malformed(f"{name} cannot be {value!r}")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise malformed(f"{name} {value!r} is not one of {', '.join(_CHOICES[name])}")
    if name in _POSITIVE and value <= 0:
        raise malformed(f"{name} must be more than zero, not {value!r}")
    if name == "batch_shape" and not _is_shape(value):
        raise malformed(f"batch_shape {value!r} is not a batch and the shape of a sample")


def _is_shape(value) -> bool:
    axes = 2  # at least
    return len(value) >= axes and all(type(size) is int and size > 0 for size in value)


def announce(phase_path, name):
    """Append the name of the phase that begins: the host's limits depend on it."""
    with open(phase_path, "a", encoding="utf-8") as file:
        file.write(name + "\n")


def write_result(path, result):
    """Leave a complete result or none: temporary name, fsync, rename."""
    nulls = {}
    body = _jsonable(dict(result, schema=RESULT_SCHEMA), "", nulls, _home())
    body["nulls"] = nulls
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(body, file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _jsonable(value: Any, field, nulls, home):
    """`value` as JSON can hold it; why a number became null goes to `nulls`, by field."""
    if isinstance(value, dict):
        return {
            _text(str(key), home): _jsonable(
                item, f"{field}.{key}" if field else str(key), nulls, home
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_jsonable(item, field, nulls, home) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        nulls.setdefault(field, f"{value} is not a finite number")
        return None
    return _text(value, home) if isinstance(value, str) else value


def _text(value, home) -> str:
    """Paths and variables may hold bytes that are no text; JSON readers refuse those.

    Tracebacks, messages and settings hold paths below the user's home: results are shared, so its
    name stays behind.
    """
    return home.sub("~", value).encode("utf-8", "backslashreplace").decode("utf-8")


def _home():
    """Return a pattern of the user's home; HOME is the job's own, so the accounts are asked."""
    try:
        folder = pwd.getpwuid(os.getuid()).pw_dir.rstrip("/")
    except KeyError:  # in a container, a user without an account
        folder = ""
    return re.compile(re.escape(folder) + r"(?![\w.-])" if folder else "(?!)")
