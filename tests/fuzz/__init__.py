"""Fuzzing of every reader: whatever the bytes are, out comes a result or an error of ours, soon and in little memory.

`targets` says what an input is given to and what may come of it; `corpus` makes small real files of every format; `mutate`
changes them, below checksums and directories too; `session` runs one input after the other and keeps what it finds; `engines`
choose the inputs: Atheris, which is guided by coverage, or random values or hypothesis, guided by where readers refuse.

    python -m tests.fuzz onnx --seconds 60

`test_fuzz.py` is a short round of each, and holds what was found to its mending: ``regressions``.
"""
