"""One public network in PyTorch: its ONNX file, or the time of its training step.

    onnx_torch.py draw   SEED timm=5,torchvision=4,transformers=4      -> its names, in random order
    onnx_torch.py export SOURCE/NAME BATCH FILE                        -> {"params": N}
    onnx_torch.py time   SOURCE/NAME BATCH eager|cl|compile STEPS      -> one JSON line, as bench_torch.py

A network has its published width and depth, random weights, no dropout and ten classes; its input
is an image of the size it was made for (at most 224 where it takes others), or 128 tokens.  A step
is forward in training mode, cross entropy, backward and Adam in f32.
"""
import contextlib, inspect, io, json, os, random, re, sys, time
T0 = time.perf_counter()
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import torch.nn as nn

CLASSES, TOKENS, IMAGE = 10, 128, 224
LARGEST = 130_000_000
NO_IMAGES = r".*(raft|segmentation|detection|video|quantized).*"


def draw(seed, counts):
    import timm, torchvision, transformers
    from transformers.models.auto import modeling_auto
    sources = {
        "timm": (sorted(timm.list_models()), lambda n: timm.models._registry._model_to_module[n]),
        "torchvision": ([n for n in sorted(torchvision.models.list_models()) if not re.match(
            NO_IMAGES, torchvision.models.get_model_builder(n).__module__ + n)],
            lambda n: torchvision.models.get_model_builder(n).__module__),
        "transformers": (sorted(modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES),
                         lambda n: re.match(r"[a-z]+", n).group())}
    for source, count in counts.items():
        names, family = sources[source]
        random.Random(f"{seed}:{source}").shuffle(names)
        seen, found = set(), 0
        for name in names:
            if found == count or family(name) in seen:
                continue
            seen.add(family(name))
            try:
                with torch.device("meta"):
                    net, _ = build(source, name)
                params = sum(p.numel() for p in net.parameters())
            except Exception as error:
                print(f"{source}/{name}: {type(error).__name__}: {str(error)[:80]}", file=sys.stderr)
                continue
            if params > LARGEST:
                print(f"{source}/{name}: {params / 1e6:.0f} million parameters", file=sys.stderr)
                continue
            found += 1
            print(f"{source}/{name}", flush=True)


class Logits(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        y = self.net(x)
        return y.logits if hasattr(y, "logits") else y[0] if isinstance(y, tuple) else y


def without_dropout(net):
    for part in net.modules():
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.p = 0.0
        if hasattr(part, "drop_prob"):
            part.drop_prob = 0.0
    return net


def build(source, name):
    """The network and the shape of one sample; the shape of tokens is (TOKENS,)."""
    if source == "timm":
        import timm
        config = timm.get_pretrained_cfg(name)
        size = config.input_size if config else (3, IMAGE, IMAGE)
        if not (config and config.fixed_input_size):
            size = (size[0], min(size[1], IMAGE), min(size[2], IMAGE))
        return Logits(timm.create_model(name, num_classes=CLASSES)), size
    if source == "torchvision":
        import torchvision
        extra = {"init_weights": False} if "init_weights" in inspect.signature(
            torchvision.models.get_model_builder(name)).parameters else {}
        if name in ("inception_v3", "googlenet"):
            extra["aux_logits"] = False
        size = 299 if name == "inception_v3" else IMAGE
        return Logits(torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **extra)), (3, size, size)
    import transformers
    config = transformers.AutoConfig.for_model(name, num_labels=CLASSES)
    for key, value in list(vars(config).items()):
        if "drop" in key and isinstance(value, float):
            setattr(config, key, 0.0)
    config.use_cache = False
    return Logits(transformers.AutoModelForSequenceClassification.from_config(config)), (TOKENS,)


def make(spec, batch):
    source, _, name = spec.partition("/")
    torch.manual_seed(0)
    net, shape = build(source, name)
    x = torch.randint(3, 90, (batch, *shape)) if len(shape) == 1 else torch.randn(batch, *shape)
    return without_dropout(net).train(), x, torch.randint(0, CLASSES, (batch,))


def export(spec, batch, file):
    net, x, _ = make(spec, batch)
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(net, (x,), file, dynamo=False, opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING,
                          input_names=["x"], output_names=["logits"])
    print(json.dumps({"params": sum(p.numel() for p in net.parameters())}))


def measure(spec, batch, mode, steps):
    import timm, torchvision, transformers  # before `base`, as their memory is not the step's
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    rss = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
    peak = lambda: next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmHWM"))
    base = rss()
    net, x, label = make(spec, batch)
    if mode == "cl" and x.ndim == 4:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        return loss
    run = torch.compile(step) if mode == "compile" else step
    first = float(run().detach())
    first_s = time.perf_counter() - T0
    run()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        loss = float(run().detach())
        times.append(time.perf_counter() - start)
    times.sort()
    print(json.dumps({"fw": "torch", "ver": torch.__version__, "mode": mode, "model": spec, "batch": batch,
                      "ms_min": round(times[0] * 1e3, 2), "ms_med": round(times[len(times) // 2] * 1e3, 2),
                      "first_step_s": round(first_s, 2), "peak_mb": round((peak() - base) / 2**20, 1),
                      "loss0": round(first, 4), "loss": round(loss, 4)}))


if __name__ == "__main__":
    verb, words = sys.argv[1], sys.argv[2:]
    if verb == "draw":
        draw(words[0], {s: int(n) for s, _, n in (c.partition("=") for c in words[1].split(","))})
    elif verb == "export":
        export(words[0], int(words[1]), words[2])
    else:
        measure(words[0], int(words[1]), words[2], int(words[3]))
