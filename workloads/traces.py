"""How often a step was made into a graph, counted where that happens and nowhere else.

In TensorFlow every `tf.function` that is traced makes a FuncGraph, and every function of a session
a callable: counting these costs a step nothing that does neither. Keras 3 on JAX calls a layer
while a step is traced, and not when it runs.
"""

import sys
from functools import wraps

# Graphs that are made while nothing is a graph yet, and that are no step: those of the functions
# of a dataset, those in which Keras builds models, and those that initialize variables.
_NO_STEPS = ("Dataset_", "wrapper_fn", "keras_graph", "initialize", "__forward", "__backward")
# In 1.14 and 2.0, Keras's functions of eager mode are made in one of this name; the others are the
# layers' own, in which models are built.
_SCRATCH = "scratch_graph"
_FUNCTION = "keras_scratch_graph"


class Traces:
    """`count` is how many there were since start(), or None where nothing can be counted."""

    def __init__(self):
        self.count = None
        self._undo = []

    def start(self, backend, model):
        """Count from now on; a `model` is None where each call makes its own."""
        if backend.framework == "tensorflow":
            self._watch_tensorflow(backend.executes_eagerly)
        elif backend.framework == "jax" and model is not None and model.layers:
            self._watch_layer(model.layers[-1])

    def stop(self):
        """Put everything back, and forget what was counted: in op-by-op execution it is nothing."""
        self.count = None
        for undo in self._undo:
            undo()
        self._undo = []

    def _watch_tensorflow(self, eager):
        name, owner, method = (
            ("python.framework.func_graph", "FuncGraph", "__init__")
            if eager
            else ("python.client.session", "BaseSession", "_make_callable_from_options")
        )
        # The package has another name in 1.15 to 2.1; releases to come may have moved the rest.
        module = sys.modules.get(f"tensorflow.{name}") or sys.modules.get(f"tensorflow_core.{name}")
        owner = getattr(module, owner, None)
        if owner is None or not hasattr(owner, method):
            return
        self.count, original = 0, getattr(owner, method)

        @wraps(original)
        def counted(made, *arguments, **named):
            answer = original(made, *arguments, **named)
            self.count += not eager or _is_step(owner, made)
            return answer

        setattr(owner, method, counted)
        self._undo.append(lambda: setattr(owner, method, original))

    def _watch_layer(self, layer):
        self.count, original = 0, layer.call

        @wraps(original)
        def counted(*arguments, **named):
            self.count += 1
            return original(*arguments, **named)

        layer.call = counted
        self._undo.append(lambda: delattr(layer, "call"))


def _is_step(kind, graph) -> bool:
    """Whether a graph is a whole step: a part of one is made inside of another graph."""
    name = str(graph.name)
    if isinstance(graph.outer_graph, kind) or name.startswith(_NO_STEPS):
        return False
    return _SCRATCH not in name or name == _FUNCTION
