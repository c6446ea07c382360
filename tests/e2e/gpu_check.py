"""tools/gpu_check.sh of an installed ridge, on a driver that runs on the host: each part passes, and a plan
that does not keep its promises fails; a target that is missed is said."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from _ridge import FAKE_GPU, RIDGE, SOURCE, RidgeTest, environment

SMALL = "mlp:hidden=8,layers=1,inputs=12,classes=3"
PARTS = ["doctor", "twice", "killed", "offloaded", "placed", "beside_cpu", "bits_mlp_hidden_8_layers_1_8",
         "bits_cnn_image_8_2", "warm_mlp_8", "bench_mlp_8", "train_mlp_8", "train_mlp_8_in_line", "profile_mlp_8",
         "bench_device", "promises", "targets", "attributes", "record"]


class GpuCheck(RidgeTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("share/ridge"))
        os.mkdir(self.path("bin"))
        os.symlink(os.path.abspath(RIDGE), self.path("bin/ridge"))
        for name in "gpu_check.sh", "gpu_judge.py":
            shutil.copy(os.path.join(SOURCE, "tools", name), self.path("share/ridge"))

    def check(self, **variables):
        """The exit code, and the parts' own by name."""
        env = environment({**FAKE_GPU, "MODELS": "mlp:8", "BITS": "mlp:hidden=8,layers=1:8 cnn:image=8:2",
                           "SMALL": SMALL, "STEPS": "6",
                           "PRECISION": "f32", "PEER": "", "OUT": self.path("out"),
                           "STEP_OFF": "", "TRAIN_STEPS": "60", **variables})
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
        self.assertEqual(list(codes), PARTS)  # what matters most comes first
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for part in "killed", "bits_cnn_image_8_2":
            self.assertRegex(self.log(part), r"\nequal: ")
        self.assertRegex(self.log("bits_cnn_image_8_2"), r"(?m)^ +3 +\"parameters_sha256\"")
        self.assertRegex(self.log("promises"), r"^mlp 8: \d+ MiB, planned [+-]\d\.\d%, proven; .* ms a step, "
                                               r"planned .*%\n$")
        self.assertEqual(self.read_json("out/bench_device.json")["name"], "Test GPU 0")
        self.assertIn("planned", self.read_json("out/step_mlp_8.json"))
        self.assertRegex(self.log("targets"), r"mlp 8 +speed of the faster peer +at least 1.0 x +- +peer not "
                                              r"available\n")
        record = self.read_json("out/record.json")
        self.assertEqual(record["device"]["name"], "Test GPU 0")
        self.assertEqual(record["machine"]["cuda"]["answer"]["version"], "13.0")
        self.assertEqual([step["batch"] for step in record["steps"]], [8])
        self.assertIsNotNone(record["train"]["mlp_8"]["input_wait"])
        self.assertTrue(record["profile"]["mlp_8"]["groups"])
        self.assertEqual(record["attributes"]["l2CacheSize"], 62914560)
        self.assertEqual(record["not_run"]["peer"], "PEER names none")
        self.assertIn("\nattributes of the GPU: no file of devices/ describes Test GPU 0\n", done.stdout)

    def test_what_has_no_time_is_said_and_a_peer_that_can_not_run_has_its_reason(self):
        for name in "torchvision", "transformers":
            self.write(f"{name}.py", "")
        for torch, why in (("import none_such", "No module named 'none_such'"),
                           ("raise OSError('libcudart.so.13: no such file\\nof the system')",
                            "libcudart.so.13: no such file"),
                           ("class cuda:\n    is_available = lambda: False", "its PyTorch finds no GPU")):
            self.write("torch.py", torch)
            done, codes = self.check(TIME_S="1", PEER=sys.executable, PYTHONPATH=self.folder)
            self.assertEqual((done.returncode, codes), (0, {"targets": "0", "attributes": "0", "record": "0"}),
                             done.stdout)
            self.assertIn("\nkilled: not run, 1 s are over (TIME_S)\n", done.stdout)
            self.assertIn(f"\npeer not available: {why}\n", done.stdout)
            why_not = self.read_json("out/record.json")["not_run"]
            self.assertEqual((why_not["bits_cnn_image_8_2"], why_not["peer"]), ("1 s are over (TIME_S)", why))
        self.write("torch.py", "class cuda:\n    is_available = lambda: True")
        for name in "torchvision", "transformers":
            os.rename(self.path(f"{name}.py"), self.path("away"))
            done, _ = self.check(TIME_S="1", PEER=sys.executable, PYTHONPATH=self.folder)
            self.assertIn(f"\npeer not available: No module named '{name}'\n", done.stdout)
            os.rename(self.path("away"), self.path(f"{name}.py"))
        done, _ = self.check(TIME_S="1", PEER=sys.executable, PYTHONPATH=self.folder)
        self.assertIn("\npeer_mlp_8_eager: not run, 1 s are over (TIME_S)\n", done.stdout)

    def test_a_part_takes_no_more_than_what_is_left(self):
        done, codes = self.check(TIME_S="25", STEPS="10000000")
        self.assertEqual((done.returncode, codes["record"]), (0, "0"), done.stdout)
        self.assertRegex(done.stdout, r"(?m)^twice: not run, ended when 25 s were over \(TIME_S\)$")
        self.assertEqual(self.read_json("out/record.json")["not_run"]["killed"], "25 s are over (TIME_S)")

    def test_without_cudnn_speeds_are_not_judged_and_the_summary_says_so(self):
        done, _ = self.check(TIME_S="1", RIDGE_CUDA_PATH=self.without_cudnn())
        self.assertIn("no cuDNN: speeds are not judged, attention and convolutions run on ridge's own kernels\n",
                      done.stdout)
        self.assertIn("cuDNN", self.read_json("out/record.json")["not_run"])
        self.assertNotIn("no cuDNN", self.check(TIME_S="1")[0].stdout)
        self.measured()
        with open(self.path("out/summary"), "a") as file:
            file.write("no cuDNN: speeds are not judged, ...\n")
        verdicts, last = self.targets()
        self.assertEqual([target for target, verdict in verdicts.items() if verdict == "not judged: no cuDNN"],
                         ["speed of the faster peer", "model FLOPs of the peak"])
        self.assertEqual(last, "4 targets met, 0 missed, 2 not known")

    def without_cudnn(self):
        """The libraries of the fake GPU but the plug-in of cuDNN."""
        os.mkdir(self.path("cuda"))
        for name in os.listdir(FAKE_GPU["RIDGE_CUDA_PATH"]):
            if "cudnn" not in name:
                os.symlink(os.path.join(FAKE_GPU["RIDGE_CUDA_PATH"], name), self.path(f"cuda/{name}"))
        return self.path("cuda")

    def attributes(self, **told):
        """The lines about a GPU of these attributes, beside the file of an H200."""
        os.makedirs(self.path("out"), exist_ok=True)
        os.makedirs(self.path("share/ridge/devices"), exist_ok=True)
        shutil.copy(os.path.join(SOURCE, "plugins/cudnn/devices/h200-sxm.json"), self.path("share/ridge/devices"))
        stated = self.read_json("share/ridge/devices/h200-sxm.json")
        answer = {"devices": [{"properties": {**stated, **told}}]}
        self.write("out/doctor.json", json.dumps({"cuda": {"answer": answer}}))
        return self.judge("attributes", "out")[1]

    def test_attributes_that_differ_from_the_file_of_the_gpu_have_a_line_each(self):
        self.assertEqual(self.attributes(pciDeviceId=9, driverVer=13010, cudaDeviceId=1),
                         "attributes of NVIDIA H200: 0 of 19 differ from h200-sxm.json\n")
        self.assertEqual(self.attributes(multiProcessorCount=131, maxBlockSize=[1, 2, 3]),
                         "maxBlockSize of NVIDIA H200: [1, 2, 3], h200-sxm.json has [1024, 1024, 64]\n"
                         "multiProcessorCount of NVIDIA H200: 131, h200-sxm.json has 132\n"
                         "attributes of NVIDIA H200: 2 of 19 differ from h200-sxm.json\n")
        self.write("out/doctor.json", json.dumps({"cuda": {"answer": None}}))
        self.assertEqual(self.judge("attributes", "out")[1], "attributes of the GPU: not measured\n")

    def judge(self, *words, **limits):
        """What gpu_judge.py of the installed ridge says: its exit code and its lines."""
        done = subprocess.run(["python3", self.path("share/ridge/gpu_judge.py"), *words], cwd=self.folder,
                              env=environment(limits), text=True, capture_output=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def told(self, model="mlp", batch=8, peak_bytes=1000 << 20, step_s=1.0, first_step_s=1.0, verdict="proven"):
        """What `ridge bench step --json` tells of a model."""
        parts = {name: 1 for name in ("context", "arena", "kernels", "graphs", "staging")}
        return {"model": model, "batch": batch, "planned": {"peak_bytes": 1000 << 20, "step_s": 1.0},
                "measured": {"peak_bytes": peak_bytes, "step_s": step_s}, "ms_med": step_s * 1e3,
                "flops_floor_s": 0.42, "first_step_s": first_step_s,
                "device_bytes": {"verdict": verdict, "planned": parts, "measured": parts}}

    def promises(self, told, **limits):
        self.write("told.json", json.dumps(told))
        return self.judge("promises", "told.json", **limits)

    def test_a_promise_that_is_not_kept_fails(self):
        self.assertEqual(self.promises(self.told()), (0, "mlp 8: 1000 MiB, planned +0.0%, proven; 1e+03 ms "
                                                         "a step, planned +0.0%\n"))
        for broken in ({"peak_bytes": 1030 << 20}, {"peak_bytes": 970 << 20}, {"step_s": 1.2},
                       {"verdict": "leak"}):
            code, line = self.promises(self.told(**broken))
            self.assertEqual((code, line.endswith(": not kept\n")), (1, True), line)
        self.assertEqual(self.promises(self.told(step_s=9), STEP_OFF="")[0], 0)
        self.assertEqual(self.judge("promises", "nothing.json"), (1, "nothing.json: no measurement\n"))

    def measured(self, input_wait=0.01, peers=(("eager", 2000, 2000), ("compile", 1100, 1300)), **told):
        """A folder with what was measured of gpt2."""
        os.makedirs(self.path("out/train_gpt2_8"), exist_ok=True)
        self.write("out/summary", "doctor: exit 0, 1 s\nranks: not run, one GPU is here\nbench_gpt2_8: exit 0, 7 s\n" +
                   ("" if peers else "peer not available: No module named 'torch'\n"))
        self.write("out/step_gpt2_8.json", json.dumps(self.told("gpt2", **told)))
        rows = [{"step": 50, "input_wait": 0.5}, {"step": 100, "input_wait": input_wait}]
        self.write("out/train_gpt2_8/metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        os.makedirs(self.path("out/train_gpt2_8_in_line"), exist_ok=True)
        shutil.copy(self.path("out/train_gpt2_8/metrics.jsonl"), self.path("out/train_gpt2_8_in_line"))
        for mode, ms, mib in peers:
            peer = {"mode": mode, "ms_med": ms, "used_mb": mib}
            self.write(f"out/peer_gpt2_8_{mode}.log", f"a warning of PyTorch's\n{json.dumps(peer)}\n")

    def targets(self):
        """The verdict of each target, and the last line."""
        code, text = self.judge("targets", "out")
        self.assertEqual(code, 0)
        lines = text.splitlines()
        at = lines[0].rindex("measured")
        words = [re.split(r"  +", line[:at].strip())[1:2] + re.split(r"  +", line)[-1:] for line in lines[1:-1]]
        return {target: verdict for target, verdict in words}, lines[-1]

    def test_each_target_is_met_or_missed_and_none_fails(self):
        both = ["wait for input", "wait for input, copies in line"]
        names = ["speed of the faster peer", "memory of the peer", "model FLOPs of the peak", both[0],
                 "first step, warm caches"]
        self.measured()
        self.assertEqual(self.targets(),
                         (dict.fromkeys([*names, both[1]], "met"), "6 targets met, 0 missed, 0 not known"))
        for missed, told in zip(names, [{"peers": [("compile", 990, 1300)]}, {"peak_bytes": 1050 << 20},
                                        {"step_s": 1.06}, {"input_wait": 0.02}, {"first_step_s": 5.0}]):
            self.measured(**told)
            verdicts, last = self.targets()
            self.assertEqual([name for name in names if verdicts[name] != "met"], [missed])
            self.assertEqual(verdicts[both[0]], verdicts[both[1]])
            met, count = (4, 2) if missed == both[0] else (5, 1)
            self.assertEqual(last, f"{met} targets met, {count} missed, 0 not known")

    def test_batches_of_a_model_are_judged_each_by_itself_and_flops_of_the_best(self):
        self.measured(step_s=1.1)
        self.write("out/step_gpt2_16.json", json.dumps(self.told("gpt2", 16)))
        text = self.judge("targets", "out")[1]
        self.assertRegex(text, r"gpt2 16 +model FLOPs of the peak +at least 40 % +42.0%; batch 8: 38.2% +met\n")
        self.assertRegex(text, r"gpt2 16 +speed of the faster peer +at least 1.0 x +- +peer failed\n")
        self.assertTrue(text.endswith("\n7 targets met, 0 missed, 4 not known\n"), text)
        with open(self.path("out/summary"), "a") as file:
            file.write("peer_gpt2_16_eager: not run, 600 s are over (TIME_S)\n")
        self.assertIn("peer not run\n", self.judge("targets", "out")[1])

    def test_a_target_that_nothing_was_measured_of_says_why(self):
        self.measured(peers=())
        for run in "train_gpt2_8", "train_gpt2_8_in_line":
            os.remove(self.path(f"out/{run}/metrics.jsonl"))
        verdicts, last = self.targets()
        self.assertEqual(list(verdicts.values()), ["peer not available", "peer not available",
                                                   "not measured", "not measured", "met", "met"])
        self.assertEqual(last, "2 targets met, 0 missed, 4 not known")
        os.rename(self.path("out/step_gpt2_8.json"), self.path("out/step_bert_8.json"))
        self.assertEqual(self.targets()[0]["model FLOPs of the peak"], "not measured")

    def test_the_record_has_all_that_was_measured(self):
        self.measured(step_s=1.06)
        for name, told in [("bench_device", {"name": "Test GPU 0"}), ("profile_gpt2_8", {"groups": [1], "nodes": [2]}),
                           ("doctor", {"cuda": {"driver": "580.95"}, "threads": 2})]:
            self.write(f"out/{name}.json", json.dumps(told))
        self.write("out/train_gpt2_8/summary.json", json.dumps({"libraries": ["NVRTC 13.0"]}))
        self.assertEqual(self.judge("record", "out")[0], 0)
        record = self.read_json("out/record.json")
        self.assertEqual(record["machine"]["cuda"], {"driver": "580.95"})
        self.assertEqual((record["libraries"], record["device"]), (["NVRTC 13.0"], {"name": "Test GPU 0"}))
        self.assertEqual(record["profile"], {"gpt2_8": {"groups": [1]}})
        self.assertEqual(record["parts"], {"doctor": {"exit": 0, "seconds": 1},
                                           "bench_gpt2_8": {"exit": 0, "seconds": 7}})
        self.assertEqual(record["not_run"], {"ranks": "one GPU is here"})
        self.assertEqual(record["bytes"]["gpt2_8"][1], {"part": "arena", "planned": 1, "measured": 1})
        self.assertEqual([row["verdict"] for row in record["targets"]], ["met", "met", "met", "met", "met", "missed"])
        self.assertEqual([row["kept"] for row in record["promises"]], [True])
        self.assertEqual([peer["mode"] for peer in record["peers"]], ["compile", "eager"])
        self.assertEqual(record["train"]["gpt2_8"]["input_wait"], 0.01)


if __name__ == "__main__":
    unittest.main()
