"""Whether the rows of a batch stand apart in a network: shown by its graph, operator by operator.

``axes`` walks a graph and follows the axis of the batch from the inputs to the outputs; ``rules`` says what each operator does to
it, ``sizes`` follows integers that are computed of sizes, such as the shape that a Reshape gets. What no rule covers mixes rows.
"""
