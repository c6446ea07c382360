#!/usr/bin/env python3
"""Tests of binary_check.py, check_layers.py, check_types.py, cpp_functions.py, size_report.py,
make_dist.py, cmake/unity.py, bench/results_table.py, tests/e2e/_ridge.py and the texts of tests/generate/planted_bugs.py."""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cmake"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "generate"))

import binary_check
import check_layers
import check_types
import make_dist
import planted_bugs
import results_table
import size_report
import unity
from cpp_functions import functions

ROOT = pathlib.Path(__file__).resolve().parent.parent


def lengths(text):
    return {function.name: function.length for function in functions(text)}


class Tree(unittest.TestCase):
    """A throw-away ridge/ folder."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = pathlib.Path(self._folder.name) / "ridge"
        self.root.mkdir()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, tool, *arguments):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = tool.main([*arguments, str(self.root)])
        return status, output.getvalue()


class CheckLayers(Tree):
    def test_own_and_lower_layers_may_be_included(self):
        self.write("plan/planner.cc", '#include "ridge/plan/planner.h"\n'
                                      '#include "ridge/graph/graph.h"\n#include <vector>\n')
        self.write("ridge.h", '#include "ridge/cli/all.h"\n')
        self.assertEqual(self.run_tool(check_layers)[0], 0)

    def test_refuses_a_higher_layer_and_names_the_line(self):
        self.write("core/a.h", '#pragma once\n#include "ridge/plan/planner.h"\n')
        status, output = self.run_tool(check_layers)
        self.assertEqual(status, 1)
        self.assertIn("core/a.h:2: core (rank 0) includes plan (rank 3)", output)

    def test_refuses_a_layer_of_the_same_rank(self):
        self.write("plan/a.cc", '#include "ridge/backend/device.h"\n')
        self.assertEqual(self.run_tool(check_layers)[0], 1)

    def test_a_leaf_room_knows_only_itself(self):
        self.write("data/image/a.h", '#include "ridge/core/x.h"\n')
        self.write("data/image/b.cc", '#include "ridge/data/source.h"\n'
                                             '#include "ridge/data/image/a.h"\n')
        self.write("data/c.cc", '#include "ridge/data/image/a.h"\n')
        status, output = self.run_tool(check_layers)
        self.assertEqual(status, 1)
        self.assertIn("b.cc:1: data/image includes data/source.h; it is a leaf", output)
        self.assertEqual(output.count("\n"), 1)

    def test_rooms_know_only_lower_rooms(self):
        self.write("train/job/a.cc", '#include "ridge/train/options/o.h"\n')
        self.assertEqual(self.run_tool(check_layers)[0], 0)
        self.write("train/job/b.cc", '#include "ridge/train/loop/t.h"\n')
        self.write("train/attic/c.cc", '#include "ridge/train/job/j.h"\n')
        status, output = self.run_tool(check_layers)
        self.assertEqual(status, 1)
        self.assertIn("job/b.cc:1: train/job includes train/loop; only lower rooms", output)
        self.assertIn("room train/attic is not in tools/check_layers.py", output)

    def test_refuses_a_folder_without_rank(self):
        self.write("magic/a.cc", "")
        self.write("core/b.cc", '#include "ridge/util/x.h"\n')
        status, output = self.run_tool(check_layers)
        self.assertEqual(status, 1)
        self.assertIn("folder magic has no rank", output)
        self.assertIn("folder util has no rank", output)

    def test_ranks_are_those_of_the_build(self):
        text = (ROOT / "CMakeLists.txt").read_text()
        built = re.findall(r"ridge_add_layer\((\w+)\s+(\d+)", text)
        self.assertGreater(len(built), 10)
        for layer, rank in built:
            self.assertEqual(check_layers.RANK[layer], int(rank), layer)


class CheckTypes(Tree):
    def test_a_name_of_two_types_is_named_with_both_places(self):
        self.write("core/a.h", "namespace ridge {\n\nstruct Range {\n  int a;\n};\n\n}  // namespace ridge\n")
        self.write("graph/b.h", "namespace ridge {\nclass Range final : public Base {\n};\n}  // namespace ridge\n")
        status, output = self.run_tool(check_types)
        self.assertEqual((status, output), (
            1, f"{self.root}/graph/b.h:2: ridge::Range is also defined in {self.root}/core/a.h:3; "
               "rename one of them\n"))

    def test_other_namespaces_unnamed_ones_declarations_and_members_are_no_second_type(self):
        self.write("core/a.h", "namespace ridge {\nenum class Kind { kA };\n}  // namespace ridge\n")
        self.write("core/b.cc", "namespace ridge {\nnamespace {\nstruct Kind {\n};\n}  // namespace\n"
                                "struct Kind;\nstruct Other {\n  struct Kind {};\n};\n"
                                "struct Other::Kind {\n};\n}  // namespace ridge\n")
        self.write("core/c.cc", "namespace ridge::cpu {\nenum class Kind { kA };\n"
                                "}  // namespace ridge::cpu\n")
        status, output = self.run_tool(check_types)
        self.assertEqual((status, output), (0, f"types: each name in {self.root} is defined once\n"))


class Functions(unittest.TestCase):
    def test_counts_lines_between_the_braces(self):
        self.assertEqual(lengths("int F(int a) {\n  a++;\n\n  return a;\n}\n"), {"F": 3})
        self.assertEqual(lengths("int F() { return 1; }\nvoid G() {}\n"), {"F": 1, "G": 1})

    def test_looks_into_namespaces_and_classes(self):
        text = ('namespace ridge {\nnamespace {\nclass A final : public B<int> {\n public:\n'
                "  int Get() const { return 1; }\n private:\n  int x_{3};\n};\n}\n"
                'extern "C" {\nint H(void) { return 0; }\n}\n}  // namespace ridge\n')
        self.assertEqual(lengths(text), {"Get": 1, "H": 1})

    def test_constructor_with_initializers(self):
        text = ("A::A(int x) : Base<int>{x}, a_(F(x)), b_{x, {1}} {\n  Use();\n  Use();\n}\n"
                "A::A() : a_(1) {}\n~A() {\n}\nint F() { return 1; }\n")
        self.assertEqual([(f.name, f.length) for f in functions(text)],
                         [("A", 2), ("A", 1), ("~A", 1), ("F", 1)])

    def test_values_and_types_are_no_functions(self):
        text = ("const int kTable[] = {1, 2};\nstd::vector<int> v{F(1)};\nenum class E : int { kA };\n"
                "struct P { int a = F(2); std::vector<int> b = {1}; };\nauto x = F(G{1});\n")
        self.assertEqual(lengths(text), {})

    def test_templates_operators_and_trailing_types(self):
        text = ("template <typename T = int, class = std::enable_if_t<(sizeof(T) > 1)>>\n"
                "auto F(T t = {}) -> std::vector<T> {\n  return {t};\n}\n"
                "bool operator==(const A& a, const A& b) { return true; }\n"
                "float A::operator()(int i) const noexcept { return 1.0f; }\n"
                "A& A::operator=(A&& o) {\n  a = 1;\n  b = 2;\n  return *this;\n}\n")
        self.assertEqual([f.length for f in functions(text)], [1, 1, 1, 3])

    def test_lambdas_belong_to_their_function(self):
        text = ("void F() {\n  auto g = [&](int a) {\n    return a;\n  };\n  g(1);\n}\n"
                "const auto kDouble = [](int a) {\n  a *= 2;\n  return a;\n};\n"
                "TEST(Suite, Name) {\n  Run([] { return 1; });\n}\n")
        self.assertEqual(lengths(text), {"F": 4, "kDouble": 2, "TEST": 1})

    def test_braces_in_literals_comments_and_other_branches_do_not_count(self):
        text = ('// {\n/* { */\nint F() {\n  G("}{", \'}\', R"x({{)")x", 1\'000);\n'
                "#if A\n  if (a) {\n#else\n  if (b) {\n#endif\n  }\n}\n"
                "#define M(x) \\\n  { x\nint H() { return 1; }\n")
        self.assertEqual(lengths(text), {"F": 7, "H": 1})


class SizeReport(Tree):
    def test_short_code_passes(self):
        self.write("core/a.cc", "int F() { return 1; }\n")
        status, output = self.run_tool(size_report)
        self.assertEqual(status, 0)
        self.assertIn("functions", output)

    def test_long_functions_fail_unless_they_are_in_tests(self):
        body = "void F() {\n" + "  G();\n" * 31 + "}\n"
        self.write("core/a_test.cc", body)
        self.assertEqual(self.run_tool(size_report, "--skip-tests")[0], 0)
        status, output = self.run_tool(size_report)
        self.assertEqual(status, 1)
        self.assertIn("p90 is 31 lines", output)

    def test_long_headers_fail(self):
        self.write("core/a.h", "// x\n" * 221)
        self.assertEqual(self.run_tool(size_report)[0], 1)

    def test_a_long_file_needs_a_reason(self):
        self.write("core/a.cc", "// The table.\n" + "int x;\n" * 800)
        self.assertEqual(self.run_tool(size_report)[0], 1)
        self.write("core/a.cc", "// Long because the table has one line per device.\n" +
                   "int x;\n" * 800)
        self.assertEqual(self.run_tool(size_report)[0], 0)

    def test_percentile_is_a_value_of_the_list(self):
        self.assertEqual(size_report.percentile(list(range(1, 11)), 90), 9)
        self.assertEqual(size_report.percentile([5], 90), 5)
        self.assertEqual(size_report.percentile([], 90), 0)


class Unity(Tree):
    """Files of one unit keep what their unnamed namespaces declare to themselves."""

    def unit(self, **texts):
        for name, text in texts.items():
            self.write(f"{name}.cc", text)
        return unity.unit([unity.Source(f"{self.root}/{name}.cc") for name in texts])

    def names(self, text):
        self.write("a.cc", "namespace ridge {\nnamespace {\n" + text + "\n}\nint Outer() {}\n}\n")
        return unity.Source(f"{self.root}/a.cc").own

    def test_every_form_of_declaration_gives_its_name(self):
        self.assertEqual(self.names("struct A { int b; };\nclass C : public D<int> {};\n"
                                    "enum class E { kF };\nusing G = std::map<int, int>;"),
                         {"A", "C", "E", "G"})
        self.assertEqual(self.names("template <typename T, int n = (1 > 0)>\nResult<T>\n"
                                    "Find(T a) {}\n"
                                    "int Later(int a);\nalignas(64) float table[4] = {1};"),
                         {"Find", "Later", "table"})
        self.assertEqual(self.names("constexpr int kA = 1, kD = 2;\nstatic_assert(sizeof(int));\n"
                                    "const auto kB = [](int x) { if (x) {} };\n"
                                    "constexpr std::array<int, 2> kC{1, 2};\n"),
                         {"kA", "kB", "kC", "kD"})

    def test_a_name_that_another_file_mentions_gets_the_files_name(self):
        text = self.unit(a="namespace { int Grad() {} int Alone() {} }\n",
                         b="namespace { int Grad() {} }\n", c="int x = Far();\n")
        self.assertIn("#define Grad Grad_a\n", text)
        self.assertIn("#define Grad Grad_b\n", text)
        self.assertNotIn("Alone", text)
        self.assertEqual(text.count("#undef Grad\n"), 2)

    def test_a_members_name_stays(self):
        text = self.unit(a="namespace { int Size() {} }\nint x = y.Size();\n",
                         b="namespace { int Size() {} }\n")
        self.assertNotIn("Size_a", text)
        self.assertIn("#define Size Size_b\n", text)

    def test_headers_come_first_and_macros_end_with_their_file(self):
        text = self.unit(a='#include "a.h"\n#include "ops.def"\n#define ROW 1\n',
                         b="#include <map>\n")
        lines = text.splitlines()
        self.assertLess(lines.index("#include <map>"), lines.index(f'#include "{self.root}/a.cc"'))
        self.assertNotIn('#include "ops.def"', lines)
        self.assertIn("#undef ROW", lines)


class MakeDist(unittest.TestCase):
    def test_the_wheels_tag_names_the_oldest_glibc(self):
        self.assertEqual(make_dist.wheel_name("0.1.0", (2, 34)),
                         "ridge-0.1.0-py3-none-manylinux_2_34_x86_64")

    def test_tarball_and_wheel_hold_the_plug_in_of_cudnn(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix, out = pathlib.Path(folder) / "root", pathlib.Path(folder)
            for name in make_dist.MUST_HAVE:
                (prefix / name).parent.mkdir(parents=True, exist_ok=True)
                (prefix / name).write_bytes(b"\x7fELF")
            with tarfile.open(make_dist.write_tarball(prefix, "0.1.0", out)) as archive:
                self.assertIn("ridge-0.1.0-linux-x86_64/lib/ridge/libridge_cudnn.so", archive.getnames())
            with zipfile.ZipFile(make_dist.write_wheel(prefix, "0.1.0", (2, 34), out)) as archive:
                self.assertIn("ridge-0.1.0.data/data/lib/ridge/libridge_cudnn.so", archive.namelist())

    def test_a_prefix_without_the_plug_in_of_cudnn_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder)
            with self.assertRaises(SystemExit) as refused:
                make_dist.check_plugins(prefix)
            self.assertEqual(str(refused.exception),
                             f"make_dist: {prefix} has no lib/ridge/libridge_cudnn.so. hint: "
                             "scripts/build_cudnn_plugin.sh --headers, then make dist")
            (prefix / "lib/ridge").mkdir(parents=True)
            (prefix / "lib/ridge/libridge_cudnn.so").touch()
            make_dist.check_plugins(prefix)

    def test_the_oldest_glibc_is_that_of_the_newest_symbol(self):
        own = pathlib.Path(sys.executable).resolve()
        major, minor = make_dist.oldest_glibc([own])
        self.assertEqual(major, 2)
        self.assertGreaterEqual(minor, 14)  # memcpy's


class ResultsTable(unittest.TestCase):
    RECORD = {"workloads": {"cnn:64": {
        "ridge": {"ms_min": 2.0, "first_step_s": 0.102, "peak_mb": 10.0},
        "tf graph": {"ms_min": 4.0, "first_step_s": 3.004, "peak_mb": 50.0},
        "jax jit": {"ms_min": 8.0, "first_step_s": 2.0, "peak_mb": 30.0},
        "torch compile": {"ms_min": None, "first_step_s": None, "peak_mb": None},
        "ratio_to_fastest_peer": {"peer": "tf graph", "ratio": 0.5}}}}
    OTHER = {"workloads": {"cnn:64": {"jax jit": {"ms_min": 7.0, "peak_mb": 20.0}}, "mlp:8": {}}}

    def test_a_row_has_the_fastest_peer_of_its_record_and_the_leanest_of_all(self):
        row = results_table.row("cnn:64", self.RECORD, [self.RECORD, self.OTHER])
        self.assertEqual((row["peer"], row["time_ratio"]), ("TensorFlow graph", 0.5))
        self.assertEqual((row["lean"], row["memory_ratio"]), ("JAX", 0.5))
        self.assertAlmostEqual(row["start_s"], 0.1)
        self.assertAlmostEqual(row["peer_start_s"], 3.0)

    def test_a_bar_is_as_long_as_its_ratio_to_an_eighth_of_a_cell(self):
        cells = results_table.BAR_CELLS
        self.assertEqual(results_table.bar(1), "█" * cells)
        self.assertEqual(results_table.bar(0.5 + 1 / 8 / cells),
                         ("█" * (cells // 2) + "▏").ljust(cells))

    def test_replaces_what_is_between_the_markers_only(self):
        text = "a\n<!-- results table -->\nold\n<!-- end -->\nb\n"
        self.assertEqual(results_table.filled(text, {"table": "new"}), text.replace("old", "new"))
        with self.assertRaises(SystemExit):
            results_table.filled(text, {"chart": "new"})

    def test_check_finds_a_text_that_differs_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            for name in results_table.TEXTS:
                (root / name).write_text("<!-- results table -->\n<!-- end -->\n")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                self.assertEqual(results_table.main(["--check"], root), 1)
            self.assertIn("README.md, docs/performance.md: differs", output.getvalue())
            self.assertEqual(results_table.main([], root), 0)
            self.assertEqual(results_table.main(["--check"], root), 0)


class PlantedBugs(unittest.TestCase):
    def test_each_replaces_a_text_that_occurs_once(self):
        for bug in planted_bugs.BUGS:
            with self.subTest(bug.name):
                path = ROOT / bug.file
                self.assertTrue(path.exists(), bug.file)
                self.assertEqual(path.read_text(encoding="utf-8").count(bug.right), 1, bug.file)


class BinaryCheck(unittest.TestCase):
    def test_libraries_of_nvidia_are_known_by_their_names(self):
        foreign = ["libcuda.so.1", "libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2",
                   "libnvrtc.so.13", "libnvidia-ml.so.1"]
        others = ["libc.so.6", "libdnnl.so.3", "libridge_cudnn.so", "libnuma.so.1"]
        self.assertEqual(binary_check.nvidia([*foreign, *others]), foreign)

    def test_symbols_are_counted_once_an_address(self):
        listing = ("0000000000001000 0000000000000010 T ridge::cuda::LoadDriver()\n"
                   "0000000000001000 0000000000000010 W ridge::cuda::LoadDriver() [clone]\n"
                   "0000000000002000 0000000000000020 W std::vector<ridge::cuda::Gpu>::~vector()\n"
                   "0000000000003000 0000000000000040 T ridge::Planner::Plan()\n"
                   "                 U dlopen\n")
        self.assertEqual(binary_check.symbol_bytes(listing), (0x30, 2))


class Skips(unittest.TestCase):
    """RIDGE_NO_SKIPS=1 of tests/e2e/_ridge.py."""

    def result(self, reason, **variables):
        text = (f"import unittest\nimport _ridge\nclass A(unittest.TestCase):\n"
                f"    def test_a(self): self.skipTest({reason!r})\nunittest.main()\n")
        env = {"PATH": os.environ["PATH"], "RIDGE": "none", "PYTHONPATH": str(ROOT / "tests/e2e"),
               "PYTHONDONTWRITEBYTECODE": "1", **variables}
        return subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True)

    def test_a_skip_fails_unless_the_machine_is_its_reason(self):
        self.assertEqual(self.result("needs numpy").returncode, 0)
        self.assertEqual(self.result("not on this machine: no GPU", RIDGE_NO_SKIPS="1").returncode, 0)
        failed = self.result("needs numpy", RIDGE_NO_SKIPS="1")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("AssertionError: RIDGE_NO_SKIPS: needs numpy", failed.stderr)


if __name__ == "__main__":
    unittest.main()
