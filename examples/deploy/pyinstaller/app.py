"""A program to freeze: prints the share of speech in the packaged recording, or in a file of int16 samples.

pyinstaller --onedir app.py          or --onefile; dist/app/app, or dist/app, needs no Python
"""

import sys

import numpy as np

import fastlayers as fl

if __name__ == "__main__":
    sound = np.fromfile(sys.argv[1] if len(sys.argv) > 1 else fl.example("speech"), np.int16)
    stream = fl.load(fl.example("silero_vad")).stream(size=512, overlap=64)
    found = np.array([p.item() for p in stream(sound, 16_000)])
    print(f"{np.mean(found > 0.5):.0%} speech, {fl.kernels.current()}")
