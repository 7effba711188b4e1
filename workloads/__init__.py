"""The guest: measures one cell inside an environment that it brings nothing to.

Python 3.6 syntax, the standard library, numpy, and the environment's own TensorFlow and Keras.
"""
