"""Whose time it is: what a profile of Python's functions says of data, training and the rest.

Time counts exclusively: to the innermost root that a function was called from. A function that is
no root itself has its own time divided as its callers have theirs, caller by caller: how long it
took when called by each is measured, and a caller that belongs to two roots divides its part as the
times of its own callers do. Whatever runs under the timed method and is neither data nor
bookkeeping is training, C functions included.
"""

import os
from collections import defaultdict

ROOTS = ("data", "training", "other")

_DATA_FILES = frozenset(
    (
        "array_data_adapter.py",
        "array_slicing.py",
        "data_adapter.py",
        "data_adapter_utils.py",
        "data_utils.py",
        "dataset_ops.py",
        "from_generator_op.py",
        "generator_data_adapter.py",
        "iterator_ops.py",
        "py_dataset_adapter.py",
        "structured_function.py",
        "tf_dataset_adapter.py",
        "torch_data_loader_adapter.py",
    )
)
# Of files that do other things as well: what takes arrays to where a step finds them.
_DATA_NAMES = frozenset(
    (
        "_get_input_from_iterator",
        "_get_next_batch",
        "_prepare_feed_values",
        "_process_inputs",
        "_process_training_inputs",
        "_standardize_inputs",
        "_standardize_tensors",
        "_standardize_user_data",
        "batch_shuffle",
        "cast_if_floating_dtype",
        "cast_if_floating_dtype_and_mismatch",
        "cast_to_model_input_dtypes",
        "check_array_length_consistency",
        "check_loss_and_target_compatibility",
        "convert_to_generator_like",
        "make_batches",
        "slice_arrays",
        "standardize_class_weights",
        "standardize_input_data",
        "standardize_sample_weights",
        "standardize_weights",
    )
)
_OTHER_FILES = frozenset(("callback_list.py", "callbacks.py", "generic_utils.py", "progbar.py"))
# The guest's own: what is timed, and what feeds it.
_OWN = {
    os.path.join("workloads", "methods.py"): "training",
    os.path.join("workloads", "steps.py"): "training",
    os.path.join("workloads", "forms.py"): "data",
    os.path.join("workloads", "inputs.py"): "data",
}
# A conversion is data handling when a loop itself does it to a batch, else a part of the step.
_CONVERSIONS = ("convert_to_tensor", "convert_to_tensor_v2", "convert_to_tensor_v2_with_dispatch")
_LOOPS = ("train_on_batch", "test_on_batch", "predict_on_batch", "fit", "evaluate", "predict")
_MOST_ROUNDS = 100
_SETTLED = 1e-6


def root_of(file, name):
    """The root that a function is, or None for one that belongs to its callers'."""
    base = os.path.basename(file)
    is_library = "keras" in file or "tensorflow" in file
    if is_library and (base in _DATA_FILES or name in _DATA_NAMES):
        return "data"
    if is_library and base in _OTHER_FILES:
        return "other"
    return next((root for end, root in _OWN.items() if file.endswith(end)), None)


def shares(stats) -> dict:
    """The part of each function that belongs to each root: function -> root -> from 0 to 1.

    `stats` as cProfile has them: (file, line, name) -> (calls without recursion, calls, own
    seconds, seconds with all that it called, callers), and of each caller the same four numbers.
    """
    found = {key: _one(root_of(key[0], key[2])) for key in stats}
    open_ones = [key for key in stats if not any(found[key].values())]
    for _ in range(_MOST_ROUNDS):
        change = 0.0
        for key in open_ones:
            share = _mixed(key, stats[key][4], found)
            change = max(change, *(abs(share[root] - found[key][root]) for root in ROOTS))
            found[key] = share
        if change < _SETTLED:
            break
    return {key: share if any(share.values()) else _one("other") for key, share in found.items()}


def own_seconds(stats, found) -> dict:
    """Seconds of each root: every function's own time, caller by caller."""
    seconds = dict.fromkeys(ROOTS, 0.0)
    for key, (_, _, own_s, _, callers) in stats.items():
        for root, part in divided(key, own_s, callers, found).items():
            seconds[root] += part
    return seconds


def divided(key, own_s, callers, found) -> dict:
    """A function's own seconds by root."""
    root = root_of(key[0], key[2])
    if root is not None or not callers:
        return {name: own_s * found[key][name] for name in ROOTS}
    parts, told_s = dict.fromkeys(ROOTS, 0.0), sum(times[2] for times in callers.values())
    for caller, times in callers.items():
        part_s = own_s * times[2] / told_s if told_s else own_s / len(callers)
        for name, share in _share_of(key, caller, found).items():
            parts[name] += part_s * share
    return parts


def _mixed(key, callers, found):
    """Shares of a function by those of its callers, weighed by how long it took for each.

    A caller whose own are not known yet has no say: in a circle of calls they come from outside.
    """
    weights = defaultdict(float)
    for caller, times in callers.items():
        if caller == key:
            continue  # a recursion tells nothing
        for root, share in _share_of(key, caller, found).items():
            weights[root] += share * (times[3] or 1e-9)
    total = sum(weights.values())
    return {root: weights[root] / total if total else 0.0 for root in ROOTS}


def _share_of(key, caller, found):
    if key[2] in _CONVERSIONS and caller[2] in _LOOPS:
        return _one("data")
    return found[caller] if caller in found else _one("other")


def _one(root):
    return {name: float(name == root) for name in ROOTS}
