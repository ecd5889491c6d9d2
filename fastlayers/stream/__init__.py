"""Networks over sequences that come in pieces: from a network over whole sequences to one over pieces.

Where a network has its states as inputs and outputs, ``pairs`` finds them by their names; where it has not, ``axes`` finds the
axis of time and ``rewrite`` makes a graph of it that has: rules for operators are in ``_steps`` (each step for itself, recurrent
layers), ``_windows`` (convolutions and pools) and ``_shapes``. What feeds states back is `model.stream`.
"""
