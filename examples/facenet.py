"""MTCNN's three networks, with the weights of the package facenet-pytorch: where is a face, and is the whole picture one?

pip download --no-deps facenet-pytorch==2.6.0 && unzip facenet_pytorch-2.6.0-py3-none-any.whl "facenet_pytorch/data/*.pt"
python examples/facenet.py facenet_pytorch/data picture.npy

picture.npy: (h, w, 3), bytes.
"""

import sys

import numpy as np

import fastlayers as fl
from fastlayers import functional as F

POOLS = {"pnet": {"prelu1": 2}, "rnet": {"prelu1": 3, "prelu2": 3}, "onet": {"prelu1": 3, "prelu2": 3, "prelu3": 2}}


class Net(fl.Layer):
    def __init__(self, name, weights):
        self.pools, self.layers, make = POOLS[name], [], {4: fl.Conv2d, 2: fl.Linear}
        for layer, w in ((key[:-7], w) for key, w in weights.items() if key.endswith(".weight")):
            setattr(self, layer, make[w.ndim](w.shape[1], w.shape[0], *w.shape[3:]) if w.ndim > 1 else fl.PReLU(len(w)))
            self.layers.append(layer)
        self.load_state_dict(weights)

    def forward(self, x):  # boxes, five points (O-Net's), and the probabilities of "no face" and "face"
        for layer in (name for name in self.layers if "_" not in name):
            x = F.flatten(F.permute(x, (0, 3, 2, 1)), 1) if layer.startswith("dense") else x
            x = getattr(self, layer)(x)
            x = F.max_pool2d(x, self.pools[layer], 2, ceil_mode=True) if layer in self.pools else x
        faces, *places = (getattr(self, name)(x) for name in self.layers if "_" in name)
        return (*places, F.softmax(faces, 1))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    picture = (np.load(sys.argv[2]).transpose(2, 0, 1)[None] - 127.5) / 128
    for name, size in (("pnet", None), ("rnet", 24), ("onet", 48)):
        rows, columns = (np.arange(size or n) * n // (size or n) for n in picture.shape[2:])
        *places, faces = Net(name, fl.load_weights(f"{sys.argv[1]}/{name}.pt"))(picture[:, :, rows[:, None], columns])
        at = faces[0, 1].argmax()  # P-Net gives a map, a window of 12 pixels at every second one
        print(f"{name}: a face with probability {faces[0, 1].flat[at]:.3f}", places[-1].reshape(-1, faces[0, 1].size)[:, at])
