"""Many combinations in one process: each runs for two iterations, or says why it does not."""

from workloads import frameworks, inputs, knobs, methods, models, observing, refusals
from workloads.protocol import Stopped


def sweep(loaded, request, phases, result):
    """Run each of the request's cells at its api and mode; none ends the others."""
    (backend,) = loaded
    frameworks.check_versions(backend, request.expected)
    knobs.after_import(backend, knobs.of(request))
    result["metadata"] = backend.describe()
    phases.begin("warmup")  # from here on the host waits for the whole, not for a first call
    result["sweep"] = []
    for cell in request.cells:
        told = {"outcome": "ok", "failure": None, "executed_as": None}
        try:
            told["executed_as"] = _run(backend, _asked(request, cell))
        except (Exception, SystemExit) as error:
            stopped = refusals.stopped(error)
            told["outcome"] = stopped.outcome
            told["failure"] = {
                "kind": stopped.kind,
                "message": stopped.message,
                "traceback": refusals.traceback_of(stopped),
            }
        result["sweep"].append(dict(cell._asdict(), **told))


def _asked(request, cell):
    """The request of one cell; another model than the request's has its own tiny data."""
    shape = request.batch_shape
    if cell.model != request.model and cell.model in models.MODELS:
        shape = models.MODELS[cell.model].batch_shape
    asked = request._replace(
        model=cell.model,
        input=cell.input,
        method=cell.method,
        knobs=dict(request.knobs, **cell.knobs),
        batch_shape=shape,
    )
    for name in knobs.OF_PROCESS:
        if name in cell.knobs:
            raise Stopped(
                "skipped",
                name,
                f"The knob {name} is of the whole process: it takes one of its own.",
            )
    return asked


def _run(backend, request):
    """How the cell executed; its last iteration is watched."""
    turned = knobs.of(request)
    try:
        backend.set_precision(turned.precision)
        backend.seed(request.seeds)
        feed = inputs.make(backend, request, turned)
        model = models.build(backend, request, turned, feed.batch_shape)
        method = methods.bind(backend, model, feed, request, turned)
        if method.group != "life_cycle":  # which is many steps by itself
            method.once()
        with observing.Observer(backend, model) as seen:
            method.once()
        frameworks.check_keras(backend, model)
        return seen.executed_as
    finally:
        backend.set_precision("float32")
