"""Operators on a GPU: those that no kernel has are refused by their name before anything runs.  On a driver
that runs on the host."""
import os
import unittest

from _onnx_bytes import FLOAT, FLOAT8E4M3FN, INT4, graph, model, node, value
from _ridge import FAKE_GPU, RidgeTest, read_npz, write_npz


class Operators(RidgeTest):
    def run_onnx(self, name, nodes, *words):
        """`ridge run` of these nodes of ONNX: float inputs x and z, and y."""
        self.write(name, model(graph(nodes, [value("x", FLOAT, [4]), value("z", FLOAT, [4])],
                                     [value("y", FLOAT, [4])]), opset=21))
        write_npz(self.path("in.npz"), {"x": ((4,), [1, 2.4, 7, -8]), "z": ((4,), [3, -3, 6, -1])})
        return self.ridge("run", name, "--inputs", "in.npz", "--outputs", "out.npz", *words, "-q", env=FAKE_GPU)

    def test_an_operator_that_no_kernel_of_the_gpu_has_is_refused_by_its_name(self):
        int4 = [node("Cast", ["x"], ["a"], to=INT4), node("Cast", ["z"], ["b"], to=INT4),
                node("BitwiseAnd", ["a", "b"], ["c"]), node("Cast", ["c"], ["y"], to=FLOAT)]
        done = self.run_onnx("and.onnx", int4, "--device", "cuda")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (5, "", "ridge: bitwise_and 'c' (BitwiseAnd 'c'): no kernel runs this node here\n"
                                 "  cuda: dtype\n"))
        self.assertFalse(os.path.exists(self.path("out.npz")))
        done = self.run_onnx("and.onnx", int4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_npz(self.path("out.npz"))["y"], ((4,), (1, 0, 6, -8)))
        self.write("net.ridge", "graph net\n  x = input f32[batch=4,4]\n  label = input i64[batch=4]\n"
                   "  w = parameter f32[4,3] init=normal(0.1)\n  a = cast(x, to=\"i4\")\n"
                   "  b = bitwise_and(a, a)\n  c = cast(b, to=\"f32\")\n  logits = matmul(c, w)\n"
                   "  losses = softmax_cross_entropy(logits, label)\n  loss = reduce_mean(losses)\n"
                   "  output loss\n  output logits\n")
        for verb in (["train", "--steps", "2", "--out", "run"], ["plan"]):
            done = self.ridge(*verb, "net.ridge", "--data", "synthetic", "--device", "cuda", "-q", env=FAKE_GPU)
            self.assertEqual((done.returncode, done.stderr),
                             (5, "ridge: bitwise_and 'b' (line 6): no kernel runs this node here\n"
                                 "  cuda: dtype\n"))
        self.assertFalse(os.path.exists(self.path("run")))

    def test_casts_to_small_numbers_run_between_other_pointwise_operators(self):
        for kind in (INT4, FLOAT8E4M3FN):
            nodes = [node("Neg", ["x"], ["a"]), node("Cast", ["a"], ["b"], to=kind),
                     node("Cast", ["b"], ["c"], to=FLOAT), node("Add", ["c", "z"], ["y"])]
            outputs = []
            for device in ("cpu", "cuda"):
                done = self.run_onnx("cast.onnx", nodes, "--device", device)
                self.assertEqual(done.returncode, 0, done.stderr)
                outputs.append(read_npz(self.path("out.npz")))
            self.assertEqual(*outputs)


if __name__ == "__main__":
    unittest.main()
