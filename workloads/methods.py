"""What is timed: one call of the user's method, with everything it needs bound before."""

from typing import Any, Callable, NamedTuple


class Method(NamedTuple):
    """`call()` is one iteration; with `in_steps`, `call(steps)` is that many of them at once."""

    call: Callable[..., Any]
    in_steps: bool = False
    batches: int = 1  # that one call goes through, unless it is `in_steps`
    group: str = "training"  # or testing, inference, step, life_cycle

    @property
    def has_loss(self) -> bool:
        """Whether what it returns holds a loss: see loss_of()."""
        return self.group != "inference"

    def once(self):
        """Run one iteration, whichever form the method has."""
        return self.call(1) if self.in_steps else self.call()


def bind(backend, model, feed, request, knobs, step=None) -> Method:
    """Return the method that the request names, bound to its model and data.

    `step`: a user's own step(model, batch), for the method of that name.
    """
    del knobs, step
    if request.method == "fit":
        return _fit(backend, model, feed, request.input)
    if request.input == "numpy":
        return Method(lambda: model.train_on_batch(feed.first.x, feed.first.y))
    if feed.tensors is not None:
        # The session pulls the next batch whenever it computes these tensors.
        x, y = feed.tensors
        return Method(lambda: model.train_on_batch(x, y))
    iterator = iter(feed.dataset)
    # The batch is pulled inside the call, and so inside the timer: it is a cost of the user's.
    return Method(lambda: model.train_on_batch(*next(iterator)))


def _fit(backend, model, feed, source) -> Method:
    if source == "numpy":
        x, y = feed.first
        return Method(lambda: model.fit(x, y, batch_size=len(x), verbose=0))

    # Stand-alone Keras before 2.4 knows no datasets. It takes the tensors that an iterator yields,
    # or, where the user's code has no graph to put these in, a generator.
    if backend.fits_datasets:

        def data():
            return (feed.dataset,)
    elif feed.tensors is not None:

        def data():
            return feed.tensors
    else:

        def data():
            return ((batch for batch in feed.dataset),)

    def call(steps, callbacks=()):
        return model.fit(*data(), steps_per_epoch=steps, verbose=0, callbacks=list(callbacks))

    return Method(call, in_steps=True)


def loss_of(returned):
    """The loss in what a method returned: a number, a tensor, or a history of one epoch."""
    history = getattr(returned, "history", None)
    return float(history["loss"][-1] if history else returned)
