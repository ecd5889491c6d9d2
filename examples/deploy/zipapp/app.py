"""The application: prints the share of speech in the packaged recording, or in a file of int16 samples."""

import sys

import numpy as np

import fastlayers as fl


def main() -> None:
    sound = np.fromfile(sys.argv[1] if len(sys.argv) > 1 else fl.example("speech"), np.int16)
    stream = fl.load(fl.example("silero_vad")).stream(size=512, overlap=64)
    found = np.array([p.item() for p in stream(sound, 16_000)])
    print(f"{np.mean(found > 0.5):.0%} speech, {fl.kernels.current()}")
