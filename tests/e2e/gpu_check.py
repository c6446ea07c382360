"""tools/gpu_check.sh of an installed ridge, on a driver that runs on the host: each part passes, and a plan
that does not keep its promises fails."""
import json
import os
import re
import shutil
import subprocess
import unittest

from _ridge import FAKE_GPU, RIDGE, SOURCE, RidgeTest, environment

SMALL = "mlp:hidden=8,layers=1,inputs=12,classes=3"
PARTS = ["doctor", "twice", "killed", "offloaded", "placed", "beside_cpu", "bench_device", "warm_mlp",
         "bench_mlp", "promises"]


class GpuCheck(RidgeTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("share/ridge"))
        os.mkdir(self.path("bin"))
        os.symlink(os.path.abspath(RIDGE), self.path("bin/ridge"))
        shutil.copy(os.path.join(SOURCE, "tools/gpu_check.sh"), self.path("share/ridge"))

    def check(self, **variables):
        """The exit code, and the parts' own by name."""
        env = environment({**FAKE_GPU, "MODELS": "mlp:8", "SMALL": SMALL, "STEPS": "6",
                           "PRECISION": "f32", "PEER": "", "OUT": self.path("out"),
                           "STEP_OFF": "", "FIRST_STEP_S": "", **variables})
        done = subprocess.run(["bash", self.path("share/ridge/gpu_check.sh")], cwd=self.folder,
                              env=env, text=True, capture_output=True, timeout=300, check=False)
        with open(self.path("out/summary")) as file:
            codes = dict(re.findall(r"^(\w+): exit (\d+), ", file.read(), re.MULTILINE))
        return done, codes

    def log(self, part):
        with open(self.path(f"out/{part}.log")) as file:
            return file.read()

    def test_each_part_passes(self):
        done, codes = self.check()
        logs = "".join(self.log(part) for part in codes if codes[part] != "0")
        self.assertEqual(codes, {part: "0" for part in PARTS}, logs)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(self.log("killed"), r"\nequal: ")
        self.assertRegex(self.log("promises"), r"^mlp 8: \d+ MiB, planned [+-]\d\.\d%, proven; .* ms a step, "
                                               r"planned .*%; first step after [0-9.]+ s\n$")
        self.assertEqual(self.read_json("out/bench_device.json")["name"], "Test GPU 0")
        self.assertIn("planned", self.read_json("out/step_mlp.json"))

    def promises(self, told, **limits):
        """The part's exit code and line, for what a model's timing told."""
        with open(self.path("share/ridge/gpu_check.sh")) as file:
            program = re.search(r"<<'PYTHON'\n(import json, os, sys\n.*?)\nPYTHON\n", file.read(),
                                re.DOTALL)[1]
        self.write("told.json", json.dumps(told))
        env = environment({"BYTES_OFF": "0.02", "STEP_OFF": "0.1", "FIRST_STEP_S": "5", **limits})
        done = subprocess.run(["python3", "-c", program, "told.json"], cwd=self.folder, env=env, text=True,
                              capture_output=True, check=False)
        return done.returncode, done.stdout

    def test_a_promise_that_is_not_kept_fails(self):
        def told(peak_bytes=1000, step_s=1.0, first_step_s=1.0, verdict="proven"):
            return {"model": "mlp", "batch": 8, "planned": {"peak_bytes": 1000, "step_s": 1.0},
                    "measured": {"peak_bytes": peak_bytes, "step_s": step_s},
                    "first_step_s": first_step_s, "device_bytes": {"verdict": verdict}}
        self.assertEqual(self.promises(told()), (0, "mlp 8: 0 MiB, planned +0.0%, proven; 1e+03 ms a step, "
                                                    "planned +0.0%; first step after 1.00 s\n"))
        for broken in ({"peak_bytes": 1030}, {"peak_bytes": 970}, {"step_s": 1.2}, {"first_step_s": 5.1},
                       {"verdict": "leak"}):
            code, line = self.promises(told(**broken))
            self.assertEqual((code, line.endswith(": not kept\n")), (1, True), line)
        self.assertEqual(self.promises(told(step_s=9, first_step_s=9), STEP_OFF="", FIRST_STEP_S="")[0], 0)


if __name__ == "__main__":
    unittest.main()
