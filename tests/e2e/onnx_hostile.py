"""Small ONNX files that ask for much: each is answered or refused, soon and within 256 MiB.

What an input of up to 1 MB may cost is 1 s and 256 MiB.  Memory is checked; seconds of the
processor are printed with RIDGE_HOSTILE_TIMES=1, and the limit that ends a process is ten times as
long, since machines differ.  RIDGE_HOSTILE_ONLY="lstm gru" runs some.
"""
import os
import resource
import subprocess
import sys
import unittest

from _onnx_bytes import (BOOL, FLOAT, INT64, Graph, field, fields, function, graph, ints, model,
                         node, tensor, value)
from _ridge import RIDGE, RidgeTest, environment

MOST_BYTES = 256 << 20
MOST_SECONDS = 10
HUGE = 1 << 40
LARGEST = (1 << 63) - 1


def net(nodes, initializers=(), x=(4,), result="y", **options):
    """x f32[N,4] -> the nodes -> y; w is a parameter, so that there is something to train."""
    w = tensor("w", FLOAT, [1], [1.0])
    return model(graph(nodes, [value("x", FLOAT, ["N", *x])], [value(result)],
                       [w, *initializers]), **options)


def ends(nodes, initializers=(), **options):
    """The nodes make h; its sum times w is added to x."""
    tail = [node("Cast", ["h"], ["end.h"], to=FLOAT),
            node("ReduceSum", ["end.h"], ["end.s"], keepdims=0),
            node("Mul", ["end.s", "w"], ["end.p"]), node("Add", ["x", "end.p"], ["y"])]
    return net([*nodes, *tail], initializers, **options)


def chain(count, op="Relu"):
    names = ["x"] + [f"{i:x}" for i in range(count - 1)] + ["y0"]
    return net([node(op, [a], [b]) for a, b in zip(names, names[1:])] +
               [node("Mul", ["y0", "w"], ["y"])])


def fill(dims, name="h", **kinds):
    return [node("ConstantOfShape", [name + "_dims"], [name], **kinds)], [
        ints(name + "_dims", *dims)]


def loop(trips, body, outputs=("h",), condition="", carried=()):
    trip = [] if trips is None else [tensor("trips", INT64, [], [trips])]
    known = [tensor("true", BOOL, [], raw=b"\1")]
    return ends([node("Loop", ["trips" if trip else "", condition, *carried], outputs, body=body)],
                trip + known)


def body(nodes, carried=(), scanned=()):
    """A loop's body; `carried` are pairs of names."""
    inputs = [value("i", INT64), value("go", BOOL)] + [value(a) for a, _ in carried]
    outputs = [value("go", BOOL)] + [value(b) for _, b in carried] + [value(b) for b in scanned]
    return graph(nodes, inputs, outputs)


def nested_messages():
    """1 MB of messages in messages."""
    inner = b""
    for _ in range(100_000):
        inner = field(1, field(5, field(6, inner)))
        if len(inner) > 1_000_000:
            break
    return model(inner)


def nested_ifs(depth):
    inner = graph([node("Relu", ["x"], ["r"])], [], [value("r")])
    for _ in range(depth):
        inner = graph([node("If", ["c"], ["r"], then_branch=inner, else_branch=inner)], [],
                      [value("r")])
    return net([node("ReduceSum", ["x"], ["s"], keepdims=0),
                node("Cast", ["s"], ["c"], to=BOOL),
                node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)])


def nested_loops(depth, trips):
    inner = graph([node("Mul", ["a", "w"], ["b"])],
                  [value("i", INT64), value("go", BOOL), value("a")],
                  [value("go", BOOL), value("b")])
    for _ in range(depth):
        inner = graph([node("Loop", ["trips", "go", "a"], ["b"], body=inner)],
                      [value("i", INT64), value("go", BOOL), value("a")],
                      [value("go", BOOL), value("b")])
    return net([node("Loop", ["trips", "true", "x"], ["y"], body=inner)],
               [tensor("trips", INT64, [], [trips]), tensor("true", BOOL, [], raw=b"\1")])


def laughs(depth, calls):
    """Functions that call the next one several times."""
    functions = []
    for level in range(depth):
        names = ["a"] + [f"v{i}" for i in range(calls - 1)] + ["b"]
        inner = (dict(op=f"f{level + 1}", domain="local") if level + 1 < depth else dict(op="Relu"))
        functions.append(function(f"f{level}", ["a"], ["b"], [
            node(inputs=[a], outputs=[b], **inner) for a, b in zip(names, names[1:])]))
    return net([node("f0", ["x"], ["y"], domain="local")], functions=functions)


def many_initializers(count):
    weights = [tensor(f"p{i:x}", FLOAT, [], [1.0]) for i in range(count)]
    names = ["x"] + [f"{i:x}" for i in range(count - 1)] + ["y"]
    return net([node("Add", [a, f"p{i:x}"], [b])
                for i, (a, b) in enumerate(zip(names, names[1:]))], weights)


def many_fills(count, extent):
    """Constants that would be folded, each larger than the last one's share."""
    nodes, initializers = [], [ints("dims", extent)]
    for i in range(count):
        nodes.append(node("ConstantOfShape", ["dims"], [f"c{i}"],
                          value=tensor("", INT64, [1], [i])))
        nodes.append(node("ReduceSum", [f"c{i}"], [f"s{i}"], keepdims=0))
    nodes.append(node("Sum", [f"f{i}" for i in range(count)], ["h"]))
    nodes[-1:-1] = [node("Cast", [f"s{i}"], [f"f{i}"], to=FLOAT) for i in range(count)]
    return ends(nodes, initializers)


def recurrent(op, steps, gates):
    weights = [tensor("W", FLOAT, [1, gates, 1], [0.5] * gates),
               tensor("R", FLOAT, [1, gates, 1], [0.5] * gates)]
    nodes = [node("ConstantOfShape", ["d"], ["seq"]), node(op, ["seq", "W", "R"], ["h"],
                                                           hidden_size=1)]
    return ends(nodes, [*weights, ints("d", steps, 1, 1)])


def image(op, inputs=("x",), initializers=(), x=(3, 8, 8), **attributes):
    return ends([node(op, inputs, ["h"], **attributes)], initializers, x=x)


def open_dims():
    """Inputs with names for all of their extents."""
    inputs = [value(f"i{i:x}", FLOAT, [f"{i:x}.{d}" for d in range(8)]) for i in range(8_000)]
    return model(graph([node("Relu", ["i0"], ["y"])], inputs, [value("y")]))


def loop_of_constants():
    """Each trip would copy half a megabyte, and each call of a function its attributes."""
    large = tensor("", FLOAT, [125_000], raw=bytes(500_000))
    step = body([node("Constant", [], ["r"], value=large)], scanned=["r"])
    return loop(1 << 60, step)


def calls_with_large_attributes():
    inner = function("f1", ["a"], ["b"], [
        node("Relu", ["a"], ["b"], value=tensor("", FLOAT, [125_000], raw=bytes(500_000)))])
    names = ["a"] + [f"{i:x}." for i in range(14_999)] + ["b"]
    outer = function("f0", ["a"], ["b"], [
        node("f1", [a], [b], domain="local") for a, b in zip(names, names[1:])])
    calls = ["x"] + [f"c{i}" for i in range(20)] + ["y"]
    return net([node("f0", [a], [b], domain="local") for a, b in zip(calls, calls[1:])],
               functions=[outer, inner])


def long_name_in_loop():
    long = fields([(1, "x"), (2, "r"), (3, "n" * 800_000), (4, "Softmax")])
    return loop(1 << 60, body([long], scanned=["r"]))


def sparse(extent):
    proto = fields([(1, tensor("s", FLOAT, [1], [1.0])), (2, ints("", 0)), (3, extent)])
    whole = graph([node("Add", ["x", "s"], ["y"])], [value("x", FLOAT, ["N", 4])], [value("y")])
    return model(whole + field(15, proto))


def scan(length):
    step = graph([node("Add", ["a", "b"], ["c"]), node("Identity", ["c"], ["d"])],
                 [value("a"), value("b")], [value("c"), value("d")])
    return ends([*fill([length, 1], "seq")[0], *fill([1], "zero")[0],
                 node("Scan", ["zero", "seq"], ["last", "h"], body=step, num_scan_inputs=1)],
                [*fill([length, 1], "seq")[1], *fill([1], "zero")[1]])


GROW = body([node("Concat", ["a", "a"], ["b"], axis=0)], carried=[("a", "b")])
COUNT = body([node("Cast", ["i"], ["r"], to=FLOAT)], scanned=["r"])

FILES = {
    # messages
    "nested_messages": nested_messages,
    "zeros": lambda: bytes(1_000_000),
    "ones": lambda: b"\xff" * 1_000_000,
    "empty_nodes": lambda: model(field(1, [b""] * 450_000)),
    "empty_tensors": lambda: model(field(5, [b""] * 450_000)),
    "empty_functions": lambda: model(graph([]), functions=[b""] * 300_000),
    "empty_opsets": lambda: field(8, [b""] * 450_000),
    "rank": lambda: net([], [tensor("t", FLOAT, [1] * 400_000, [1.0])]),
    "input_rank": lambda: net([node("Relu", ["x"], ["y"])], x=(1,) * 150_000),
    # counts
    "relu_chain": lambda: chain(10_000),
    "identity_chain": lambda: chain(35_000, "Identity"),
    "initializers": lambda: many_initializers(2_000),
    "inputs_of_concat": lambda: net([node("Concat", ["x"] * 300_000, ["y"], axis=0)]),
    "inputs_of_sum": lambda: net([node("Sum", ["x"] * 300_000, ["y"])]),
    "inputs_of_einsum": lambda: net(
        [node("Einsum", ["x"] * 100_000, ["y"], equation=",".join(["ab"] * 100_000) + "->ab")]),
    "outputs_of_split": lambda: ends(
        [*fill([120_001], "c")[0],
         node("Split", ["c"], ["h", *(f"{i:x}." for i in range(120_000))], axis=0,
              num_outputs=120_001)], fill([120_001], "c")[1]),
    "trailing_inputs": lambda: net([node("Concat", ["x"] * 200_000 + [""] * 200_000, ["y"],
                                         axis=0)]),
    "open_dims": open_dims,
    "opsets": lambda: field(8, [fields([(1, f"{i:x}"), (2, 1)]) for i in range(50_000)]) +
                      chain(8_000, "Identity"),
    "long_operator": lambda: net([node("A" * 900_000, ["x"], ["y"])]),
    "long_name": lambda: net([node("Add", ["x", "B" * 900_000], ["y"])]),
    "long_equation": lambda: net([node("Einsum", ["x"], ["y"], equation="a" * 900_000)]),
    # control flow
    "nested_ifs": lambda: nested_ifs(12),
    "nested_loops": lambda: nested_loops(20, 1000),
    "loop_2_60": lambda: loop(1 << 60, COUNT),
    "loop_without_end": lambda: loop(None, COUNT, condition="true"),
    "loop_that_grows": lambda: ends(
        [node("Loop", ["trips", "", "x"], ["h"], body=GROW)],
        [tensor("trips", INT64, [], [1 << 60])]),
    "loop_that_grows_constants": lambda: ends(
        [*fill([1], "c")[0], node("Loop", ["trips", "", "c"], ["h"], body=GROW)],
        [tensor("trips", INT64, [], [1 << 60]), *fill([1], "c")[1]]),
    "loop_of_lstm": lambda: loop(100_000, body([node("Softmax", ["x"], ["r"])], scanned=["r"])),
    "loop_of_constants": loop_of_constants,
    "loop_of_subgraph_constants": lambda: loop(1 << 60, Graph(body([], scanned=["k"]) + field(
        5, tensor("k", FLOAT, [125_000], raw=bytes(500_000))))),
    "loop_with_a_long_name": long_name_in_loop,
    "calls_with_large_attributes": calls_with_large_attributes,
    "scan": lambda: scan(HUGE),
    "scan_million": lambda: scan(1_000_000),
    "laughs": lambda: laughs(60, 10),
    "laughs_wide": lambda: laughs(4, 500),
    "lstm": lambda: recurrent("LSTM", 20_000, 4),
    "gru": lambda: recurrent("GRU", HUGE, 3),
    # sizes that are given
    "fill": lambda: ends(*fill([HUGE])),
    "fill_negative": lambda: ends(*fill([-1, -1])),
    "fill_overflow": lambda: ends(*fill([1 << 31, 1 << 31, 4])),
    "fills": lambda: many_fills(64, 8 << 20),
    "many_small_fills": lambda: many_fills(1500, 40_000),
    "expand": lambda: ends([node("Expand", ["w", "d"], ["h"])], [ints("d", 1 << 20, 1 << 25)]),
    "tile": lambda: ends([node("Tile", ["x", "d"], ["h"])], [ints("d", HUGE, HUGE)]),
    "tile_constant": lambda: ends([node("Tile", ["c", "d"], ["h"])],
                                  [ints("c", 1), ints("d", 8 << 20)]),
    "range": lambda: ends([node("Range", ["a", "b", "c"], ["h"])],
                          [tensor("a", INT64, [], [0]), tensor("b", INT64, [], [LARGEST]),
                           tensor("c", INT64, [], [1])]),
    "range_floats": lambda: ends([node("Range", ["a", "b", "c"], ["h"])],
                                 [tensor("a", FLOAT, [], [0.0]), tensor("b", FLOAT, [], [1e30]),
                                  tensor("c", FLOAT, [], [1e-30])]),
    "one_hot": lambda: ends([node("OneHot", ["c", "d", "v"], ["h"])],
                            [ints("c", 1, 2), ints("d", HUGE), ints("v", 0, 1)]),
    "pad": lambda: ends([node("Pad", ["x", "p"], ["h"])], [ints("p", 0, LARGEST, 0, LARGEST)]),
    "pad_constant": lambda: ends([node("Pad", ["c", "p"], ["h"])],
                                 [ints("c", 1), ints("p", 4 << 20, 4 << 20)]),
    "resize_scales": lambda: image("Resize", ["x", "", "s"],
                                   [tensor("s", FLOAT, [4], [1.0, 1.0, 1e30, 1e30])]),
    "resize_sizes": lambda: image("Resize", ["x", "", "", "s"], [ints("s", 1, 3, HUGE, 1)],
                                  mode="cubic"),
    "resize_million": lambda: image("Resize", ["x", "", "", "s"], [ints("s", 1, 3, 8, 1 << 22)],
                                    mode="linear"),
    "max_pool": lambda: image("MaxPool", kernel_shape=[HUGE, HUGE], pads=[HUGE] * 4),
    "max_pool_positions": lambda: ends(
        [node("MaxPool", ["x"], ["v", "h"], kernel_shape=[1])], x=(1, 1 << 26)),
    "average_pool": lambda: image("AveragePool", kernel_shape=[LARGEST, 1],
                                  pads=[LARGEST, 0, LARGEST, 0]),
    "lp_pool": lambda: image("LpPool", kernel_shape=[1024, 1024], pads=[1023] * 4, p=3),
    "conv": lambda: image("Conv", ["x", "k"], [tensor("k", FLOAT, [1, 3, 1, 1], [1.0] * 3)],
                          strides=[LARGEST, LARGEST], dilations=[LARGEST, LARGEST],
                          pads=[HUGE] * 4),
    "conv_transpose": lambda: image(
        "ConvTranspose", ["x", "k"], [tensor("k", FLOAT, [3, 1, 1, 1], [1.0] * 3)],
        strides=[HUGE, HUGE], output_padding=[HUGE, HUGE]),
    "max_unpool": lambda: image("MaxUnpool", ["x", "i", "d"],
                                [tensor("i", INT64, [1, 3, 8, 8], [0] * 192),
                                 ints("d", 1, 3, HUGE, HUGE)], kernel_shape=[1, 1]),
    "depth_to_space": lambda: image("DepthToSpace", blocksize=1 << 31),
    "grid": lambda: ends([node("AffineGrid", ["t", "d"], ["h"])],
                         [tensor("t", FLOAT, [1, 2, 3], [1.0] * 6), ints("d", 1, 1, 1 << 24, 2)]),
    "col2im": lambda: image("Col2Im", ["x", "d", "b"], [ints("d", HUGE, HUGE), ints("b", 1, 1)],
                            x=(1, 8)),
    "window": lambda: ends([node("HannWindow", ["n"], ["h"])], [tensor("n", INT64, [], [HUGE])]),
    "mel": lambda: ends([node("MelWeightMatrix", ["a", "b", "c", "d", "e"], ["h"])],
                        [tensor("a", INT64, [], [1 << 30]), tensor("b", INT64, [], [1 << 30]),
                         tensor("c", INT64, [], [16000]), tensor("d", FLOAT, [], [0.0]),
                         tensor("e", FLOAT, [], [8000.0])]),
    "dft": lambda: ends([*fill([1, 1 << 20, 1], "c")[0], node("DFT", ["c"], ["h"], axis=1)],
                        fill([1, 1 << 20, 1], "c")[1]),
    "random": lambda: ends([node("RandomNormal", [], ["h"], shape=[HUGE, 100])]),
    "eye": lambda: ends([*fill([4000, 4000], "c")[0], node("EyeLike", ["c"], ["h"])],
                        fill([4000, 4000], "c")[1]),
    "top_k": lambda: ends([node("TopK", ["x", "k"], ["h", "i"])], [ints("k", LARGEST)]),
    "cumulative": lambda: ends([*fill([4 << 20], "c")[0], node("CumSum", ["c", "a"], ["h"])],
                               [*fill([4 << 20], "c")[1], tensor("a", INT64, [], [0])]),
    "einsum": lambda: ends([node("Einsum", ["x"] * 8, ["h"],
                                 equation="ab,cd,ef,gh,ij,kl,mn,op->abcdefghijklmnop")]),
    "constant_products": lambda: ends(
        [*fill([2000, 2000], "c")[0], node("MatMul", ["c", "c"], ["h"])],
        fill([2000, 2000], "c")[1]),
    "sparse": lambda: sparse(HUGE),
    "sparse_100_mib": lambda: sparse(25 << 20),
    "roi": lambda: image("RoiAlign", ["x", "r", "b"],
                         [tensor("r", FLOAT, [1, 4], [0.0, 0.0, 8.0, 8.0]), ints("b", 0)],
                         output_height=1 << 30, output_width=1 << 30, sampling_ratio=1 << 30),
    "squeeze": lambda: ends([node("Unsqueeze", ["x", "a"], ["h"])],
                            [ints("a", *range(100_000))]),
    "slice": lambda: ends([node("Slice", ["x", "a", "b", "c", "d"], ["h"])],
                          [ints("a", -LARGEST - 1), ints("b", LARGEST), ints("c", 1),
                           ints("d", -LARGEST - 1)]),
    "reshape": lambda: ends([node("Reshape", ["x", "d"], ["h"])], [ints("d", HUGE, HUGE, -1, 0)]),
}


def set_limits():
    """Stops for what would take the machine with it, or never end."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


class OnnxHostileTest(RidgeTest):

    def plan(self, name):
        """exit code, stderr, seconds of the processor, peak bytes"""
        with open(self.path("stderr"), "w+b") as log:
            process = subprocess.Popen(
                [RIDGE, "plan", name, "--batch", "1", "--loss", "mse:y", "--threads", "1"],
                cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=log,
                preexec_fn=set_limits)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            log.seek(0)
            return (process.returncode, log.read().decode(errors="replace"),
                    usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)

    def check(self, name, content):
        self.assertLess(len(content), 1_100_000, name)
        code, stderr, seconds, peak = self.plan(self.write(name + ".onnx", content))
        if os.environ.get("RIDGE_HOSTILE_TIMES"):
            first = stderr.strip().split("\n")[-1][:100] if code else "planned"
            print(f"{name:26} {code:4} {seconds:6.2f} s {peak >> 20:5} MiB  {first}",
                  file=sys.stderr)
        self.assertGreaterEqual(code, 0, f"{name}: ended by signal {-code} after {seconds} s")
        self.assertNotEqual(code, 1, f"{name}: a bug of ours: {stderr[:500]}")
        self.assertLess(peak, MOST_BYTES, name)
        if code != 0:
            self.assertTrue(stderr.startswith("ridge: "), stderr[:200])
            self.assertLess(len(stderr), 4096, name)

    def test_files_that_ask_for_much(self):
        only = os.environ.get("RIDGE_HOSTILE_ONLY", "").split()
        for name, make in FILES.items():
            if only and name not in only:
                continue
            with self.subTest(name):
                self.check(name, make())


if __name__ == "__main__":
    unittest.main()
