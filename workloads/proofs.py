"""Where the model ran, judged from what one watched step showed: facts in, a proof out."""

from workloads.protocol import Stopped

# Operations that do the work of these models. Others, such as what reads the data or counts the
# steps, stay on the CPU in every TensorFlow.
_WORK = ("matmul", "conv", "biasadd", "apply", "adam")


def of_cpu(devices, visible) -> dict:
    """Proof for a case that asks for the CPU: the framework sees nothing else.

    Stopped (`invalid`) when it does: the model would run there.
    """
    how = _listed(devices, visible)
    if any(kind == "GPU" for _, kind in devices):
        raise Stopped("invalid", "device", f"Asked for the cpu, would run on the gpu: {how}.")
    return {"device": "cpu", "how": how}


def beforehand(devices, visible) -> dict:
    """No proof yet for a case that asks for a GPU; Stopped (`invalid`) when none is seen."""
    how = _listed(devices, visible)
    if not any(kind == "GPU" for _, kind in devices):
        raise Stopped("invalid", "device", f"Asked for the gpu, would run on the cpu: {how}.")
    return {"device": "unknown", "how": f"nothing has been watched so far; {how}"}


def _listed(devices, visible) -> str:
    names = ", ".join(name for name, _ in devices)
    return f"CUDA_VISIBLE_DEVICES={visible}; the framework lists {names}"


def of_gpu(evidence) -> dict:
    """Proof for a case that asks for a GPU; Stopped (`invalid`) when it is disproven.

    Statistics of operations decide alone. Else kernels that were seen do, if the weights are on a
    GPU; and no kernels, with weights and outputs on the CPU, disprove it.
    """
    facts = {
        "weights": sorted({short(device) for device in evidence.weights}),
        "outputs": sorted({short(device) for device in evidence.outputs}),
        "kernels": evidence.kernels,
    }
    on_gpu, elsewhere = _working(evidence.operations)
    if on_gpu or elsewhere:
        facts["operations"] = {"gpu": len(on_gpu), "cpu": len(elsewhere)}
        return _by_operations(on_gpu, elsewhere, evidence.source, facts)
    return _by_kernels(evidence, facts)


def _by_operations(on_gpu, elsewhere, source, facts):
    if not on_gpu:
        _disproven(f"{source} shows {_some(elsewhere)} on the CPU, and no such operation on a GPU")
    how = f"{source}: {len(on_gpu)} operations of the model ran on a GPU"
    if elsewhere:
        how += f", but {len(elsewhere)} on the CPU ({_some(elsewhere)})"
    else:
        how += ", and none on the CPU"
    return {"device": "unknown" if elsewhere else "gpu", "how": how, "facts": facts}


def _by_kernels(evidence, facts):
    where = [*facts["weights"], *facts["outputs"]]
    all_on_gpu = bool(where) and all(_is_gpu(device) for device in where)
    all_on_cpu = bool(where) and not any(_is_gpu(device) for device in where)
    if not evidence.kernels and all_on_cpu:
        _disproven(f"its weights and outputs are on {', '.join(sorted(set(where)))}")
    held = f"weights and outputs are on {', '.join(sorted(set(where))) or 'no known device'}"
    if evidence.kernels is None:
        seen = f"nothing shows GPU kernels ({evidence.source or 'no step could be watched'})"
    else:
        seen = f"{evidence.source}: {evidence.kernels} GPU kernels"
    # Stand-alone Keras answers with arrays, so its outputs are nowhere: kernels tell of them too.
    proven = bool(evidence.kernels) and all_on_gpu
    return {"device": "gpu" if proven else "unknown", "how": f"{seen}; {held}", "facts": facts}


def _disproven(how):
    raise Stopped("invalid", "device", f"Asked for the gpu, but the model ran on the CPU: {how}.")


def _working(operations):
    """Kinds of the operations that do the model's work: those on a GPU, and those elsewhere."""
    work = [(d, kind) for d, kind in operations if any(word in kind.lower() for word in _WORK)]
    on_gpu = [kind for device, kind in work if _is_gpu(device)]
    return on_gpu, [kind for device, kind in work if not _is_gpu(device)]


def _some(kinds) -> str:
    names = sorted(set(kinds))
    most = 4
    return ", ".join(names[:most]) + (" and others" if len(names) > most else "")


def _is_gpu(device) -> bool:
    return any(word in device.lower() for word in ("gpu", "cuda"))


def short(device) -> str:
    """`GPU:0`, out of a name such as `/job:localhost/replica:0/task:0/device:GPU:0`."""
    return device.rpartition("device:")[2] or device
