"""Makers of nodes that move, choose and make elements (_onnx_ops.py tells what a maker is)."""
import math

import numpy as np
from onnx import numpy_helper

from _onnx_ops import ANY, FLOATS, NUMBERS, f, maker


@maker(3)
def transpose(g):
    x = g.any(ANY, ranks=(1, 2, 3, 4))
    perm = [int(p) for p in g.rng.permutation(x.rank)]
    return g.emit("Transpose", [x], {"perm": perm} if g.chance(0.8) else {}, rounds=False)


def factor(g, count):
    """A list of extents with this product."""
    dims = []
    while count > 1 and len(dims) < 4:
        divisors = [d for d in range(2, count + 1) if count % d == 0]
        d = g.pick(divisors)
        dims.append(d)
        count //= d
    if count > 1:
        dims.append(count)
    while g.chance(0.3) and len(dims) < 5:
        dims.insert(g.integer(0, len(dims)), 1)
    return dims


@maker(4)
def reshape(g):
    x = g.any(ANY)
    dims = factor(g, x.array.size) if x.array.size else list(x.shape)
    if dims and x.array.size and g.chance(0.4):
        dims[g.integer(0, len(dims) - 1)] = -1
    for d in range(min(len(dims), x.rank)):
        if dims[d] == x.shape[d] and g.chance(0.4):
            dims[d] = 0
    attrs = {"allowzero": 1} if g.opset >= 14 and (0 in x.shape) and g.chance(0.5) else {}
    return g.emit("Reshape", [x, g.known(np.array(dims, np.int64))], attrs, rounds=False)


@maker(2)
def squeeze(g):
    x = g.any(ANY)
    if g.chance(0.5):
        op, axes = "Squeeze", [d for d in range(x.rank) if x.shape[d] == 1 and g.chance(0.7)]
        rank = x.rank
    else:
        op, count = "Unsqueeze", g.integer(1, 2)
        rank = x.rank + count
        if rank > 5:
            return None
        axes = [int(a) for a in g.rng.permutation(rank)[:count]]
    axes = [a - rank if g.opset >= 11 and g.chance(0.3) else a for a in axes]
    if not axes:
        return g.emit(op, [x], rounds=False) if op == "Squeeze" else None
    if g.opset >= 13:
        return g.emit(op, [x, g.known(np.array(axes, np.int64))], rounds=False)
    return g.emit(op, [x], {"axes": axes}, rounds=False)


@maker(1)
def flatten(g):
    x = g.any(ANY)
    axis = g.integer(-x.rank if g.opset >= 11 else 0, x.rank)
    return g.emit("Flatten", [x], {"axis": axis} if g.chance(0.8) else {}, rounds=False)


@maker(2)
def concat(g):
    x = g.any(ANY, ranks=(1, 2, 3, 4))
    axis = g.axis(x.rank)
    parts = [x]
    for _ in range(g.integer(0, 2)):
        alike = g.find([x.dtype], (x.rank,),
                       test=lambda v: all(a == b
                                          for d, (a, b) in enumerate(zip(v.shape, x.shape))
                                          if d != axis % x.rank))
        if alike is None or g.chance(0.3):
            dims = list(x.shape)
            dims[axis] = g.extent()
            alike = g.leaf(tuple(dims), x.dtype)
        parts.insert(g.integer(0, len(parts)), alike)
    return g.emit("Concat", parts, {"axis": axis}, rounds=False)


@maker(2)
def split(g):
    x = g.any(ANY, ranks=(1, 2, 3, 4))
    axis = g.axis(x.rank)
    extent = x.shape[axis]
    count = g.integer(1, 3)
    cuts = sorted(g.integer(0, extent) for _ in range(count - 1))
    sizes = [b - a for a, b in zip([0] + cuts, cuts + [extent])]
    if g.chance(0.4):
        if g.opset >= 18:
            return g.emit("Split", [x], {"axis": axis, "num_outputs": count}, count, rounds=False)
        return g.emit("Split", [x], {"axis": axis}, count,
                      rounds=False) if extent % count == 0 else None
    if g.opset >= 13:
        return g.emit("Split", [x, g.known(np.array(sizes, np.int64))], {"axis": axis},
                      count,
                      rounds=False)
    return g.emit("Split", [x], {"axis": axis, "split": sizes}, count, rounds=False)


@maker(4)
def slices(g):
    x = g.any(ANY, ranks=(1, 2, 3, 4))
    axes = [a for a in range(x.rank) if g.chance(0.5)] or [0]
    starts, ends, steps = [], [], []
    for a in axes:
        e = x.shape[a]
        step = g.pick([1, 1, 1, 2, 3, -1, -2]) if g.opset >= 10 else 1
        start, end = g.integer(-e - 1, e + 1), g.integer(-e - 1, e + 1)
        starts.append(start)
        ends.append(g.pick([end, end, 2**31 - 1 if step > 0 else -2**31 + 1]))
        steps.append(step)
    axes = [a - x.rank if g.opset >= 11 and g.chance(0.3) else a for a in axes]
    if g.opset < 10:
        return g.emit("Slice", [x], {"starts": starts, "ends": ends, "axes": axes}, rounds=False)
    kind = g.pick([np.int64, np.int32])
    lists = [g.known(np.array(v, kind)) for v in (starts, ends, axes)]
    if steps != [1] * len(steps) or g.chance(0.3):
        lists.append(g.known(np.array(steps, kind)))
    return g.emit("Slice", [x] + lists, rounds=False)


@maker(2)
def expand(g):
    x = g.any(ANY)
    dims = [e if e != 1 or g.chance(0.4) else g.extent() for e in x.shape]
    if g.chance(0.3) and x.rank < 4:
        dims.insert(0, g.extent())
    dims = [
        1 if g.chance(0.2) and d < len(dims) - x.rank + x.rank and e else e
        for d, e in enumerate(dims)
    ]
    return g.emit("Expand", [x, g.known(np.array(dims, np.int64))], rounds=False)


@maker(1)
def tile(g):
    x = g.any(ANY, ranks=(1, 2, 3))
    return g.emit("Tile", [
        x,
        g.known(
            np.array([g.integer(0, 3) if g.chance(0.1) else g.integer(1, 3) for _ in x.shape],
                     np.int64))
    ],
                  rounds=False)


@maker(2)
def pad(g):
    x = g.any(FLOATS[:4] if g.opset < 11 else NUMBERS, ranks=(1, 2, 3, 4))
    mode = g.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    most = [2 if mode in ("constant", "edge") else max(min(e - 1, 2), 0) for e in x.shape]
    low = -1 if mode == "constant" else 0
    pads = [
        g.integer(low if e > 1 else 0, m) if g.chance(0.6) else 0
        for m, e in zip(most * 2, x.shape * 2)
    ]
    if mode != "constant" and 0 in x.shape:
        return None
    if g.opset < 11:
        return g.emit("Pad", [x], {"mode": mode, "pads": pads, "value": f(1.5)}, rounds=False)
    inputs = [x, g.known(np.array(pads, np.int64))]
    if mode == "constant" and g.chance(0.6):
        inputs.append(g.leaf(array=np.array(2, x.dtype), kind=g.pick(["initializer", "constant"])))
    if g.opset >= 18 and g.chance(0.3):
        axes = [int(a) for a in g.rng.permutation(x.rank)[:g.integer(1, x.rank)]]
        chosen = [pads[a] for a in axes] + [pads[a + x.rank] for a in axes]
        inputs[1] = g.known(np.array(chosen, np.int64))
        inputs += [""] * (3 - len(inputs))
        inputs.append(g.known(np.array(axes, np.int64)))
    return g.emit("Pad", inputs, {"mode": mode}, rounds=False)


@maker(2)
def gather(g):
    x = g.any(ANY, ranks=(1, 2, 3), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    axis = g.axis(x.rank)
    e = x.shape[axis]
    op = g.pick(["Gather"] + (["GatherElements"] if g.opset >= 11 else []))
    low = -e if g.opset >= 11 else 0
    shape = g.shape(g.integer(0, 2)) if op == "Gather" else tuple(
        d if k == axis % x.rank else g.integer(1, d) for k, d in enumerate(x.shape))
    indices = g.leaf(array=g.rng.integers(low, e, shape).astype(g.pick([np.int64, np.int32])))
    return g.emit(op, [x, indices], {"axis": axis}, rounds=False)


@maker(1, since=11)
def gather_nd(g):
    x = g.any(ANY, ranks=(1, 2, 3), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    batch = g.integer(0, x.rank - 1) if g.opset >= 12 and g.chance(0.4) else 0
    depth = g.integer(1, x.rank - batch)
    shape = x.shape[:batch] + (g.integer(1, 3),)
    indices = np.stack([g.rng.integers(-e, e, shape) for e in x.shape[batch:batch + depth]], -1)
    return g.emit("GatherND", [x, g.leaf(array=indices.astype(np.int64))],
                  {"batch_dims": batch} if batch else {},
                  rounds=False)


@maker(1, since=11)
def scatter(g):
    x = g.any(NUMBERS, ranks=(1, 2, 3), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    axis = g.axis(x.rank)
    reduction = g.pick([None, None] + (["add", "mul"] if g.opset >= 16 else []) +
                       (["max", "min"] if g.opset >= 18 else []))
    shape = tuple(g.integer(1, d) for d in x.shape)
    e = x.shape[axis]
    if reduction is None:  # which of two writes stays is open
        order = np.argsort(g.rng.random(shape), axis=axis)
        indices = order if shape[axis] <= e else None
    else:
        indices = g.rng.integers(-e, e, shape)
    updates = g.leaf(shape, x.dtype)
    return g.emit("ScatterElements", [x, g.leaf(array=indices.astype(np.int64)), updates],
                  {"axis": axis, "reduction": reduction},
                  rounds=reduction in ("add", "mul"))


@maker(1, since=11)
def scatter_nd(g):
    x = g.any(NUMBERS, ranks=(1, 2, 3), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    depth = g.integer(1, x.rank)
    cells = math.prod(x.shape[:depth])
    count = g.integer(1, min(cells, 3))
    flat = g.rng.permutation(cells)[:count]
    indices = np.stack(np.unravel_index(flat, x.shape[:depth]), -1).astype(np.int64)
    updates = g.leaf((count,) + x.shape[depth:], x.dtype)
    reduction = g.pick([None] + (["add"] if g.opset >= 16 else []))
    return g.emit("ScatterND", [x, g.leaf(array=indices), updates], {"reduction": reduction},
                  rounds=reduction is not None)


@maker(1)
def depth_space(g):
    op, b = g.pick(["DepthToSpace", "SpaceToDepth"]), g.integer(1, 2)
    if op == "DepthToSpace":
        x = g.leaf((g.integer(1, 2), b * b * g.integer(1, 2), g.integer(1, 3), g.integer(1, 3)),
                   "float32")
        mode = {"mode": g.pick(["DCR", "CRD"])} if g.opset >= 11 else {}
        return g.emit(op, [x], {"blocksize": b, **mode}, rounds=False)
    x = g.leaf((g.integer(1, 2), g.integer(1, 2), b * g.integer(1, 3), b * g.integer(1, 3)),
               "float32")
    return g.emit(op, [x], {"blocksize": b}, rounds=False)


@maker(1)
def shapes(g):
    x = g.any(ANY)
    op = g.pick(["Shape", "Size"])
    attrs = {}
    if op == "Shape" and g.opset >= 15 and g.chance(0.5):
        attrs = {"start": g.integer(-x.rank, x.rank), "end": g.integer(-x.rank, x.rank)}
    return g.emit(op, [x], attrs)


@maker(1, since=9)
def constant_of_shape(g):
    dims = np.array(g.shape(g.integer(0, 3)), np.int64)
    value = numpy_helper.from_array(
        np.array([g.integer(-3, 3)], g.pick(["float32", "int64", "int32"])))
    return g.emit("ConstantOfShape", [g.known(dims)], {"value": value} if g.chance(0.8) else {})


@maker(1, since=11)
def ranges(g):
    kind = g.pick([np.int64, np.int32, np.float32])
    start, step = g.integer(-3, 3), g.pick([1, 2, -1])
    limit = start + step * g.integer(0, 5)
    return g.emit("Range", [g.known(np.array(v, kind)) for v in (start, limit, step)], rounds=False)


@maker(1, since=14)
def trilu(g):
    x = g.any(NUMBERS, ranks=(2, 3, 4))
    k = [g.known(np.array(g.integer(-3, 3), np.int64))] if g.chance(0.6) else []
    return g.emit("Trilu", [x] + k, {"upper": g.integer(0, 1)}, rounds=False)


@maker(1, since=9)
def one_hot(g):
    axis = g.pick([-1, 0, 1])
    indices = g.leaf(array=g.rng.integers(-4, 4, g.shape(g.integer(1, 2))).astype(np.int64))
    depth = g.known(np.array(4, np.int64))
    values = g.leaf(
        array=np.array([g.integer(-2, 0), g.integer(1, 3)], g.pick(["float32", "int64"])))
    return g.emit("OneHot", [indices, depth, values], {"axis": axis}, rounds=False)


@maker(1, since=9)
def eye_like(g):
    return g.emit("EyeLike", [g.any(("float32", "int32"), ranks=(2,))], {"k": g.integer(-2, 2)})


@maker(1, since=10)
def reverse_sequence(g):
    x = g.any(NUMBERS, ranks=(2, 3), test=lambda v: v.array.size > 0)
    if x is None:
        return None
    time = g.integer(0, 1)
    lengths = g.rng.integers(1, x.shape[time] + 1, (x.shape[1 - time],))
    return g.emit("ReverseSequence", [x, g.leaf(array=lengths.astype(np.int64))],
                  {"time_axis": time, "batch_axis": 1 - time},
                  rounds=False)
