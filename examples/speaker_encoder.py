"""Who speaks? The network of resemblyzer 0.1.4 turns 1.6 seconds of speech into 256 values, near each other for one voice.

pip download --no-deps resemblyzer==0.1.4 && unzip Resemblyzer-0.1.4-py3-none-any.whl resemblyzer/pretrained.pt
python examples/speaker_encoder.py resemblyzer/pretrained.pt mels.npy

mels.npy: (n, 160, 40), or (160, 40): power in 40 mel bands of 16 kHz sound, in windows of 25 ms, one every 10 ms, such as
librosa.feature.melspectrogram(y=wav, sr=16000, n_fft=400, hop_length=160, n_mels=40).T gives.
"""

import sys

import numpy as np

import fastlayers as fl


class SpeakerEncoder(fl.Layer):
    def __init__(self):
        self.lstm = fl.LSTM(40, 256, num_layers=3, batch_first=True)
        self.linear = fl.Linear(256, 256, activation="relu")

    def forward(self, mels, lengths=None):
        _, (h, _) = self.lstm(mels, lengths=lengths)
        y = self.linear(h[-1])
        return y / np.linalg.norm(y, axis=-1, keepdims=True)


def load(path):
    model = SpeakerEncoder()
    weights = {name: w for name, w in fl.load_weights(path).items() if "similarity" not in name}  # of the training's loss
    model.load_state_dict(weights, prefix="model_state.")
    return model


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    voices = load(sys.argv[1])(np.load(sys.argv[2]).reshape(-1, 160, 40))
    print("likeness of each to each, 1 is the same:", np.round(voices @ voices.T, 3), sep="\n")
