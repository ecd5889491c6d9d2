"""From torch: the network as ONNX, by both of torch's exporters, or its weights alone as .pt."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

import fastlayers as fl

net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
    torch.nn.BatchNorm2d(8),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(8 * 8 * 8, 5),
)
net.eval()  # dropout and batch normalization as they are when the network is used
x = torch.randn(2, 3, 16, 16)
folder = Path(tempfile.mkdtemp())

# A network: the graph with its weights. `dynamo=True` needs onnxscript; sizes that may change get names.
torch.onnx.export(net, (x,), folder / "net.onnx", dynamo=True, dynamic_shapes=({0: "batch"},), external_data=False)
torch.onnx.export(net, (x,), folder / "old.onnx", dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}})

# Weights alone, for fastlayers layers with the same names.
torch.save(net.state_dict(), folder / "net.pt")

want = net(x[:1]).detach().numpy()
for file in ("net.onnx", "old.onnx"):
    model = fl.load(folder / file)
    print(file, "worst error", abs(model(x[:1].numpy()) - want).max())

ours = fl.Sequential(fl.Conv2d(3, 8, 3, stride=2, padding=1), fl.BatchNorm2d(8), fl.ReLU(), fl.Flatten(), fl.Linear(8 * 8 * 8, 5))
ours.load_state_dict(fl.load_weights(folder / "net.pt"))
print("net.pt", "worst error", abs(ours(x[:1].numpy()) - want).max())
