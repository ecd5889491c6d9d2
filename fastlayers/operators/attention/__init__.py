"""Operators of attention: those that layers write, ONNX's, and those of transformers in ONNX Runtime's domain."""
