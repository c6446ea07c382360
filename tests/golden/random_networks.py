#!/usr/bin/env python3
"""Compares `ridge grad` with PyTorch on public networks that a random draw has chosen.

usage: random_networks.py --ridge build/release/bin/ridge --work FOLDER [--seed N]
                          [--counts timm=16,torchvision=8,transformers=16]
                          [--only SOURCE/NAME,...] [--batches 1,3] [--exporters old,new]
                          [--named]    draws among those that the project names
                          [--fresh]    weights as the network's own constructor draws them, so
                                       that values are exactly 0 at many a kink
       random_networks.py --work FOLDER --table      prints FOLDER/results.jsonl in Markdown

Needs torch, torchvision, timm, transformers, onnx, onnxscript, onnxruntime; no network: all weights
are random.  Not part of the build or of any test: MODELS.md holds what it found.

Each source's names are shuffled by the seed and walked until so many networks are compared; at most
one of a family (a module of timm or torchvision, the first word of a type of transformers).  Passed
over, with the reason, are those that a file of this project names, those of more than 40 million
parameters (transformers: after all widths have been made small, so each is an architecture and no
published size) and those that cannot be built from text, an image or a waveform alone.

A network runs at a small image or sequence, in evaluation mode, and in training mode where it has
batch norm (the older exporter's file: the newer one writes it as in evaluation), with dropout 0.
Its file is exported with the very batch that it runs with, by PyTorch's older exporter and its
newer one, and holds sum(output * c) for random c, which are inputs: their gradients are the
outputs.

A difference is relative to the largest element of a gradient, or to 1e-4 of the largest of all.
f32 agrees to 2e-3; beyond that, or beyond 1e-4 and 20 times PyTorch's own f32 error, the network is
exported in f64 and has to agree to 1e-6.
"""
import argparse
import contextlib
import inspect
import io
import json
import logging
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import time
import traceback
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import onnx
import timm
import torch
import torch.nn as nn
import torchvision
import transformers
from torch.utils import _pytree
from transformers.models.auto import modeling_auto

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTION = "## Drawn at random"  # of MODELS.md: names below it are this script's own
LARGEST = 40_000_000
SIZES = (64, 96, 128, 160, 192, 224, 256)
SECONDS = 900  # for one network
BOUNDS = {"f32": 2e-3, "f64": 1e-6}
DTYPES = {"f32": torch.float32, "f64": torch.float64}


class Skip(Exception):
    """The network is passed over; the text says why."""


# ---- the draw


def plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def named_words():
    """Every word of the project's files, and its beginnings up to an underscore."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    words = set()
    for file in files.split("\n"):
        path = ROOT / file
        if not path.is_file() or path.resolve() == pathlib.Path(__file__).resolve():
            continue
        text = path.read_bytes().decode("utf-8", "ignore")
        if file.endswith("MODELS.md"):
            text = re.sub(rf"\n{SECTION}.*?(?=\n## |\Z)", "\n", text, flags=re.S)
        words |= set(re.findall(r"[A-Za-z][A-Za-z0-9_.-]+", text))
    return {plain(re.sub(r"^hf_", "", w)) for w in words}


def family(source, name):
    if source == "timm":
        return timm.models._registry._model_to_module[name]
    if source == "torchvision":
        return torchvision.models.get_model_builder(name).__module__
    return re.match(r"[a-z]+", name).group()


def candidates(source):
    if source == "timm":
        return sorted(timm.list_models())
    if source == "torchvision":
        return sorted(n for n in torchvision.models.list_models()
                      if not n.startswith("quantized_")
                      and ".detection" not in family(source, n))
    return sorted(modeling_auto.MODEL_MAPPING_NAMES)


def draw(source, seed, want_named):
    """All candidates in random order that the project names, or that it does not."""
    words = named_words()
    names = candidates(source)

    def named(name):
        parts = re.split(r"[_-]", name)
        starts = [name] if source != "transformers" else [
            "_".join(parts[:k + 1]) for k in range(len(parts))]
        return any(plain(start) in words for start in starts)

    random.Random(f"{seed}:{source}").shuffle(names)
    chosen = [n for n in names if named(n) == want_named]
    print(f"{source}: the project names {len(chosen)} of {len(names)} networks" if want_named else
          f"{source}: the project does not name {len(chosen)} of {len(names)} networks",
          f"seed {seed} draws {' '.join(chosen[:40])} ...", sep="; ", flush=True)
    return chosen


# ---- networks


def check_size(make):
    with contextlib.suppress(RuntimeError, NotImplementedError), torch.device("meta"):
        count = sum(p.numel() for p in make().parameters())
        if count > LARGEST:
            raise Skip(f"{count / 1e6:.0f} million parameters")


def first_that_runs(makers):
    """The first of (make, inputs) whose network takes its inputs -> (net, inputs)."""
    reason = "nothing to try"
    for make, inputs in makers:
        try:
            torch.manual_seed(1)
            net = make().eval()
            with torch.no_grad():
                net(*inputs(1).values())
            return net, inputs
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
    raise Skip(reason.split("\n")[0][:150])


def image_of(size, channels=3, frames=()):
    return lambda batch: {"image": torch.randn(batch, channels, *frames, size, size)}


def build_timm(name):
    check_size(lambda: timm.create_model(name, num_classes=10))
    channels = timm.get_pretrained_cfg(name).input_size[0] if timm.get_pretrained_cfg(name) else 3
    return first_that_runs(
        (lambda o=options: timm.create_model(name, num_classes=10, **o), image_of(size, channels))
        for size in SIZES for options in ({"img_size": size}, {}))


def build_torchvision(name):
    base = {"weights": None}
    parameters = inspect.signature(torchvision.models.get_model_builder(name)).parameters
    for key, value in {"weights_backbone": None, "num_classes": 10, "init_weights": False}.items():
        if key in parameters:
            base[key] = value
    if "raft" in name:
        base.pop("num_classes", None)

    def make(**options):
        try:
            return torchvision.models.get_model(name, **base, num_classes=10, **options)
        except TypeError:
            return torchvision.models.get_model(name, **base, **options)

    check_size(make)
    frames = (8,) if ".video" in family("torchvision", name) else ()

    def inputs(size):
        if "raft" in name:
            return lambda b: {n: torch.randn(b, 3, size, size) for n in ("a", "b")}
        return image_of(size, 3, frames)

    return first_that_runs((lambda o=options: make(**o), inputs(size))
                           for size in SIZES for options in ({"image_size": size}, {}))


# What configurations of transformers call their sizes.
SMALL = [
    (r"(num|n)_(hidden_|encoder_|decoder_)?layers?|(encoder|decoder)_(num_)?layers|num_blocks|"
     r"depth|n_layers?|layers", 2),
    (r"hidden_size|d_model|n_embd|embed_dim|emb_dim|embedding_size|dim|embedding_dim|width|"
     r"decoder_hidden_size|word_embed_proj_dim|projection_dim|hidden_dim|output_dim|model_dim", 32),
    (r"(num|n)_(attention_|encoder_attention_|decoder_attention_)?heads?|"
     r"(encoder|decoder)_attention_heads|num_heads|decoder_num_attention_heads", 4),
    (r"num_key_value_heads|num_kv_heads|multi_query_group_num", 2),
    (r"head_dim|attention_head_dim|d_kv|qk_nope_head_dim|qk_rope_head_dim|v_head_dim|"
     r"global_head_dim", 8),
    (r"(moe_|shared_expert_|expert_)?intermediate_size|(encoder_|decoder_)?ffn_dim|d_ff|n_inner|"
     r"ffn_hidden_size|dim_feedforward|decoder_intermediate_size|mlp_dim|feed_forward_size", 64),
    (r"(\w*_)?vocab_size(_\w+)?", 99),
    (r"max_position_embeddings|n_positions|max_seq_len\w*|n_ctx|max_(source|target)_positions", 64),
    (r"(num|n)_(local_|routed_)?experts", 4),
    (r"num_experts_per_tok(en)?|top_k|moe_top_?k", 2),
    (r"(q|kv|o)_lora_rank|lora_rank", 16),
    (r"rotary_dim", 4),
    (r"pad_token_id", 0), (r"(bos|decoder_start)_token_id", 1), (r"eos_token_id", 2),
    (r"image_size|img_size", 64),
]
# What they derive from the sizes, and names.
DERIVED = (r"layer_types|mlp_layer_types|no_rope_layers|moe_layers|per_layer_config|qk_head_dim|"
           r"rope_parameters|attention_types|attention_layers|out_features|out_indices|stage_names|"
           r"transformers_version|model_type|architectures|dtype")


def shrunk(values):
    small = {}
    for key, value in values.items():
        if re.fullmatch(DERIVED, key) or key.startswith("_"):
            continue
        if isinstance(value, dict) and ("model_type" in value or key.endswith("_config")):
            small[key] = {**shrunk(value), **{k: value[k] for k in ("model_type",) if k in value}}
        elif "drop" in key and isinstance(value, (int, float)):
            small[key] = 0.0
        elif key == "depths" and isinstance(value, (list, tuple)):
            small[key] = [1] * len(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            rule = next((n for pattern, n in SMALL if re.fullmatch(pattern, key)), None)
            if key == "num_key_value_heads" and value == values.get("num_attention_heads"):
                rule = 4  # none is shared
            small[key] = value if rule is None else min(rule, value) if value > 0 else value
        else:
            small[key] = value
    return small


def text_inputs(parameters, config):
    below = min(99, getattr(config.get_text_config(), "vocab_size", 99))
    names = [n for n in ("input_ids", "decoder_input_ids") if n in parameters]

    def inputs(batch):
        values = {n: torch.randint(3, below, (batch, 12)) for n in names}
        if "attention_mask" in parameters:  # else it is made by operators of no exporter
            values["attention_mask"] = (torch.arange(batch * 12) < batch * 12 - 2).view(
                batch, 12).long()
        return values

    return inputs


def all_inputs_of(net, config):
    """Makers of inputs to try, by the names of the network's arguments."""
    parameters = inspect.signature(net.forward).parameters
    main = net.main_input_name
    vision = getattr(config, "vision_config", None)
    channels = getattr(config, "num_channels", 3)
    tries = []
    if "input_ids" in parameters and "pixel_values" in parameters and vision is not None:
        text = text_inputs(parameters, config)
        tries.append(lambda b: {**text(b), "pixel_values": torch.randn(
            b, 3, getattr(vision, "image_size", 64), getattr(vision, "image_size", 64))})
    if "input_ids" in parameters:
        tries.append(text_inputs(parameters, config))
    sizes = [s for s in (getattr(config, "image_size", None), 64, 128, 224) if isinstance(s, int)]
    for size in dict.fromkeys(sizes) if main == "pixel_values" else ():
        tries.append(lambda b, s=size: {main: torch.randn(b, channels, s, s)})
        tries.append(lambda b, s=size: {main: torch.randn(b, 4, channels, s, s)})
    if main in ("input_values", "input_features"):
        bins = [getattr(config, n) for n in ("num_mel_bins", "feature_size", "input_dim") if
                hasattr(config, n)]
        tries += [lambda b: {main: torch.randn(b, 1600)}, lambda b: {main: torch.randn(b, 1, 1600)}]
        for n in bins:
            tries += [lambda b, n=n: {main: torch.randn(b, 48, n)},
                      lambda b, n=n: {main: torch.randn(b, n, 48)}]
    return parameters, tries


class Named(nn.Module):
    """A network of transformers whose inputs come by name; `net` is a part, so names are plain."""

    def __init__(self, net, names, options):
        super().__init__()
        self.net, self.names, self.options = net, names, options

    def forward(self, *inputs):
        return self.net(**dict(zip(self.names, inputs)), **self.options)


def build_transformers(name):
    kind = modeling_auto.MODEL_MAPPING_NAMES[name]
    cls = getattr(transformers, kind if isinstance(kind, str) else kind[0])
    default = transformers.AutoConfig.for_model(name)
    config = type(default)(**shrunk(default.to_dict()))
    for part in (config, *(getattr(config, k) for k in getattr(config, "sub_configs", {}))):
        if part is not None:
            part.use_cache = False
            part._experts_implementation = "batched_mm"
    check_size(lambda: cls(config))
    torch.manual_seed(1)
    net = cls(config).eval()
    parameters, tries = all_inputs_of(net, config)
    options = {k: v for k, v in {"use_cache": False, "return_dict": True}.items()
               if k in parameters}
    for parameter in net.parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=parameter[0].numel()**-0.5)
    return first_that_runs((lambda i=inputs: Named(net, list(i(1)), options), inputs)
                           for inputs in tries)


BUILD = {"timm": build_timm, "torchvision": build_torchvision, "transformers": build_transformers}


def draw_weights(net):
    """Moves all weights by up to 0.02, since some start at 0, and statistics away from 0 and 1."""
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += (2 * torch.rand_like(parameter) - 1) * 0.02
        for name, buffer in net.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_((2 * torch.rand_like(buffer) - 1) * 0.1)
            elif name.endswith("running_var"):
                buffer.copy_(0.75 + 0.5 * torch.rand_like(buffer))


def settle(net):
    """Takes dropout and dropped paths out; rounds each epsilon as a file does, which holds f32."""
    for module in net.modules():
        if isinstance(getattr(module, "eps", None), float):
            module.eps = float(np.float32(module.eps))
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        for key in ("drop_prob", "dropout", "attention_dropout", "activation_dropout", "layerdrop"):
            if isinstance(getattr(module, key, None), float):
                setattr(module, key, 0.0)
        if type(module).__name__ == "StochasticDepth":
            module.p = 0.0


# ---- one file


def floats(output):
    return [t for t in _pytree.tree_leaves(output) if isinstance(t, torch.Tensor)
            and t.is_floating_point()]


class OrderedGradients(torch.overrides.TorchFunctionMode):
    """Gives every norm's gradient the order of its output: else PyTorch's are wrong at batch 1, see
    "Where PyTorch is wrong" in README.md."""

    def __torch_function__(self, function, types, arguments=(), options=None):
        output = function(*arguments, **(options or {}))
        if getattr(function, "__name__", "") in ("batch_norm", "instance_norm") and \
                output.requires_grad:
            output.register_hook(lambda g: g.clone(memory_format=torch.contiguous_format))
        return output


class Weighed(nn.Module):
    """sum(output * c) over the outputs that depend on a parameter."""

    def __init__(self, net, inputs, chosen):
        super().__init__()
        self.net, self.inputs, self.chosen = net, inputs, chosen

    def forward(self, *values):
        outputs = floats(self.net(*values[:self.inputs]))
        products = [(outputs[k] * c).sum() for k, c in zip(self.chosen, values[self.inputs:])]
        return torch.stack(products).sum() if len(products) > 1 else products[0]


class Case:
    """A network with one batch in one mode."""

    def __init__(self, net, inputs, batch, training):
        net.float().train(training)
        torch.manual_seed(3)
        self.training = training
        self.values = inputs(batch)
        with torch.no_grad():
            saved = {n: b.clone() for n, b in net.named_buffers()}
        outputs = floats(net(*self.values.values()))
        again = floats(net(*self.values.values()))
        chosen = [k for k, t in enumerate(outputs) if t.requires_grad]
        if any(not torch.equal(a, b) for a, b in zip(outputs, again)):
            raise Skip("not deterministic")
        if not chosen or any(not bool(torch.isfinite(outputs[k]).all()) for k in chosen):
            raise Skip("outputs are not finite, or depend on no parameter")
        for k in chosen:
            self.values[f"c{k}"] = torch.randn_like(outputs[k]).detach()
        for name, buffer in net.named_buffers():
            buffer.data.copy_(saved[name])
        self.net = Weighed(net, len(self.values) - len(chosen), chosen).train(training)

    def at(self, dtype):
        self.net.to(dtype)
        return [v.to(dtype) if v.is_floating_point() else v for v in self.values.values()]

    def gradients(self, dtype):
        values = [v.clone().requires_grad_(v.is_floating_point()) for v in self.at(dtype)]
        saved = {n: b.clone() for n, b in self.net.named_buffers()}
        self.net.zero_grad(set_to_none=True)
        with OrderedGradients():
            loss = self.net(*values)
        loss.backward()
        for name, buffer in self.net.named_buffers():
            buffer.data.copy_(saved[name])
        found = {n: p.grad for n, p in self.net.named_parameters() if p.grad is not None}
        found |= {n: v.grad for n, v in zip(self.values, values) if v.grad is not None}
        return loss.item(), {n: g.double().numpy().copy() for n, g in found.items()}

    def export(self, dtype, exporter, path):
        values = tuple(self.at(dtype))
        names = {"input_names": list(self.values), "output_names": ["loss"]}
        mode = torch.onnx.TrainingMode
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if exporter == "new":
                torch.onnx.export(self.net, values, str(path), dynamo=True, optimize=False,
                                  external_data=False, **names)
            else:
                torch.onnx.export(self.net, values, str(path), dynamo=False, opset_version=17,
                                  training=mode.TRAINING if self.training else mode.EVAL,
                                  do_constant_folding=False, **names)
        return {n: np.ascontiguousarray(v.numpy()) for n, v in zip(self.values, values)}


def distance(exact, found):
    """(largest difference, its name) over the tensors that both hold."""
    largest = max(np.abs(g).max() for g in exact.values() if g.size)
    worst = (0.0, "")
    for name, gradient in exact.items():
        if name in found and gradient.size:
            scale = max(np.abs(gradient).max(), 1e-4 * largest)
            off = np.abs(found[name].astype(np.float64) - gradient).max() / scale
            worst = max(worst, (float(off) if np.isfinite(off) else float("inf"), name))
    return worst


def run_ridge(options, folder, file, inputs):
    np.savez(folder / "in.npz", **inputs)
    out = folder / "out.npz"
    out.unlink(missing_ok=True)
    command = [*options.ridge.split(), "grad", str(file), "--inputs", str(folder / "in.npz"),
               "--outputs", str(out), "--backend", options.backend, "--threads", "1", "-q"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if result.returncode:
        raise RuntimeError("refused: " + result.stderr.strip().split("\n")[0][:300])
    with np.load(out) as arrays:
        return dict(arrays)


def onnxruntime_loss(file, inputs):
    import onnxruntime
    try:
        session = onnxruntime.InferenceSession(str(file))
        taken = {i.name for i in session.get_inputs()}
        return float(session.run(["loss"], {n: v for n, v in inputs.items() if n in taken})[0])
    except Exception as error:
        return f"onnxruntime refuses it too: {str(error)[:120]}"


def compare_at(case, dtype, exporter, folder, options, exact, loss):
    file = folder / f"net_{exporter}_{dtype}.onnx"
    inputs = case.export(DTYPES[dtype], exporter, file)
    proto = onnx.load(file, load_external_data=False)
    held = {i.name for i in proto.graph.input}
    row = {"nodes": len(proto.graph.node) + sum(len(f.node) for f in proto.functions)}
    del proto
    try:
        found = run_ridge(options, folder, file, {n: v for n, v in inputs.items() if n in held})
    except RuntimeError as error:
        runtime = onnxruntime_loss(file, inputs)
        said = runtime if isinstance(runtime, str) else "onnxruntime runs it"
        raise RuntimeError(f"{error} ({said})")
    row["difference"], row["worst"] = distance(exact, found)
    row["compared"] = sum(n in found for n in exact)
    row["missing"] = sorted(n for n in exact if n not in found and np.abs(exact[n]).max() > 0)[:5]
    row["loss"] = abs(float(found["loss"]) - loss) / max(abs(loss), 1e-30)
    if row["difference"] > BOUNDS[dtype]:
        runtime = onnxruntime_loss(file, inputs)
        row["onnxruntime"] = \
            runtime if isinstance(runtime, str) else abs(runtime - loss) / abs(loss)
    return row


def exported(case, exporter, folder, options):
    """Compares one exporter's files -> the row of results."""
    loss, exact = case.gradients(torch.float64)
    row = {"of": len(exact), "own": distance(exact, case.gradients(torch.float32)[1])[0]}
    try:
        row |= compare_at(case, "f32", exporter, folder, options, exact, loss)
        row["agrees"] = row["difference"] <= BOUNDS["f32"]
        if row["difference"] > min(BOUNDS["f32"], max(1e-4, 20 * row["own"])):
            fine = compare_at(case, "f64", exporter, folder, options, exact, loss)
            row["f64"] = fine
            row["agrees"] = fine["difference"] <= BOUNDS["f64"]
    except Exception as error:
        cause = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        row["error"] = str(error) if str(error).startswith("refused") else \
            f"{'f64: ' if 'difference' in row else ''}not exported: {type(cause).__name__}: " + \
            str(cause).strip().split("\n")[0][:200]
        if options.trace:
            traceback.print_exc()
    return row


def compare(source, name, options):
    """Runs in a process of its own; writes a line for each file, or one that says "skipped"."""
    os.nice(5)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    said = os.fdopen(os.dup(1), "w")
    if not options.trace:  # what exporters print is long
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)

    def note(**row):
        line = json.dumps({"source": source, "name": name, **row})
        print(line, file=said, flush=True)
        with open(options.work / "results.jsonl", "a") as file:
            file.write(line + "\n")

    folder = options.work / plain(name)
    folder.mkdir(exist_ok=True)
    try:
        net, inputs = BUILD[source](name)
        if not options.fresh:
            draw_weights(net)
        settle(net)
        count = sum(p.numel() for p in net.parameters())
        if count > LARGEST:
            raise Skip(f"{count / 1e6:.0f} million parameters")
        for mode, batch in [("eval", b) for b in options.batches] + [("train", 3)]:
            norms = [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
            if mode == "train" and not (norms and "old" in options.exporters):
                continue
            case = Case(net, inputs, batch, mode == "train")
            _, exact = case.gradients(torch.float32)
            if 2 * sum(n.startswith("net.") for n in exact) < len(list(net.parameters())):
                raise Skip("its inputs reach less than half of the parameters")
            shape = " ".join("x".join(map(str, v.shape)) for n, v in case.values.items()
                             if not re.fullmatch(r"c\d+", n))
            for exporter in options.exporters if mode == "eval" else ["old"]:
                start = time.time()
                row = exported(case, exporter, folder, options)
                note(batch=batch, mode=mode, exporter=exporter, shape=shape, parameters=count,
                     **row, seconds=round(time.time() - start, 1))
    except Skip as skip:
        note(skipped=str(skip))
    except Exception as error:
        if options.trace:
            traceback.print_exc()
        note(skipped=f"{type(error).__name__}: {str(error).strip()}".split("\n")[0][:200])
    if not options.keep:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def lines_of(options):
    path = options.work / "results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_one(source, name, options):
    """-> whether at least one file was compared."""
    def rows():
        return [r for r in lines_of(options) if (r["source"], r["name"]) == (source, name)]

    if not rows() or options.only:
        process = multiprocessing.get_context("fork").Process(
            target=compare, args=(source, name, options))
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            with open(options.work / "results.jsonl", "a") as file:
                file.write(json.dumps({"source": source, "name": name,
                                       "skipped": f"more than {SECONDS} s"}) + "\n")
    return any("difference" in r for r in rows())


def walk(source, count, options):
    families = set()
    for name in draw(source, options.seed, options.named):
        if count == 0:
            return
        if family(source, name) in families:
            print(f"{source}/{name}: passed over, its family was compared", flush=True)
        elif run_one(source, name, options):
            families.add(family(source, name))
            count -= 1


# ---- the table


def cell(rows):
    if not rows:
        return ""
    row = rows[-1]
    if "difference" not in row:
        return row["error"].split(":")[0] + ("" if row["error"].startswith("not exp") else " (*)")
    if "f64" in row:
        return f"{row['f64']['difference']:.1e} f64" + ("" if row["agrees"] else " (*)")
    return f"{row['difference']:.1e}" + ("" if row["agrees"] else " (*)")


def own_errors(rows):
    for mode in ("eval", "train"):
        errors = [r["own"] for r in rows if r["mode"] == mode]
        yield f"{max(errors):.1e}" if errors else ""


def print_table(options):
    rows = lines_of(options)
    print("| network | input | nodes | older, 1 | older, 3 | newer, 1 | newer, 3 | training, 3 "
          "| PyTorch's f32 | training |" + "\n" + "|---" * 10 + "|")
    done = [r for r in rows if "skipped" not in r]
    for source, name in dict.fromkeys((r["source"], r["name"]) for r in done
                                      if "difference" in r):
        mine = [r for r in done if (r["source"], r["name"]) == (source, name)]
        cells = [cell([r for r in mine if (r["exporter"], r["batch"], r["mode"]) == (e, b, m)])
                 for e, b, m in (("old", 1, "eval"), ("old", 3, "eval"), ("new", 1, "eval"),
                                 ("new", 3, "eval"), ("old", 3, "train"))]
        nodes = max(r.get("nodes", 0) for r in mine)
        shape = re.sub(r"(^| )1x", r"\1", next(r["shape"] for r in mine if r["batch"] == 1))
        print(f"| {source} {name} | {shape} | {nodes} | "
              f"{' | '.join(cells)} | {' | '.join(own_errors(mine))} |")
    for row in rows:
        if "skipped" in row:
            print(f"{row['source']} {row['name']}: {row['skipped']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ridge", default=str(ROOT / "build/release/bin/ridge"))
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--counts", default="timm=16,torchvision=8,transformers=16")
    parser.add_argument("--only", default="")
    parser.add_argument("--batches", type=lambda s: [int(b) for b in s.split(",")], default=[1, 3])
    parser.add_argument("--exporters", type=lambda s: s.split(","), default=["old", "new"])
    parser.add_argument("--backend", default="cpu")
    for flag in ("--table", "--named", "--fresh", "--keep", "--trace"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.table:
        return print_table(options)
    for entry in filter(None, options.only.split(",")):
        run_one(*entry.split("/", 1), options)
    if not options.only:
        for source, count in (c.split("=") for c in options.counts.split(",")):
            walk(source, int(count), options)


if __name__ == "__main__":
    main()
