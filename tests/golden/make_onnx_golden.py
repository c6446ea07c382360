#!/usr/bin/env python3
"""Makes tests/golden/onnx/: model files of PyTorch's exporters, and what PyTorch computes in f64.

usage: make_onnx_golden.py [MODEL...]     needs torch, torchvision, timm, transformers, onnx
       make_onnx_golden.py --condition    prints how far PyTorch's own f32 is from its f64

Not part of the build or of any test: the results are committed; tests/e2e/onnx_golden.py reads
them.  For each model there are

  <model>_<exporter>_<dtype>.onnx  exporter: new (torch.export) or old (TorchScript), with the
                                   options a user gets who gives none; doc strings and metadata
                                   are taken out, parameters and running statistics are external
                                   data: all in the file <dtype>.weights, in the order of "files"
  <model>.json                     the settings, and PyTorch's numbers

Weights and inputs come from the counter formula of make_golden.py.  The gradients are those of the
sum of the output, in evaluation mode; the losses are of ten steps of torch.optim.SGD in training
mode, all on the same batch.
"""
import contextlib
import dataclasses
import io
import json
import logging
import pathlib
import re
import sys
import warnings

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import numpy_helper

from make_golden import describe, distance, uniform, weight
from onnx_fixture import move_out, strip

FOLDER = pathlib.Path(__file__).parent / "onnx"
STEPS = 10
POSITIONS = 16
DTYPES = {"f32": torch.float32, "f64": torch.float64}


class UNet(nn.Module):

    def __init__(self, base=32, classes=2):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(o, o, 3, padding=1), nn.ReLU())

        c = [base * 2**i for i in range(5)]
        self.enc = nn.ModuleList([block(3 if i == 0 else c[i - 1], c[i]) for i in range(5)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(c[i + 1], c[i], 2, stride=2)
                                 for i in range(4)])
        self.dec = nn.ModuleList([block(2 * c[i], c[i]) for i in range(4)])
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        skips = []
        for i, enc in enumerate(self.enc):
            x = enc(x)
            if i < 4:
                skips.append(x)
                x = F.max_pool2d(x, 2)
        for i in reversed(range(4)):
            x = self.dec[i](torch.cat([self.up[i](x), skips[i]], 1))
        return self.head(x)


class GPT(nn.Module):

    def __init__(self, vocab=5000, ctx=256, d=384, layers=6, heads=6):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.ModuleList([nn.ModuleDict(dict(
            ln1=nn.LayerNorm(d), qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d),
            ln2=nn.LayerNorm(d), up=nn.Linear(d, 4 * d), down=nn.Linear(4 * d, d)))
            for _ in range(layers)])
        self.lnf, self.head, self.h = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False), heads

    def forward(self, t):
        B, T = t.shape
        x = self.tok(t) + self.pos(torch.arange(T))
        for b in self.blocks:
            q, k, v = b["qkv"](b["ln1"](x)).view(B, T, 3, self.h, -1).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + b["proj"](a.transpose(1, 2).reshape(B, T, -1))
            x = x + b["down"](F.gelu(b["up"](b["ln2"](x))))
        return self.head(self.lnf(x))


class Bert(nn.Module):

    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertForSequenceClassification
        self.m = BertForSequenceClassification(BertConfig(
            vocab_size=8000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
            intermediate_size=1024, hidden_dropout_prob=0., attention_probs_dropout_prob=0.))

    def forward(self, t):
        return self.m(input_ids=t).logits


class Lstm(nn.Module):
    """A language model of two layers."""

    def __init__(self, vocab=1000, hidden=128):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.lstm = nn.LSTM(hidden, hidden, 2, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, t):
        return self.head(self.lstm(self.embedding(t))[0])


class TwoInputs(nn.Module):
    """An encoder of images, one of texts, one head."""

    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
                                   nn.Conv2d(16, 32, 3, stride=2), nn.GELU(),
                                   nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.embedding = nn.Embedding(100, 32)
        self.text = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.)
        self.head = nn.Linear(64, 10)

    def forward(self, image, tokens):
        text = self.text(self.embedding(tokens)).mean(1)
        return self.head(torch.cat([self.image(image), text], 1))


def resnet50():
    import torchvision
    return torchvision.models.resnet50()


def efficientnet_v2_s():
    import torchvision
    return torchvision.models.efficientnet_v2_s(dropout=0., stochastic_depth_prob=0.)


def vit_ti():
    import timm
    return timm.create_model("vit_tiny_patch16_224", img_size=32)


@dataclasses.dataclass
class Setting:
    build: object
    inputs: dict  # name -> dims, or (dims, below) for integers
    label: tuple  # dims
    classes: int
    lr: float
    plain: bool = False  # new exporter: optimize=False, which leaves parameters as they are
    scaled: tuple = ("^$", 1.0)  # parameters of such names are so much smaller


SETTINGS = {
    "resnet50": Setting(resnet50, {"image": [2, 3, 33, 33]}, [2], 1000, 0.0001, plain=True,
                        scaled=(r"bn3\.weight$", 0.1)),
    "unet": Setting(UNet, {"image": [1, 3, 32, 32]}, [1, 32, 32], 2, 0.1),
    "gpt": Setting(GPT, {"tokens": ([2, 8], 5000)}, [2, 8], 5000, 0.1),
    "bert": Setting(Bert, {"tokens": ([2, 16], 8000)}, [2], 2, 0.01),
    "vit_ti": Setting(vit_ti, {"image": [2, 3, 32, 32]}, [2], 1000, 0.01, plain=True),
    "efficientnet_v2_s": Setting(efficientnet_v2_s, {"image": [3, 3, 33, 33]}, [3], 1000, 0.001,
                                 plain=True, scaled=(r"block\.\d\.1\.weight$", 0.25)),
    "lstm": Setting(Lstm, {"tokens": ([2, 12], 1000)}, [2, 12], 1000, 1.0, plain=True),
    "two_inputs": Setting(TwoInputs, {"image": [4, 3, 17, 17], "tokens": ([4, 7], 100)}, [4], 10,
                          0.05, plain=True),
}


def state_value(name, shape, scaled):
    """Parameters as in make_golden.py; variances are positive."""
    if name.endswith("running_var"):
        return 0.75 + 0.5 * uniform(name, int(np.prod(shape))).reshape(shape)
    return weight(name, shape) * (scaled[1] if re.search(scaled[0], name) else 1)


def build(setting, dtype):
    net = setting.build().to(dtype).eval()
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point():
                value = state_value(name, tuple(tensor.shape), setting.scaled)
                tensor.copy_(torch.from_numpy(value))
    return net


def input_values(name, kind, dtype):
    if isinstance(kind, tuple):
        dims, below = kind
        values = np.floor(uniform(name, int(np.prod(dims))) * below)
        return torch.from_numpy(values.astype(np.int64).reshape(dims))
    values = 2 * uniform(name, int(np.prod(kind))) - 1
    return torch.from_numpy(values.reshape(kind)).to(dtype)


def all_inputs(setting, dtype):
    return tuple(input_values(n, k, dtype) for n, k in setting.inputs.items())


def loss_of(output, label):
    if output.ndim == 3:  # [B,T,V]
        output, label = output.flatten(0, 1), label.flatten()
    return F.cross_entropy(output, label)


def gradients(setting, dtype):
    """-> the output, and gradients of its sum."""
    net = build(setting, dtype)
    output = net(*all_inputs(setting, dtype))
    output.sum().backward()
    return output.detach(), {n: p.grad for n, p in net.named_parameters()}


def losses(setting, dtype):
    net = build(setting, dtype).train()
    inputs = all_inputs(setting, dtype)
    label = input_values("label", (setting.label, setting.classes), dtype)
    optimizer = torch.optim.SGD(net.parameters(), lr=setting.lr)
    result = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(net(*inputs), label)
        loss.backward()
        result.append(loss.item())
        optimizer.step()
    return result


def export(setting, dtype, exporter, path):
    net = build(setting, dtype)
    names = {"input_names": list(setting.inputs), "output_names": ["y"]}
    arguments = (net, all_inputs(setting, dtype), str(path))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if exporter == "new":
            torch.onnx.export(*arguments, dynamo=True, external_data=False,
                              optimize=not setting.plain, **names)
        else:  # the file stays a model to train: normalization is not folded into convolutions
            torch.onnx.export(*arguments, dynamo=False, opset_version=17,
                              training=torch.onnx.TrainingMode.PRESERVE,
                              do_constant_folding=False, **names)
    return net


def find_state(array, name, state):
    """-> (name in PyTorch, transposed), or None: an initializer that is no parameter."""
    named = state.get(name)
    if named is not None and named.shape == array.shape and np.array_equal(named, array):
        return name, False
    for candidate, value in state.items():
        if value.shape == array.shape and np.array_equal(value, array):
            return candidate, False
    for candidate, value in state.items():
        if value.ndim == 2 and value.T.shape == array.shape and np.array_equal(value.T, array):
            return candidate, True
    return None


def make_external(proto, net, dtype):
    """Moves parameters out of the file; -> [name | [initializer, name, transposed], ...]."""
    state = {n: t.detach().numpy() for n, t in net.state_dict().items() if t.is_floating_point()}
    offset, moved = 0, []
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor)
        found = find_state(array, tensor.name, state) if array.dtype.kind == "f" else None
        if found is None:
            continue
        same = found == (tensor.name, False)
        moved.append(tensor.name if same else [tensor.name, *found])
        offset = move_out(tensor, dtype, offset)
    names = {entry if isinstance(entry, str) else entry[1] for entry in moved}
    missing = set(dict(net.named_parameters())) - names
    if missing:
        print(f"  not in the file: {sorted(missing)}", flush=True)
    return moved


def make_file(model, exporter, dtype):
    path = FOLDER / f"{model}_{exporter}_{dtype}.onnx"
    net = export(SETTINGS[model], DTYPES[dtype], exporter, path)
    proto = onnx.load(path)
    strip(proto)
    moved = make_external(proto, net, dtype)
    path.write_bytes(proto.SerializeToString())
    print(f"{path.name}: {path.stat().st_size} bytes, {len(proto.graph.node)} nodes", flush=True)
    return moved


def make_files(model):
    files = {}
    for exporter in ("new", "old"):
        moved = {dtype: make_file(model, exporter, dtype) for dtype in DTYPES}
        if moved["f32"] != moved["f64"]:
            raise SystemExit(f"{model}, {exporter}: f32 and f64 hold other initializers")
        files[exporter] = moved["f32"]
    return files


def make(model):
    setting = SETTINGS[model]
    output, grads = gradients(setting, torch.float64)
    net = setting.build()
    return {"torch": torch.__version__, "lr": setting.lr,
            "scaled": setting.scaled,
            "inputs": {n: {"dims": k[0], "below": k[1]} if isinstance(k, tuple) else {"dims": k}
                       for n, k in {**setting.inputs,
                                    "label": (setting.label, setting.classes)}.items()},
            "files": make_files(model),
            "state": {n: list(t.shape) for n, t in net.state_dict().items()
                      if t.is_floating_point()},
            "losses": losses(setting, torch.float64), "output": describe(output, POSITIONS),
            "gradients": {n: describe(t, POSITIONS) for n, t in grads.items()}}


def write(model):
    path = FOLDER / f"{model}.json"
    text = json.dumps(make(model), separators=(",", ":"))
    for key in ("inputs", "files", "state", "losses", "output", "gradients"):
        text = text.replace(f'"{key}":', f'\n"{key}":')
    path.write_text(text.replace('},"', '},\n"') + "\n")
    print(f"{path.name}: {path.stat().st_size} bytes", flush=True)


def print_condition(model, setting):
    exact, other = (gradients(setting, d)[1] for d in (torch.float64, torch.float32))
    a, b = losses(setting, torch.float64), losses(setting, torch.float32)
    loss = max(abs(x - y) / x for x, y in zip(a, b))
    largest = max(t.abs().max().item() for t in exact.values())
    real = {n: t for n, t in exact.items() if t.abs().max() > 3e-17 * largest}
    print(f"{model} lr {setting.lr}: gradients {distance(real, other):.1e} losses {loss:.1e} "
          f"({a[0]:.4f} -> {a[-1]:.4f}), gradients that are zero: {len(exact) - len(real)}",
          flush=True)


def main(arguments):
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    if arguments[:1] == ["--condition"]:
        for model in arguments[1:] or SETTINGS:
            print_condition(model, SETTINGS[model])
        return
    for model in arguments or SETTINGS:
        write(model)


if __name__ == "__main__":
    main(sys.argv[1:])
