#!/usr/bin/env python3
"""Makes tests/golden/<model>.json: what PyTorch computes in f64, for golden_test.cc.

usage: make_golden.py [MODEL...]     needs torch and torchvision (any recent version, CPU)

Not part of the build or of any test: the results are committed.  Weights and inputs come from the
counter formula below, which golden_test.cc has too, so nothing but the results is stored:

  hash(name) = FNV-1a, 64 bit, of the UTF-8 name
  u(name, i) = splitmix64(hash(name) + i * 0x9E3779B97F4A7C15) >> 11, times 2^-53     in [0, 1)

Per parameter: the gradient of the first step (L2 norm, sum, 256 positions), and the losses of ten
SGD steps (lr, no momentum) on the same batch.
"""
import json
import pathlib
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
POSITIONS = 256
STEPS = 10


def name_hash(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def uniform(name, count):
    with np.errstate(over="ignore"):
        x = np.uint64(name_hash(name)) + np.arange(count, dtype=np.uint64) * np.uint64(GOLDEN)
        x = x + np.uint64(GOLDEN)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def positions(count):
    """256 places spread over the tensor, or all of them."""
    if count <= POSITIONS:
        return list(range(count))
    return [(i * count) // POSITIONS for i in range(POSITIONS)]


def weight(name, shape):
    """Normalization scales are near 1, the rest is uniform in +-1/sqrt(fan in)."""
    count = int(np.prod(shape))
    u = uniform(name, count)
    if len(shape) == 1 and name.endswith(".weight"):
        return (0.75 + 0.5 * u).reshape(shape)
    fan_in = count // shape[0] if len(shape) > 1 else 16
    return ((2 * u - 1) / np.sqrt(fan_in)).reshape(shape)


def build(model):
    if model == "mlp":
        net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                            nn.Linear(512, 10))
        return net, (4, 784), 10, 0.1
    if model == "cnn":
        net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                            nn.Linear(13 * 13 * 32, 10))
        return net, (4, 1, 28, 28), 10, 0.01
    if model == "resnet18":
        import torchvision
        # A batch of 4 would be ill-conditioned: the last norms see one value per sample, and
        # PyTorch's own f32 gradients are then 7 % off.  With 8 they agree to 2e-5.
        return torchvision.models.resnet18(num_classes=10), (8, 3, 32, 32), 10, 0.01
    raise SystemExit(f"unknown model {model}")


def rounded(x):
    """10 digits: ten thousand times finer than the strictest tolerance."""
    return float(f"{x:.10g}")


def describe(grad):
    flat = grad.detach().reshape(-1)
    return {"norm": rounded(flat.norm().item()), "sum": rounded(flat.sum().item()),
            "max": rounded(flat.abs().max().item()),
            "values": [rounded(flat[i].item()) for i in positions(flat.numel())]}


def make(model):
    torch.set_default_dtype(torch.float64)
    net, shape, classes, lr = build(model)
    net = net.double().train()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(torch.from_numpy(weight(name, tuple(parameter.shape))))
    image = torch.from_numpy(uniform("image", int(np.prod(shape))).reshape(shape))
    label = torch.from_numpy((uniform("label", shape[0]) * classes).astype(np.int64))
    losses, gradients = [], {}
    for step in range(STEPS):
        net.zero_grad()
        loss = F.cross_entropy(net(image), label)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = {name: describe(p.grad) for name, p in net.named_parameters()}
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= lr * parameter.grad
    statistics = {name: describe(buffer) for name, buffer in net.named_buffers()
                  if not name.endswith("num_batches_tracked")}
    return {"model": model, "torch": torch.__version__, "batch": shape[0], "lr": lr,
            "losses": losses, "gradients": gradients, "statistics": statistics}


def main(models):
    for model in models or ["mlp", "cnn", "resnet18"]:
        path = pathlib.Path(__file__).parent / f"{model}.json"
        text = json.dumps(make(model), indent=None, separators=(",", ":"))
        path.write_text(text.replace('"gradients"', '\n"gradients"').replace('},"', '},\n"') + "\n")
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
