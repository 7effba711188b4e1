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
            self._watch_tensorflow()
        elif backend.framework == "jax" and model is not None and model.layers:
            self._watch_layer(model.layers[-1])

    def stop(self):
        """Put everything back, and forget what was counted: in op-by-op execution it is nothing."""
        self.count = None
        for undo in self._undo:
            undo()
        self._undo = []

    def _watch_tensorflow(self):
        graphs, sessions = _module("python.framework.func_graph"), _module("python.client.session")
        if graphs is None or sessions is None:
            return  # a release that has moved them
        self.count = 0
        is_graph = graphs.FuncGraph

        def made(graph, name, *_, **__):
            # `outer_graph` is the one that was current: a part of a step is made inside of it.
            inside = isinstance(getattr(graph, "outer_graph", None), is_graph)
            if not inside and _is_step(name):
                self.count += 1

        def connected(*_, **__):
            self.count += 1

        self._follow(is_graph, "__init__", made)
        self._follow(sessions.BaseSession, "_make_callable_from_options", connected)

    def _follow(self, owner, name, note):
        original = getattr(owner, name)

        @wraps(original)
        def followed(first, *arguments, **named):
            answer = original(first, *arguments, **named)
            note(first, *arguments, **named)
            return answer

        setattr(owner, name, followed)
        self._undo.append(lambda: setattr(owner, name, original))

    def _watch_layer(self, layer):
        self.count, original = 0, layer.call

        @wraps(original)
        def counted(*arguments, **named):
            self.count += 1
            return original(*arguments, **named)

        layer.call = counted
        self._undo.append(lambda: delattr(layer, "call"))


def _is_step(name) -> bool:
    name = str(name)
    if name.startswith(_NO_STEPS):
        return False
    return _SCRATCH not in name or name == _FUNCTION


def _module(name):
    """A module of TensorFlow's, whose package has another name in 1.15 to 2.1."""
    return sys.modules.get(f"tensorflow.{name}") or sys.modules.get(f"tensorflow_core.{name}")
