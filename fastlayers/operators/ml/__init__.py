"""Operators of classical models (ONNX's domain ai.onnx.ml) and of strings: arrays of objects, which never reach a kernel."""
