"""What is timed: one call of the user's method, with everything it needs bound before."""

from typing import Any, Callable, NamedTuple

from workloads import forms, inputs, kerases, models
from workloads import knobs as turned
from workloads.protocol import Stopped

_GROUPS = {
    "training": turned.TRAINING,
    "testing": turned.TESTING,
    "inference": turned.INFERENCE,
    "step": ("step",),
    "life_cycle": ("life_cycle",),
}
# What limits how many batches a call takes from data without an end.
_LIMIT = {"fit": "steps_per_epoch", "evaluate": "steps", "predict": "steps"}


def _nothing():
    """Do nothing."""


class Method(NamedTuple):
    """`call()` is one iteration; with `in_steps`, `call(steps)` is that many of them at once.

    `batches`: how many a call() goes through. `group`: methods of one group do the same work.
    `finish()`: puts what was trained back into the model, where the method keeps it elsewhere.
    """

    call: Callable[..., Any]
    in_steps: bool = False
    batches: int = 1
    group: str = "training"
    finish: Callable[[], None] = _nothing

    @property
    def has_loss(self) -> bool:
        """Whether what it returns holds a loss, for loss_of()."""
        return self.group != "inference"

    def once(self):
        """Run one iteration, whichever form the method has."""
        return self.call(1) if self.in_steps else self.call()


def bind(backend, model, feed, request, knobs, *, step=None, build=None) -> Method:
    """Return the method that the request names, bound to its model and data.

    `step`: a user's own step(model, batch), for the method of that name. `build`: makes the model
    anew, for the method `life_cycle`, where it is not one of the guest's. Stopped (`unsupported`)
    where this Keras, mode or framework has no such method.
    """
    name, follow = request.method, feed.form.next
    group = next(group for group, names in _GROUPS.items() if name in names)
    _check_optimizer(model, request, group)
    if name in _LIMIT:
        return _whole(backend, model, feed, name)._replace(group=group)
    if name in ("call", "call_function"):
        call = backend.caller(model, feed, as_function=name == "call_function")
    elif name in ("custom_loop", "custom_loop_function"):
        call, finish = backend.trainer(model, feed, as_function=name == "custom_loop_function")
        return Method(call, group=group, finish=finish)
    elif name == "life_cycle":
        make = build or (lambda: models.build(backend, request, knobs, feed.batch_shape))
        call = _life_cycle(backend, feed, make)
    elif name == "step":
        if step is None:
            raise Stopped("unsupported", "step", "Only a workload file that defines step has it.")

        def call():
            return step(model, follow())
    else:
        run = getattr(model, name)

        def call():
            return run(*follow())

    return Method(call, group=group)


def _check_optimizer(model, request, group):
    """Stopped for an optimizer that can only make a graph of its updates, where all is op by op."""
    optimizer = getattr(model, "optimizer", None)
    trains = group in ("training", "life_cycle") and request.mode == "run_eagerly"
    if trains and optimizer is not None and not hasattr(optimizer, "apply_gradients"):
        raise Stopped(
            "unsupported",
            "optimizer",
            f"{kerases.class_path(optimizer)} has no apply_gradients: it trains in a graph only.",
        )


def _whole(backend, model, feed, name) -> Method:
    """A method that goes through its data by itself."""
    form, in_steps = feed.form, feed.form.in_steps and not feed.epoch
    epoch = feed.epoch if feed.form.in_steps else None
    run = getattr(model, name)
    # Keras before 2.3 has methods of their own for these.
    apart = not backend.fits_generators and isinstance(form, (forms.Generated, forms.Sequenced))
    if apart:
        run = getattr(model, f"{name}_generator")

    def call(steps=epoch, callbacks=()):
        told = form.whole(steps)
        if "steps" in told:
            told[_LIMIT[name]] = told.pop("steps")
        if apart:
            told["generator"] = told.pop("x")
        if name == "fit":
            told.update(feed.validation(), callbacks=list(callbacks))
        return run(verbose=0, **told)

    return Method(call, in_steps=in_steps, batches=epoch or form.batches)


def _life_cycle(backend, feed, build):
    """Clear everything, build and compile, train for ten steps: what a search does all day."""
    fed = [feed]

    def call():
        backend.keras.backend.clear_session()
        if not backend.executes_eagerly and (feed.form.symbolic or feed.form.in_steps):
            fed[0] = feed.renew()  # what it was fed with has gone with the graph
        return _whole(backend, build(), fed[0], "fit").call(inputs.LIFE_CYCLE_STEPS)

    return call


def loss_of(returned):
    """The loss in what a method returned, None where there is none.

    It may be a number, a tensor, a list that begins with one, or a history of one epoch.
    """
    history = getattr(returned, "history", None)
    found = history["loss"][-1] if history else returned
    try:
        return float(found[0] if isinstance(found, (list, tuple)) else found)
    except (TypeError, ValueError):  # whatever a user's own step returns
        return None
