"""TensorFlow without Keras's own loops: a model that is called, and a step of the user's own.

No TensorFlow is imported here: the backend that is handed in has it.
"""

from itertools import cycle

from workloads import kerases
from workloads.forms import mapped
from workloads.protocol import Stopped


def loss_of(backend, model):
    """Return a function of targets, answers and weights: the mean loss, as the model's is.

    Stopped (`unsupported`) for a model that has not one output and one loss.
    """
    tf, named = backend.tf, getattr(model, "loss", None)
    single = not isinstance(named, (dict, list, tuple)) and len(model.outputs) == 1
    if not named or not single:
        raise Stopped(
            "unsupported",
            "loss",
            "The custom loop computes one loss of one output: for others give a step of your own.",
        )
    function = backend.keras.losses.get(named)
    sparse = "sparse" in str(getattr(function, "__name__", named))

    def loss(targets, answers, weights=None):
        if not sparse:
            targets = tf.cast(targets, answers.dtype)
        values = function(targets, answers)
        if weights is not None:
            values = values * tf.cast(weights, values.dtype)
        return tf.reduce_mean(values)

    return loss


def eager_caller(backend, model, feed, *, as_function):
    """Call the model with a tensor of each batch; its answer is read back as an array."""
    run, follow = model, feed.form.next
    if as_function:
        # Old releases take a function, but not the model, for one.
        run = backend.tf.function(lambda x: model(x))  # noqa: PLW0108
    return lambda: run(backend.as_inputs(follow()[0])).numpy()


def eager_trainer(backend, model, feed, *, as_function):
    """One step under a GradientTape, op by op or as a function; the loss is read back."""
    tf, optimizer, follow = backend.tf, model.optimizer, feed.form.next
    if not hasattr(optimizer, "apply_gradients"):
        raise Stopped(
            "unsupported",
            "optimizer",
            f"{kerases.class_path(optimizer)} has no apply_gradients: it is only Keras's own.",
        )
    compute, variables = loss_of(backend, model), model.trainable_weights
    # A half-precision policy wraps the optimizer: Keras 2 scales loss and gradients apart.
    scale = getattr(optimizer, "get_scaled_loss", None) or getattr(optimizer, "scale_loss", None)
    unscale = getattr(optimizer, "get_unscaled_gradients", None)

    def step(x, y, weights=None):
        with tf.GradientTape() as tape:
            loss = compute(y, model(x, training=True), weights)
            scaled = scale(loss) if scale else loss
        gradients = tape.gradient(scaled, variables)
        if unscale:
            gradients = unscale(gradients)
        optimizer.apply_gradients(zip(gradients, variables))
        return loss

    run = tf.function(step) if as_function else step

    def call():
        x, *others = follow()
        return float(run(backend.as_inputs(x), *map(backend.as_tensor, others)))

    return call


def graph_caller(backend, model, feed):
    """Compute the model's answer in the session: to what is fed, or to tensors of the graph."""
    symbolic, follow = feed.form.symbolic, feed.form.next
    if symbolic:
        answers = [model(backend.as_inputs(columns[0])) for columns in symbolic]
        session, turns = backend.session(), cycle(answers).__next__
        return lambda: session.run(turns())
    session, answer = backend.session(), model.outputs[0]
    feeding = _feeding(model)
    return lambda: session.run(answer, feeding(follow()[0]))


def graph_trainer(backend, model, feed):
    """What the optimizer does to lessen the loss, and the loss, computed in the session."""
    compute, symbolic, follow = loss_of(backend, model), feed.form.symbolic, feed.form.next
    phase = backend.learning_phase()

    def step(answers, y, weights=None):
        loss = compute(y, answers, weights)
        updates = model.optimizer.get_updates(loss=loss, params=model.trainable_weights)
        return [loss, backend.tf.group(*updates)]

    if symbolic:
        steps = [step(model(backend.as_inputs(x)), *others) for x, *others in symbolic]
        session, turns = backend.session(), cycle(steps).__next__
        return lambda: session.run(turns(), phase)[0]
    placeholder = backend.tf.compat.v1.placeholder
    others = [placeholder(column.dtype, [None] * column.ndim) for column in feed.first.columns[1:]]
    training = step(model.outputs[0], *others)
    session, feeding = backend.session(), _feeding(model)

    def call():
        x, *columns = follow()
        fed = feeding(x)
        fed.update(zip(others, columns))
        fed.update(phase)
        return session.run(training, fed)[0]

    return call


def _feeding(model):
    """Return what makes a session's feed of a batch's x."""
    if len(model.inputs) == 1:
        return lambda x: {model.inputs[0]: x}
    names = dict(zip(model.input_names, model.inputs))
    return lambda x: {names[name]: array for name, array in x.items()}


def numbers(backend, column, *, as_floats):
    """A column as tensors; floats in the type that models take, if they are for a model."""
    tf, wanted = backend.tf, backend.keras.backend.floatx()

    def convert(value):
        is_float = str(getattr(value.dtype, "name", value.dtype)).startswith(("float", "bfloat"))
        dtype = wanted if as_floats and is_float else None
        if tf.is_tensor(value):
            return tf.cast(value, dtype) if dtype else value
        return tf.convert_to_tensor(value.astype(dtype) if dtype else value)

    return mapped(convert, column)
