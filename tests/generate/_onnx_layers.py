"""Makers of sums, norms, products, windows, recurrent layers and control flow."""
import numpy as np
from onnx import TensorProto, helper

from _onnx_ops import FLOATS, NUMBERS, f, maker, random_float, some_axes


@maker(4)
def reduce(g):
    op = g.pick([
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceLogSumExp", "ReduceSumSquare"
    ])
    ints = op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
    x = g.any(FLOATS[:4] + (("int32", "int64") if ints else ()))
    axes, keep = some_axes(g, x.rank), g.integer(0, 1)
    if any(x.shape[a] == 0 for a in axes or range(x.rank)) or (x.array.size == 0 and not keep):
        return None  # onnxruntime gives wrong shapes for no elements
    attrs = {"keepdims": keep} if g.chance(0.8) else {}
    since = 13 if op == "ReduceSum" else 18
    if g.opset < since:
        return g.emit(op, [x], {**attrs, **({"axes": axes} if axes else {})},
                      rounds=op not in ("ReduceMax", "ReduceMin"))
    if not axes and g.chance(0.5):
        attrs["noop_with_empty_axes"] = g.integer(0, 1)
        if op in ("ReduceL1", "ReduceL2", "ReduceLogSumExp",
                  "ReduceSumSquare") and attrs["noop_with_empty_axes"]:
            return None  # versions of ONNX differ in whether the function is applied
    inputs = [x, g.known(np.array(axes, np.int64))] if axes or g.chance(0.5) else [x]
    return g.emit(op, inputs, attrs, rounds=op not in ("ReduceMax", "ReduceMin"))


@maker(1)
def arg(g):
    x = g.any(("float32", "int32", "float64"),
              ranks=(1, 2, 3, 4),
              exact=True,
              test=lambda v: v.array.size > 0)
    if x is None:
        return None
    attrs = {"axis": g.axis(x.rank), "keepdims": g.integer(0, 1)}
    if g.opset >= 12 and g.chance(0.4):
        attrs["select_last_index"] = 1
    return g.emit(g.pick(["ArgMax", "ArgMin"]), [x], attrs)


@maker(1)
def top_k(g):
    x = g.any(("float32", "int64", "float64"),
              ranks=(1, 2, 3),
              exact=True,
              test=lambda v: v.array.size > 0)
    if x is None:
        return None
    axis = g.axis(x.rank)
    k = g.integer(1, x.shape[axis])
    if g.opset < 10:
        return g.emit("TopK", [x], {"axis": axis, "k": k}, 2, rounds=False)
    attrs = {"axis": axis}
    if g.opset >= 11:
        attrs["largest"] = g.integer(0, 1)
    return g.emit("TopK", [x, g.known(np.array([k], np.int64))], attrs, 2, rounds=False)


@maker(3)
def softmax(g):
    op = g.pick(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    x = g.any(FLOATS, ranks=(1, 2, 3, 4), exact=op == "Hardmax", test=lambda v: v.array.size > 0)
    if x is None:
        return None
    return g.emit(op, [x], {"axis": g.axis(x.rank)} if g.chance(0.8) else {})


@maker(1, since=11)
def scan(g):
    x = g.any(("float32", "int32", "int64", "float64"), ranks=(1, 2, 3))
    axis = g.known(np.array(g.axis(x.rank), g.pick([np.int32, np.int64])))
    return g.emit("CumSum", [x, axis], {"exclusive": g.integer(0, 1), "reverse": g.integer(0, 1)})


@maker(1)
def norm(g):
    op = g.pick([
        "LpNormalization", "InstanceNormalization", "BatchNormalization", "LRN",
        "LayerNormalization", "GroupNormalization", "MeanVarianceNormalization", "RMSNormalization"
    ])
    since = {"LayerNormalization": 17, "GroupNormalization": 18, "RMSNormalization": 23}
    if since.get(op, 1) > g.opset:
        return None
    if op == "LpNormalization":
        x = g.any(("float32",), ranks=(1, 2, 3))
        return g.emit(op, [x], {"axis": g.axis(x.rank), "p": g.integer(1, 2)})
    if op in ("LayerNormalization", "RMSNormalization"):
        x = g.any(FLOATS[:4], ranks=(1, 2, 3, 4), test=lambda v: v.array.size > 0)
        if x is None:
            return None
        axis = g.axis(x.rank)
        row = x.shape[axis:]
        weights = [g.leaf(row, x.dtype)]
        if op == "LayerNormalization" and g.chance(0.6):
            weights.append(g.leaf(row, x.dtype))
        statistics = 2 * int(op == "LayerNormalization" and g.chance(0.3))
        attrs = {"axis": axis, "epsilon": random_float(g, 0.01, 0.1)}
        return g.emit(op, [x] + weights, attrs, 1 + statistics)
    x = g.any(("float32",), ranks=(3, 4), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    channels = x.shape[1]
    per = lambda low, high: g.leaf((channels,), "float32", low=low, high=high)
    epsilon = {"epsilon": random_float(g, 0.01, 0.1)}
    if op == "InstanceNormalization":
        return g.emit(op, [x, per(-2, 2), per(-2, 2)], epsilon)
    if op == "BatchNormalization":
        return g.emit(op, [x, per(-2, 2), per(-2, 2), per(-1, 1), per(0.3, 2)], epsilon)
    if op == "GroupNormalization":
        groups = g.pick([d for d in range(1, channels + 1) if channels % d == 0])
        count = channels if g.opset >= 21 else groups
        weights = [g.leaf((count,), "float32"), g.leaf((count,), "float32")]
        return g.emit(op, [x] + weights, {"num_groups": groups, **epsilon})
    if op == "LRN":
        return g.emit(
            op, [x], {
                "size": g.pick([1, 3, 5]), "alpha": random_float(g, 0.01, 1), "beta": random_float(
                    g, 0.3, 1), "bias": random_float(g, 0.5, 2)
            })
    return g.emit(op, [x], {"axes": some_axes(g, x.rank) or [0]})


# Products.
@maker(5)
def matmul(g):
    x = g.any(FLOATS[:4] + ("int32",), ranks=(1, 2, 3, 4))
    if x.rank > 1 and g.chance(0.2):
        y = g.find([x.dtype], (x.rank,), test=lambda v: v.shape[-2] == x.shape[-1])
        if y is not None:
            return g.emit("MatMul", [x, y])
    batch = tuple(g.pick([1, e]) for e in x.shape[:-2])
    batch = batch[g.integer(0, len(batch)):]
    y = g.leaf(batch + (x.shape[-1], g.extent()) if g.chance(0.85) else (x.shape[-1],), x.dtype)
    return g.emit("MatMul", [x, y])


@maker(2)
def gemm(g):
    x = g.any(FLOATS[:4], ranks=(2,))
    ta, tb, n = g.integer(0, 1), g.integer(0, 1), g.extent()
    k, m = (x.shape[0], x.shape[1]) if ta else (x.shape[1], x.shape[0])
    if k == 0:
        return None  # onnxruntime leaves out beta
    y = g.leaf((n, k) if tb else (k, n), x.dtype)
    attrs = {"transA": ta, "transB": tb}
    if g.chance(0.4):
        attrs.update(alpha=random_float(g, -2, 2), beta=random_float(g, -2, 2))
    bias = g.pick([(n,), (m, n), (1, n), (m, 1), (1,), ()])
    inputs = [x, y] + ([g.leaf(bias, x.dtype)] if g.opset < 11 or g.chance(0.7) else [])
    return g.emit("Gemm", inputs, attrs)


@maker(1, since=12)
def einsum(g):
    a, b, c, d = (g.integer(1, 4) for _ in range(4))
    equation, shapes_ = g.pick([("ij,jk->ik", [(a, b), (b, c)]),
                                ("bij,bjk->bik", [(d, a, b), (d, b, c)]), ("ij->ji", [(a, b)]),
                                ("ij->i", [(a, b)]), ("ii->i", [(a, a)]),
                                ("bhid,bhjd->bhij", [(a, b, c, d), (a, b, 3, d)]),
                                ("i,j->ij", [(a,), (b,)]),
                                ("...ij,...jk->...ik", [(d, a, b), (b, c)]),
                                ("ij,ij->", [(a, b), (a, b)]),
                                ("bi,bij,bj->b", [(d, a), (d, a, b), (d, b)])])
    return g.emit("Einsum", [
        g.find(["float32"], test=lambda v, s=s: v.shape == s) or g.leaf(s, "float32")
        for s in shapes_
    ], {"equation": equation})


def window(g, spatial, kernel_most=3):
    kernel = [g.integer(1, kernel_most) for _ in spatial]
    strides = [g.integer(1, 3) for _ in spatial]
    dilations = [g.integer(1, 2) for _ in spatial]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [g.integer(0, r - 1) for r in reach] + [g.integer(0, r - 1) for r in reach]
    if any(e + pads[i] + pads[i + len(spatial)] < reach[i] for i, e in enumerate(spatial)):
        return None  # onnxruntime makes outputs of nothing
    return kernel, strides, dilations, pads


def auto_pad(g, attrs, spatial, kernel):
    if g.chance(0.25):
        attrs.pop("pads", None)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, attrs.get("dilations", [1] * len(kernel)))]
        fits = all(r <= e for r, e in zip(reach, spatial))
        attrs["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER"] + (["VALID"] if fits else []))
        if attrs["auto_pad"] != "VALID":
            attrs.pop("dilations", None)
    return attrs


def image(g, ranks=(3, 4, 5)):
    x = g.any(("float32",), ranks=ranks, test=lambda v: v.array.size > 0 and v.array.size < 512)
    if x is None or g.chance(0.4):
        rank = g.pick(list(ranks))
        x = g.leaf(
            (g.integer(1, 2), g.integer(1, 4)) + tuple(g.integer(1, 6) for _ in range(rank - 2)),
            "float32")
    return x


@maker(3)
def conv(g):
    x = image(g)
    w = window(g, x.shape[2:])
    if w is None:
        return None
    kernel, strides, dilations, pads = w
    channels = x.shape[1]
    groups = g.pick([d for d in range(1, channels + 1) if channels % d == 0])
    out = groups * g.integer(1, 2)
    weight = g.leaf((out, channels // groups) + tuple(kernel), "float32")
    inputs = [x, weight] + ([g.leaf((out,), "float32")] if g.chance(0.6) else [])
    attrs = {"strides": strides, "dilations": dilations, "pads": pads, "group": groups}
    if g.chance(0.5):
        attrs["kernel_shape"] = kernel
    return g.emit("Conv", inputs, auto_pad(g, attrs, x.shape[2:], kernel), most=1e3)


@maker(1)
def conv_transpose(g):
    x = image(g, (3, 4))
    spatial = x.shape[2:]
    kernel = [g.integer(1, 3) for _ in spatial]
    strides = [g.integer(1, 3) for _ in spatial]
    dilations = [g.integer(1, 2) for _ in spatial]
    pads = [g.integer(0, 1) for _ in spatial] * 2
    extra = [g.integer(0, max(s, d) - 1) for s, d in zip(strides, dilations)]
    channels = x.shape[1]
    groups = g.pick([d for d in range(1, channels + 1) if channels % d == 0])
    weight = g.leaf((channels, g.integer(1, 2)) + tuple(kernel), "float32")
    inputs = [x, weight]
    if g.chance(0.5):
        inputs.append(g.leaf((weight.shape[1] * groups,), "float32"))
    return g.emit("ConvTranspose",
                  inputs, {
                      "strides": strides, "dilations": dilations, "pads": pads,
                      "output_padding": extra, "group": groups
                  },
                  most=1e3)


@maker(3)
def pool(g):
    op = g.pick([
        "MaxPool", "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool",
        "GlobalLpPool"
    ])
    x = image(g, (3, 4, 5) if op != "LpPool" else (3, 4))
    if op.startswith("Global"):
        return g.emit(op, [x], rounds=op != "GlobalMaxPool")
    w = window(g, x.shape[2:])
    if w is None:
        return None
    kernel, strides, dilations, pads = w
    pads = [min(p, k - 1) for p, k in zip(pads, kernel * 2)]
    spatial = x.shape[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    if any(e + pads[i] + pads[i + len(spatial)] < reach[i] for i, e in enumerate(spatial)):
        return None
    attrs = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if g.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]:
        attrs["dilations"] = dilations
    if op == "AveragePool":
        attrs["count_include_pad"] = g.integer(0, 1)
    if op == "LpPool":
        attrs["p"] = g.integer(1, 3)
    if op != "LpPool" and g.opset >= 10 and g.chance(0.4):
        attrs["ceil_mode"] = 1
    elif all(k >= s for k, s in zip(kernel, strides)):
        # Else the padding of SAME is negative; onnxruntime crops then, or not, by operator.
        auto_pad(g, attrs, x.shape[2:], kernel)
    places = 1 + int(op == "MaxPool" and g.opset >= 12 and x.exact and g.chance(0.25))
    return g.emit(op, [x], attrs, places, rounds=op != "MaxPool")


@maker(2, since=10)
def resize(g):
    x = image(g, (3, 4))
    rank = x.rank
    mode = g.pick(["nearest", "linear"] + (["cubic"] if g.opset >= 11 and rank == 4 else []))
    sizes = [
        e if d < 2 else max(1,
                            e * g.integer(1, 3) // g.integer(1, 2)) for d, e in enumerate(x.shape)
    ]
    scales = np.array([s / e for s, e in zip(sizes, x.shape)], np.float32)
    if g.opset == 10:
        return g.emit("Resize", [x, g.known(scales)], {"mode": mode}, rounds=mode != "nearest")
    how = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    attrs = {
        "mode": mode, "coordinate_transformation_mode":
            g.pick(how + (["half_pixel_symmetric"] if g.opset >= 19 else []))
    }
    if mode == "nearest":
        attrs["nearest_mode"] = g.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attrs["cubic_coeff_a"] = f(g.pick([-0.75, -0.5]))
        attrs["exclude_outside"] = g.integer(0, 1)
    if g.opset >= 18 and g.chance(0.3):
        attrs["antialias"] = int(mode != "nearest")
    roi = g.known(np.zeros(0, np.float32)) if g.opset < 13 else ""
    if g.chance(0.5):
        return g.emit("Resize", [x, roi, g.known(scales)], attrs, rounds=mode != "nearest")
    none = g.known(np.zeros(0, np.float32)) if g.opset < 13 else ""
    return g.emit("Resize", [x, roi, none, g.known(np.array(sizes, np.int64))],
                  attrs,
                  rounds=mode != "nearest")


@maker(1, since=16)
def grid_sample(g):
    if g.opset >= 20:
        modes = ["linear", "nearest", "cubic"]
    else:
        modes = ["bilinear", "nearest", "bicubic"]
    x = image(g, (4,))
    grid = g.leaf((x.shape[0], g.integer(1, 4), g.integer(1, 4), 2),
                  "float32",
                  low=-1.25,
                  high=1.25)
    grid = g.leaf(array=(grid.array * np.float32(0.97) + np.float32(0.013)))  # off the ties
    return g.emit(
        "GridSample", [x, grid], {
            "mode": g.pick(modes), "align_corners": g.integer(0, 1), "padding_mode": g.pick(
                ["zeros", "border", "reflection"])
        })


ACTIVATIONS = [
    "Relu", "Tanh", "Sigmoid", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
    "Softsign", "Softplus", "Affine"
]
ALPHA = {"LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Affine"}
BETA = {"ScaledTanh", "HardSigmoid", "Affine"}


@maker(2)
def recurrent(g):
    op = g.pick(["RNN", "GRU", "LSTM"])
    gates, count = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}[op]
    direction = g.pick(["forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    batch_first = g.opset >= 14 and g.chance(0.0)  # onnxruntime refuses layout 1
    x = g.any(("float32",), ranks=(3,), test=lambda v: v.array.size > 0 and max(v.shape) < 8)
    if x is None:
        return None
    steps, batch, width = x.shape
    hidden = g.integer(1, 3)
    weight = lambda *shape: g.leaf(shape, "float32", low=-1, high=1)
    inputs = [
        x, weight(directions, gates * hidden, width),
        weight(directions, gates * hidden, hidden)
    ]
    inputs.append(weight(directions, 2 * gates * hidden) if g.chance(0.7) else "")
    lengths = g.rng.integers(1, steps + 1, (batch,)).astype(np.int32)
    inputs.append(g.leaf(array=lengths) if g.chance(0.3) else "")
    inputs.append(weight(directions, batch, hidden) if g.chance(0.5) else "")
    if op == "LSTM":
        inputs.append(weight(directions, batch, hidden) if g.chance(0.5) else "")
        inputs.append(weight(directions, 3 * hidden) if g.chance(0.3) else "")
    attrs = {"hidden_size": hidden, "direction": direction}
    if batch_first:
        attrs["layout"] = 1
    if g.chance(0.5):
        names = [g.pick(ACTIVATIONS) for _ in range(count * directions)]
        attrs["activations"] = names
        if any(n in ALPHA for n in names):
            attrs["activation_alpha"] = [random_float(g, 0.1, 0.9) for n in names if n in ALPHA]
            betas = [random_float(g, 0.1, 0.9) for n in names if n in BETA]
            if betas:
                attrs["activation_beta"] = betas
    if g.chance(0.2):
        attrs["clip"] = random_float(g, 0.5, 3)
    if op == "GRU":
        attrs["linear_before_reset"] = g.integer(0, 1)
    if op == "LSTM" and g.chance(0.15):
        attrs["input_forget"] = 1
    return g.emit(op, inputs, attrs, 3 if op == "LSTM" else 2, most=50)


@maker(1, since=12)
def loss(g):
    op = g.pick(["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
    x = g.any(("float32",), ranks=(2, 3, 4), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    labels = g.leaf(array=g.rng.integers(0, x.shape[1], (x.shape[0],) +
                                         x.shape[2:]).astype(np.int64))
    inputs = [x, labels] + ([g.leaf(
        (x.shape[1],), "float32", low=0.5, high=2)] if g.chance(0.4) else [])
    attrs = {"reduction": g.pick(["none", "sum", "mean"])}
    if g.chance(0.3):
        attrs["ignore_index"] = g.integer(-1, x.shape[1] - 1)
    return g.emit(op, inputs, attrs)


@maker(1, since=13)
def quantized(g):
    x = g.any(("float32",), exact=True, ranks=(2, 3))
    axis = g.integer(0, x.rank - 1)
    per_axis = g.chance(0.5)
    shape = (x.shape[axis],) if per_axis else ()
    scale = g.leaf(array=(2.0**g.rng.integers(-4, 0, shape)).astype(np.float32), kind="initializer")
    kind = g.pick([np.uint8, np.int8])
    zero = g.leaf(array=g.rng.integers(0, 9, shape).astype(kind), kind="initializer")
    made = g.emit("QuantizeLinear", [x, scale, zero], {"axis": axis} if per_axis else {},
                  rounds=False)
    if made is None or g.chance(0.3):
        return made
    return g.emit("DequantizeLinear", [made[0], scale, zero], {"axis": axis} if per_axis else {},
                  rounds=False)


@maker(1, since=23)
def attention(g):
    b, h, t, s, d = g.integer(1, 2), g.integer(1, 2), g.integer(1,
                                                                4), g.integer(1,
                                                                              4), g.integer(1, 4)
    kv = h if g.chance(0.6) else 1
    q = g.leaf((b, h, t, d), "float32")
    k, v = g.leaf((b, kv, s, d), "float32"), g.leaf((b, kv, s, d), "float32")
    attrs = {"is_causal": g.integer(0, 1)}
    if g.chance(0.4):
        attrs["scale"] = random_float(g, 0.2, 1)
    if g.chance(0.3):
        attrs["softcap"] = random_float(g, 1, 3)
    mask = [g.leaf(g.pick([(t, s), (b, 1, t, s)]), g.pick(["float32"]))] if g.chance(0.4) else []
    return g.emit("Attention", [q, k, v] + mask, attrs)


@maker(1)
def composed(g):
    """What the passes look for: a softmax of products, a norm by hand, a gelu by hand."""
    kind = g.pick(["attention", "layer_norm", "gelu", "silu", "bias"])
    x = g.any(("float32",), ranks=(3, 4), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    one = lambda r: r[0] if r else None
    scalar = lambda v: g.leaf(array=np.array(v, np.float32),
                              kind=g.pick(["constant", "initializer"]))
    if kind == "attention":
        perm = list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2]
        t = one(g.emit("Transpose", [x], {"perm": perm}, rounds=False))
        s = one(g.emit("MatMul", [x, t])) if t else None
        s = one(g.emit("Mul", [s, scalar(0.25)])) if s else None
        p = one(g.emit("Softmax", [s], {"axis": -1 if g.opset >= 11 else x.rank -
                                                1})) if s else None
        return g.emit("MatMul", [p, x]) if p else None
    if kind == "gelu":
        e = one(g.emit("Div", [x, scalar(1.4142135)]))
        e = one(g.emit("Erf", [e])) if e and g.opset >= 9 else None
        e = one(g.emit("Add", [e, scalar(1)])) if e else None
        e = one(g.emit("Mul", [x, e])) if e else None
        return g.emit("Mul", [e, scalar(0.5)]) if e else None
    if kind == "silu":
        e = one(g.emit("Sigmoid", [x]))
        return g.emit("Mul", [x, e]) if e else None
    if kind == "bias":
        y = one(g.emit("MatMul", [x, g.leaf((x.shape[-1], 3), "float32")]))
        y = one(g.emit("Add", [y, g.leaf((3,), "float32")])) if y else None
        return g.emit("Relu", [y], rounds=False) if y else None
    axes = {"axes": [x.rank - 1]}
    mean = lambda v: one(
        g.emit("ReduceMean", [v] +
               ([g.known(np.array([-1], np.int64))]
                if g.opset >= 18 else []), {"keepdims": 1, **(axes if g.opset < 18 else {})}))
    m = mean(x)
    c = one(g.emit("Sub", [x, m])) if m else None
    v = one(g.emit("Mul", [c, c])) if c else None
    v = mean(v) if v else None
    v = one(g.emit("Add", [v, scalar(0.125)])) if v else None
    v = one(g.emit("Sqrt", [v])) if v else None
    return g.emit("Div", [c, v]) if v else None


@maker(1, since=13)
def short_float(g):
    return g.round_trip(g.any(("float32",)), g.pick([TensorProto.BFLOAT16, TensorProto.FLOAT16]))


@maker(1, since=10)
def integer_product(g):
    a, b, c = (g.integer(1, 4) for _ in range(3))
    kind = g.pick(["uint8", "int8"])
    x, y = g.leaf((a, b), kind), g.leaf((b, c), kind)
    zero = lambda: g.leaf(array=np.array(g.integer(0, 3), kind), kind="initializer")
    op = g.pick(["MatMulInteger", "ConvInteger", "QLinearMatMul"])
    if op == "MatMulInteger":
        return g.emit(op, [x, y] + ([zero(), zero()] if g.chance(0.5) else []))
    if op == "QLinearMatMul":
        scale = lambda: g.leaf(array=np.array(2.0**g.integer(-3, 0), np.float32),
                               kind="initializer")
        return g.emit(op, [x, scale(), zero(), y, scale(), zero(), scale(), zero()])
    x = g.leaf((1, 2, g.integer(2, 5), g.integer(2, 5)), "uint8")
    return g.emit(op, [x, g.leaf(
        (2, 2, 2, 2), "uint8")] + ([zero()] if g.chance(0.5) and kind == "uint8" else []))


@maker(1, since=11)
def dynamic_quantized(g):
    x = g.any(("float32",), exact=True, test=lambda v: v.array.size > 0 and np.ptp(v.array) > 1)
    return g.emit("DynamicQuantizeLinear", [x], {}, 3, rounds=False) if x else None


@maker(1, since=10)
def roi_align(g):
    x = image(g, (4,))
    count = g.integer(1, 3)
    corners = np.sort(g.rng.uniform(0, 5, (count, 2, 2)), axis=1).reshape(count, 4)
    rois = g.leaf(array=corners.astype(np.float32))
    batch = g.leaf(array=g.rng.integers(0, x.shape[0], (count,)).astype(np.int64))
    attrs = {
        "output_height": g.integer(1, 3), "output_width": g.integer(1, 3),
        "sampling_ratio": g.integer(0, 2), "spatial_scale": f(g.pick([1.0, 0.5])), "mode": "avg"
    }
    if g.opset >= 16:
        attrs["coordinate_transformation_mode"] = g.pick(["half_pixel", "output_half_pixel"])
    return g.emit("RoiAlign", [x, rois, batch], attrs)


@maker(1)
def known_choices(g):
    """Whose extents follow from data."""
    op = g.pick(["NonZero", "Compress", "Unique"])
    if {"NonZero": 9, "Compress": 9, "Unique": 11}[op] > g.opset:
        return None
    if op == "NonZero":
        return g.emit(op, [g.leaf(g.shape(g.integer(1, 3)), g.pick(["float32", "bool", "int64"]))])
    if op == "Unique":
        x = g.leaf(g.shape(g.integer(1, 2)), g.pick(["float32", "int64"]))
        attrs = {"sorted": 1, "axis": g.axis(x.rank) if g.chance(0.5) and x.array.size else None}
        return g.emit(op, [x], attrs, 4, rounds=False)
    x = g.any(NUMBERS, ranks=(1, 2, 3))
    axis = g.axis(x.rank) if g.chance(0.6) else None
    extent = x.array.size if axis is None else x.shape[axis]
    return g.emit(op, [x, g.leaf((g.integer(0, extent),), "bool")], {"axis": axis}, rounds=False)


@maker(1)
def upsample(g):
    if g.opset > 9:
        return None
    x = image(g, (4,))
    scales = np.array([1, 1, g.pick([1, 1.5, 2]), g.pick([1, 2, 3])], np.float32)
    return g.emit("Upsample", [x, g.known(scales)], {"mode": "nearest"}, rounds=False)


@maker(1, since=18)
def rearranged(g):
    op = g.pick(["CenterCropPad", "Col2Im"])
    if op == "CenterCropPad":
        x = g.any(("float32",), ranks=(1, 2, 3), test=lambda v: v.array.size > 0)
        if x is None:
            return None
        return g.emit(op, [x, g.known(np.array([g.integer(1, 6) for _ in x.shape], np.int64))],
                      rounds=False)
    block, size = [g.integer(1, 2), g.integer(1, 2)], [g.integer(2, 4), g.integer(2, 4)]
    columns = (size[0] - block[0] + 1) * (size[1] - block[1] + 1)
    x = g.leaf((1, 2 * block[0] * block[1], columns), "float32")
    return g.emit(op, [x, g.known(np.array(size, np.int64)), g.known(np.array(block, np.int64))])


@maker(1, since=11)
def determinant(g):
    n = g.integer(1, 4)
    return g.emit("Det", [g.leaf(g.pick([(n, n), (2, n, n)]), "float32")])


@maker(1, since=17)
def fourier(g):
    x = g.leaf((g.integer(1, 2), g.integer(1, 6), g.integer(1, 4), g.integer(1, 2)), "float32")
    axis = g.integer(1, 2)
    length = [g.known(np.array(g.integer(1, 6), np.int64))] if g.chance(0.3) else [""]
    one_sided = int(g.chance(0.3) and x.shape[-1] == 1)
    if g.opset < 20:
        return g.emit(
            "DFT", [x] + length,
            {"axis": axis, "inverse": int(g.chance(0.3) and not one_sided), "onesided": one_sided})
    return g.emit("DFT", [x] + length + [g.known(np.array(axis, np.int64))],
                  {"inverse": int(g.chance(0.3) and not one_sided), "onesided": one_sided})


@maker(1, since=23)
def rotary(g):
    b, h, t, d = g.integer(1, 2), g.integer(1, 2), g.integer(1, 4), 2 * g.integer(1, 3)
    x = g.leaf((b, h, t, d), "float32")
    cos, sin = g.leaf((6, d // 2), "float32", low=-1, high=1), g.leaf((6, d // 2),
                                                                      "float32",
                                                                      low=-1,
                                                                      high=1)
    places = g.leaf(array=g.rng.integers(0, 6, (b, t)).astype(np.int64))
    return g.emit("RotaryEmbedding", [x, cos, sin, places], {"interleaved": g.integer(0, 1)})


def inner_nodes(g, x, name):
    """A short chain that keeps the shape of x; the last makes `name`."""
    ops = [g.pick(["Tanh", "Neg", "Sigmoid", "Identity", "Abs"]) for _ in range(g.integer(1, 2))]
    nodes, at = [], x
    for k, op in enumerate(ops):
        out = name if k == len(ops) - 1 else f"{name}_{k}"
        nodes.append(helper.make_node(op, [at], [out]))
        at = out
    return nodes


@maker(1, since=11)
def branches(g):
    x = g.any(("float32",))
    condition = g.leaf(array=np.array(g.chance(0.5)))
    name = f"n{len(g.nodes)}"
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape)
    graphs = [
        helper.make_graph(inner_nodes(g, x.name, f"{name}_{word}"), word, [],
                          [info(f"{name}_{word}")]) for word in ("then", "else")
    ]
    return g.emit("If", [condition], {"then_branch": graphs[0], "else_branch": graphs[1]},
                  reads=[x])


@maker(1, since=11)
def loop(g):
    x, y = g.any(("float32",), ranks=(1, 2, 3)), None
    y = g.leaf(tuple(g.pick([1, e]) for e in x.shape), "float32", low=-1, high=1)
    name = f"n{len(g.nodes)}"
    info = lambda n, kind=TensorProto.FLOAT, shape=x.shape: helper.make_tensor_value_info(
        n, kind, shape)
    nodes = [
        helper.make_node("Identity", [name + "_go"], [name + "_on"]),
        helper.make_node(g.pick(["Add", "Sub", "Mul"]), [name + "_x", y.name], [name + "_m"])
    ]
    nodes += inner_nodes(g, name + "_m", name + "_y")
    nodes.append(helper.make_node("Identity", [name + "_y"], [name + "_s"]))
    body = helper.make_graph(nodes, "body", [
        info(name + "_i", TensorProto.INT64, ()),
        info(name + "_go", TensorProto.BOOL, ()),
        info(name + "_x")
    ], [info(name + "_on", TensorProto.BOOL,
             ()), info(name + "_y"),
        info(name + "_s")])
    count, go = g.known(np.array(g.integer(1, 4), np.int64)), g.known(np.array(True))
    return g.emit("Loop", [count, go, x], {"body": body}, 2, reads=[y])


@maker(1, since=13)
def special(g):
    """NaN, infinities and -0, where ONNX or IEEE 754 says what comes of them.

    Not Softmax: oneDNN's leaves 0 beside a NaN.
    """
    kind = g.pick(["float32", "float64"])
    numbers = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.0, 1e-40, 3e38])
    draw = lambda: g.leaf(array=g.rng.choice(numbers, g.shape(g.integer(1, 2))).astype(kind),
                          kind="input")
    op = g.pick([
        "IsNaN", "IsInf", "Abs", "Neg", "Floor", "Ceil", "Round", "Sqrt", "Less", "Greater",
        "Equal", "Add", "Mul", "Identity", "Where", "Concat", "Relu", "Exp", "Tanh", "Sigmoid",
        "Reciprocal", "Sub", "Log", "Erf", "Softplus", "Softsign", "LeakyRelu", "Div", "ReduceSum",
        "ReduceMax", "ReduceMin", "Max", "Min", "Clip", "Atan", "MatMul", "Transpose",
        "Sign", "HardSigmoid", "Cast"
    ])
    x = draw()
    x.hidden = True
    if op in ("Less", "Greater", "Equal", "Add", "Mul", "Sub", "Div", "Max", "Min", "Concat",
              "MatMul"):
        y = g.leaf(array=g.rng.permutation(x.array.ravel()).reshape(x.shape), kind="input")
        y.hidden = True
        inputs, attrs = [x, y], {"axis": 0} if op == "Concat" else {}
    else:
        inputs, attrs = [x], {"to": TensorProto.DOUBLE if kind == "float32" else TensorProto.FLOAT
                             } if op == "Cast" else {}
    if op == "Where":
        c = g.leaf(x.shape, "bool")
        inputs = [c, x, x]
    if op == "Clip":
        inputs += [g.leaf(array=np.array(v, kind), kind="constant") for v in (-1, 1)]
    made = g.emit(op, inputs, attrs, rounds=False, most=np.inf)
    for value in made or []:
        value.hidden = True
    return made


@maker(1, since=11)
def sequence(g):
    """Cut into a sequence, and put together again or read at one place."""
    x = g.any(("float32", "int64"), ranks=(1, 2, 3), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    name, axis, keeps = f"n{len(g.nodes)}", g.integer(0, x.rank - 1), g.integer(0, 1)
    cut = helper.make_node("SplitToSequence", [x.name], [name + "_q"], axis=axis, keepdims=keeps)
    if g.chance(0.5) or not keeps:
        place = g.known(np.array(g.integer(-x.shape[axis], x.shape[axis] - 1), np.int64))
        last = helper.make_node("SequenceAt", [name + "_q", place.name], [name + "_0"])
        return g.add([cut, last], [x, place], False, None)
    last = helper.make_node("ConcatFromSequence", [name + "_q"], [name + "_0"],
                            axis=g.integer(0, x.rank - 1))
    return g.add([cut, last], [x], False, None)


@maker(1, since=11)
def scan_steps(g):
    """Scan over the rows of x with one state."""
    x = g.any(("float32",), ranks=(2, 3), test=lambda v: v.array.size > 0 and v.shape[0] < 8)
    if x is None:
        return None
    name, row = f"n{len(g.nodes)}", x.shape[1:]
    state = g.leaf(row, "float32", low=-1, high=1)
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, row)
    op = g.pick(["Add", "Sub", "Mul"])
    nodes = [helper.make_node(op, [name + "_h", name + "_x"], [name + "_m"])]
    nodes += inner_nodes(g, name + "_m", name + "_y")
    nodes.append(helper.make_node("Neg", [name + "_y"], [name + "_s"]))
    body = helper.make_graph(nodes, "body", [info(name + "_h"), info(name + "_x")],
                             [info(name + "_y"), info(name + "_s")])
    attrs = {"body": body, "num_scan_inputs": 1}
    if g.chance(0.4):
        attrs["scan_input_directions"] = [1]
    if g.chance(0.3):
        attrs["scan_output_directions"] = [1]
    return g.emit("Scan", [state, x], attrs, 2)
