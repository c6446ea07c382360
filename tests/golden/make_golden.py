#!/usr/bin/env python3
"""Makes tests/golden/<model>.json: what PyTorch computes in f64, for golden_test.cc.

usage: make_golden.py [MODEL...]     needs torch and torchvision (any recent version, CPU)
       make_golden.py --condition    prints how far PyTorch's own f32 is from its f64, by setting

Not part of the build or of any test: the results are committed.  Weights and inputs come from the
counter formula below, which counter.cc has too, so nothing but the results is stored:

  hash(name) = FNV-1a, 64 bit, of the UTF-8 name
  u(name, i) = splitmix64(hash(name) + i * 0x9E3779B97F4A7C15) >> 11, times 2^-53     in [0, 1)

Two batches, named image.0 (points.0), label.0, image.1, label.1, take turns: step t trains on t % 2.  Stored
are the gradient of every parameter on batch 0 before the first step, the losses of ten steps of
torch.optim.SGD, and the running statistics of batch norm after them.
"""
import dataclasses
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
STATISTIC_POSITIONS = 64
STEPS = 10
CLASSES = 10


@dataclasses.dataclass
class Setting:
    spec: str  # for ridge
    sample: tuple
    batch: int
    lr: float
    momentum: float
    input: str = "image"


SETTINGS = {
    "mlp": Setting("mlp", (784,), 8, 0.1, 0.0),
    "cnn": Setting("cnn", (1, 28, 28), 8, 0.01, 0.9),
    "resnet18": Setting("resnet18:image=33,classes=10", (3, 33, 33), 3, 0.001, 0.9),
    "pointnet2": Setting("pointnet2:points=48,centers=16,neighbours=6,radius=0.6,classes=10", (48, 3), 8,
                         0.001, 0.9, "points"),
}


def name_hash(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def counter_bits(name, count):
    with np.errstate(over="ignore"):
        x = np.uint64(name_hash(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (x ^ (x >> np.uint64(31))) >> np.uint64(11)


def uniform(name, count):
    return counter_bits(name, count).astype(np.float64) * 2.0**-53


def positions(count, wanted):
    """All places, or one drawn from each of `wanted` equal parts: even steps would always meet the
    same tap of a kernel, since extents are powers of two."""
    if count <= wanted:
        return list(range(count))
    drawn = counter_bits("positions", wanted)
    starts = [k * count // wanted for k in range(wanted + 1)]
    return [starts[k] + int(drawn[k]) % (starts[k + 1] - starts[k]) for k in range(wanted)]


def weight(name, shape):
    """Normalization scales are near 1, the rest is uniform in +-1/sqrt(fan in)."""
    count = int(np.prod(shape))
    u = uniform(name, count)
    if len(shape) == 1 and name.endswith(".weight"):
        return (0.75 + 0.5 * u).reshape(shape)
    fan_in = count // shape[0] if len(shape) > 1 else 16
    return ((2 * u - 1) / np.sqrt(fan_in)).reshape(shape)


def farthest(places, count):
    """Indices [B,count]: point 0, then each time the farthest from all before."""
    chosen = torch.zeros(len(places), count, dtype=torch.int64)
    nearest = torch.full(places.shape[:2], float("inf"), dtype=places.dtype)
    for i in range(1, count):
        last = places[torch.arange(len(places)), chosen[:, i - 1]].unsqueeze(1)
        nearest = torch.minimum(nearest, ((places - last) ** 2).sum(-1))
        chosen[:, i] = nearest.argmax(1)
    return chosen


def ball(places, centers, radius, count):
    """Indices [B,M,count]: the first points within the radius, filled up with the first."""
    squared = ((centers.unsqueeze(2) - places.unsqueeze(1)) ** 2).sum(-1)
    order = torch.arange(places.shape[1]).expand(squared.shape).clone()
    order[squared > radius * radius] = places.shape[1]
    first = order.sort(-1).values[..., :count]
    return torch.where(first == places.shape[1], first[..., :1], first)


def of_samples(x, indices):
    return torch.stack([sample[places] for sample, places in zip(x, indices)])


class Abstraction(nn.Module):
    def __init__(self, channels, centers=0, neighbours=0, radius=0.0):
        super().__init__()
        self.centers, self.neighbours, self.radius = centers, neighbours, radius
        pairs = list(zip(channels, channels[1:]))
        self.mlp_convs = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in pairs)
        self.mlp_bns = nn.ModuleList(nn.BatchNorm2d(b) for _, b in pairs)

    def forward(self, places, features):
        centers, seen = None, places.unsqueeze(1)
        if self.centers:
            centers = of_samples(places, farthest(places, self.centers))
            group = ball(places, centers, self.radius, self.neighbours)
            seen = of_samples(places, group) - centers.unsqueeze(2)
        if features is not None:
            grouped = of_samples(features, group) if self.centers else features.unsqueeze(1)
            seen = torch.cat([seen, grouped], -1)
        x = seen.permute(0, 3, 2, 1)
        for conv, norm in zip(self.mlp_convs, self.mlp_bns):
            x = F.relu(norm(conv(x)))
        return centers, x.max(2).values.transpose(1, 2)


class PointNet2(nn.Module):
    """PointNet++ with single-scale grouping, after the paper and the names of yanx27's file."""

    def __init__(self, setting):
        super().__init__()
        given = dict(part.split("=") for part in setting.spec.split(":")[1].split(","))
        centers, neighbours = int(given["centers"]), int(given["neighbours"])
        radius = float(given["radius"])
        self.sa1 = Abstraction([3, 64, 64, 128], centers, neighbours, radius)
        self.sa2 = Abstraction([131, 128, 128, 256], centers // 4, 2 * neighbours, 2 * radius)
        self.sa3 = Abstraction([259, 256, 512, 1024])
        self.fc1, self.bn1 = nn.Linear(1024, 512), nn.BatchNorm1d(512)
        self.fc2, self.bn2 = nn.Linear(512, 256), nn.BatchNorm1d(256)
        self.fc3 = nn.Linear(256, CLASSES)

    def forward(self, places):
        x = None
        for level in (self.sa1, self.sa2, self.sa3):
            places, x = level(places, x)
        x = F.relu(self.bn1(self.fc1(x.flatten(1))))
        return self.fc3(F.relu(self.bn2(self.fc2(x))))


def build(model):
    if model == "mlp":
        return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                             nn.Linear(512, CLASSES))
    if model == "cnn":
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(13 * 13 * 32, CLASSES))
    if model == "resnet18":
        import torchvision
        return torchvision.models.resnet18(num_classes=CLASSES)
    if model == "pointnet2":
        return PointNet2(SETTINGS[model])
    raise SystemExit(f"unknown model {model}; there are {', '.join(SETTINGS)}")


def batches(setting, dtype):
    shape = (setting.batch, *setting.sample)
    for k in range(2):
        image = (2 * uniform(f"{setting.input}.{k}", int(np.prod(shape))) - 1).reshape(shape)
        label = (uniform(f"label.{k}", setting.batch) * CLASSES).astype(np.int64)
        yield torch.from_numpy(image).to(dtype), torch.from_numpy(label)


def train(model, setting, dtype):
    """-> losses, gradients of the first step, running statistics after the last."""
    net = build(model).to(dtype).train()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(torch.from_numpy(weight(name, tuple(parameter.shape))))
    data = list(batches(setting, dtype))
    optimizer = torch.optim.SGD(net.parameters(), lr=setting.lr, momentum=setting.momentum)
    losses, gradients = [], {}
    for step in range(STEPS):
        image, label = data[step % 2]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(image), label)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = {name: p.grad.clone() for name, p in net.named_parameters()}
        optimizer.step()
    statistics = {name: buffer for name, buffer in net.named_buffers()
                  if not name.endswith("num_batches_tracked")}
    return losses, gradients, statistics


def rounded(x):
    """10 digits: ten thousand times finer than the strictest tolerance."""
    return float(f"{x:.10g}")


def describe(tensor, wanted, least_max=0.0):
    """`max` is what differences are measured by: at least `least_max`."""
    flat = tensor.reshape(-1)
    return {"dims": list(tensor.shape), "norm": rounded(flat.norm().item()),
            "sum": rounded(flat.sum().item()),
            "max": rounded(max(flat.abs().max().item(), least_max)),
            "values": [rounded(flat[i].item()) for i in positions(flat.numel(), wanted)]}


def make(model):
    setting = SETTINGS[model]
    losses, gradients, statistics = train(model, setting, torch.float64)
    # Batch norm takes a bias before it away: its gradient is rounding alone.
    largest = max(g.abs().max().item() for g in gradients.values())
    least_max = 5e-2 * largest if model == "pointnet2" else 0
    return {"model": setting.spec, "torch": torch.__version__, "batch": setting.batch,
            "lr": setting.lr, "momentum": setting.momentum, "losses": losses,
            "gradients": {n: describe(t, POSITIONS, least_max) for n, t in gradients.items()},
            "statistics": {n: describe(t, STATISTIC_POSITIONS) for n, t in statistics.items()}}


def write(model):
    path = pathlib.Path(__file__).parent / f"{model}.json"
    text = json.dumps(make(model), separators=(",", ":"))
    path.write_text(text.replace('"gradients"', '\n"gradients"').replace('},"', '},\n"') + "\n")
    print(f"{path}: {path.stat().st_size} bytes")


def distance(exact, other):
    """Largest difference over all tensors, each relative to its largest element."""
    return max(((exact[n] - other[n].double()).abs().max() / exact[n].abs().max()).item()
               for n in exact) if exact else 0.0


def print_condition(model, setting):
    exact = train(model, setting, torch.float64)
    other = train(model, setting, torch.float32)
    loss = max(abs(a - b) for a, b in zip(exact[0], other[0])) / max(exact[0])
    print(f"{setting.spec} batch {setting.batch} lr {setting.lr} momentum {setting.momentum}: "
          f"gradients {distance(exact[1], other[1]):.1e} losses {loss:.1e} "
          f"statistics {distance(exact[2], other[2]):.1e}", flush=True)


def print_conditions():
    for model, setting in SETTINGS.items():
        print_condition(model, setting)
    for lr in (0.01, 0.001):
        for image, batch in ((32, 4), (32, 8), (33, 2), (33, 3), (33, 4), (40, 2), (48, 2)):
            print_condition("resnet18", Setting(f"resnet18:image={image},classes=10",
                                                (3, image, image), batch, lr, 0.9))


def main(arguments):
    torch.set_num_threads(1)
    if arguments == ["--condition"]:
        print_conditions()
        return
    for model in arguments or SETTINGS:
        write(model)


if __name__ == "__main__":
    main(sys.argv[1:])
