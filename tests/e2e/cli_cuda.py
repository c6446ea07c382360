"""NVIDIA's driver as `ridge doctor` finds it, and trainings on it: a driver that runs on the host."""
import json
import os
import re
import shutil
import unittest

from _ridge import FAKE_CUDA, FAKE_GPU, NOT_HERE, SOURCE, RidgeTest, write_npz

LIBRARY = os.path.join(FAKE_CUDA, "libcuda.so.1")
UUIDS = [f"GPU-{b}{b}{b}{b}-{b}{b}-{b}{b}-{b}{b}-{b}{b}{b}{b}{b}{b}" for b in ("a0", "a1", "a2")]
SUBJECTS = ("CUDA_VISIBLE_DEVICES", "libcuda")


class Cuda(RidgeTest):
    def doctor(self, place=FAKE_CUDA, **variables):
        """The probe's `cuda` and the problems with libcuda and its GPUs."""
        env = {"RIDGE_CUDA_PATH": place, **variables}
        done = self.ridge("doctor", "--json", env=env)
        self.assertIn(done.returncode, (0, 6), done.stderr)
        probe = json.loads(done.stdout)
        return probe["cuda"], [p for p in probe["problems"] if p["subject"] in SUBJECTS]

    def rows(self, **variables):
        """The lines of the report from CUDA's to the next."""
        text = self.ridge("doctor", env={"RIDGE_CUDA_PATH": FAKE_CUDA, **variables}).stdout
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("CUDA "))
        rows = [lines[at]]
        for line in lines[at + 1:]:
            if not line.startswith(" "):
                break
            rows.append(line)
        return [" ".join(row.split()) for row in rows]

    def test_devices_have_their_name_memory_and_uuid(self):
        cuda, problems = self.doctor(RIDGE_FAKE_CUDA_DEVICES="2", RIDGE_FAKE_CUDA_BYTES="8388608")
        for device in cuda["answer"]["devices"]:
            device.pop("properties")
        self.assertEqual(cuda["answer"], {
            "library": LIBRARY, "version": "13.0", "failure": None,
            "devices": [{"name": f"Test GPU {i}", "architecture": "9.0", "memory_bytes": 8388608,
                         "uuid": UUIDS[i]} for i in range(2)]})
        self.assertEqual(problems, [])

    def test_properties_have_the_form_of_the_files_that_describe_gpus(self):
        with open(os.path.join(SOURCE, "plugins/cudnn/devices/h200-sxm.json")) as file:
            h200 = json.load(file)
        devices = self.doctor(RIDGE_FAKE_CUDA_DEVICES="2", RIDGE_FAKE_CUDA_BYTES="8388608")[0]["answer"]["devices"]
        for ordinal, device in enumerate(devices):
            self.assertEqual(list(device["properties"]), list(h200))
            self.assertEqual(device["properties"], {
                **h200, "cudaDeviceId": ordinal, "deviceName": f"Test GPU {ordinal}", "multiProcessorCount": 4,
                "totalGlobalMem": 8388608})

    def test_the_report_has_a_row_a_device(self):
        rows = self.rows(RIDGE_FAKE_CUDA_DEVICES="3", CUDA_VISIBLE_DEVICES="2,0")
        self.assertTrue(rows[0].endswith(
            f"CUDA 13.0 ({LIBRARY})"), rows[0])
        self.assertEqual(rows[-3:], ["CUDA_VISIBLE_DEVICES is '2,0' and leaves 2 GPUs",
                                     f"cuda:0 Test GPU 2 (9.0, 256 MiB), {UUIDS[2]}",
                                     f"cuda:1 Test GPU 0 (9.0, 256 MiB), {UUIDS[0]}"])

    def test_visible_devices_that_the_driver_cuts_short_are_a_warning(self):
        for visible, shown, text in [
                ("0,5", 1, "it is '0,5': the driver shows 1 of the 2 that it names, and ends "
                 "before '5'"),
                ("MIG-a,MIG-b", 1, "it is 'MIG-a,MIG-b': it has 2 MIG instances; a process uses "
                 "one"),
                ("1,GPU-a0", 2, "it is '1,GPU-a0': '1' and 'GPU-a0' are of two kinds; a list has "
                 "one")]:
            cuda, problems = self.doctor(RIDGE_FAKE_CUDA_DEVICES="2", CUDA_VISIBLE_DEVICES=visible)
            self.assertEqual(len(cuda["answer"]["devices"]), shown)
            self.assertEqual([(p["severity"], p["text"]) for p in problems], [("warning", text)])

    def test_each_driver_that_is_none_has_its_sentence(self):
        stub = os.path.join(self.folder, "stubs")
        os.mkdir(stub)
        shutil.copy(LIBRARY, stub)
        for variables, sentence in [
                ({"RIDGE_FAKE_CUDA_VERSION": "12040"},
                 f"{LIBRARY} is of a driver for CUDA 12.4; ridge needs CUDA 13.0, which driver "
                 "580 has. hint: install NVIDIA's driver 580 or newer"),
                ({"RIDGE_FAKE_CUDA_FAIL": "cuDriverGetVersion:1:34", "place": stub},
                 f"{stub}/libcuda.so.1 is the stub of a CUDA toolkit, for linking programs; it "
                 "drives no GPU. hint: unset RIDGE_CUDA_PATH"),
                ({"RIDGE_FAKE_CUDA_FAIL": "cuInit:1:803"},
                 "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803). hint: restart the "
                 "machine: the kernel has another version of the driver than libcuda"),
                ({"RIDGE_FAKE_CUDA_FAIL": "cuInit:1:-6"},
                 "libcuda ended the process that asked it, by signal 6. hint: sudo dmesg has what "
                 "the driver said"),
                ({"RIDGE_FAKE_CUDA_FAIL": "cuInit:1:-14"},  # SIGALRM: it took too long
                 "libcuda gave no answer within 10 s. hint: sudo dmesg has what the driver said"),
                ({"CUDA_VISIBLE_DEVICES": "-1"},
                 "the NVIDIA driver shows no GPU: CUDA_VISIBLE_DEVICES is '-1'. hint: unset "
                 "CUDA_VISIBLE_DEVICES"),
                ({"place": self.path("no")},
                 f"RIDGE_CUDA_PATH is '{self.path('no')}': {self.path('no')}: cannot open shared "
                 "object file: No such file or directory. hint: unset RIDGE_CUDA_PATH, and the "
                 "system's driver is taken")]:
            cuda, problems = self.doctor(**variables)
            self.assertEqual(cuda["answer"]["failure"], sentence)
            self.assertEqual([f"{p['text']}. hint: {p['mend']}" for p in problems], [sentence])
            self.assertEqual(cuda["answer"]["devices"], [])

    @unittest.skipIf(os.path.exists("/proc/driver/nvidia/version"), NOT_HERE + "this machine has a driver")
    def test_a_machine_without_a_driver_says_so_and_asks_nobody(self):
        self.assertEqual(self.rows(RIDGE_CUDA_PATH=""), ["CUDA no driver"])
        self.assertIsNone(self.doctor(place="")[0]["answer"])

    def train(self, *words, **variables):
        env = {**FAKE_GPU, **variables}
        return self.ridge("train", "mlp:hidden=8,layers=1,inputs=12,classes=3", "--data",
                          "synthetic", "--batch", "4", "--steps", "4", *words, env=env)

    def test_a_training_on_a_gpu_keeps_its_plan_and_goes_on_on_the_cpu(self):
        done = self.train("--device", "cuda", "--out", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on cuda (Test GPU 0)", done.stdout)
        self.assertIn(f"cuda:0 Test GPU 0: kernels are compiled by NVRTC 13.0 ({FAKE_CUDA}/libnvrtc.so.13) "
                      "when they are met first\n", done.stderr)
        with open(self.path("run/summary.json")) as file:
            summary = json.load(file)
        self.assertEqual(summary["device"], "Test GPU 0")
        for figure in ("peak_bytes", "arena_bytes"):
            self.assertGreaterEqual(summary["planned"][figure], summary["measured"][figure])
            self.assertEqual(summary["measured"][figure] % (2 << 20), 0)
        same = self.train("--device", "cpu", "--out", "other")
        self.assertEqual(same.returncode, 0, same.stderr)
        with open(self.path("other/summary.json")) as file:
            self.assertAlmostEqual(json.load(file)["loss"], summary["loss"], places=5)

    def reports(self, run):
        with open(self.path(f"{run}/metrics.jsonl")) as file:
            return [json.loads(line) for line in file]

    def test_a_training_on_a_gpu_reports_its_counters(self):
        done = self.train("--device", "cuda", "--out", "run", "--progress", "plain",
                          RIDGE_FAKE_NVML="utilization=93,power_mw=412000,clock=1755,gpm=0,"
                                          "energy_mj=0/1000/2500")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("  GPU 93 %, 412 W, 60 C, 1755 MHz", done.stderr)
        told = self.reports("run")[-1]["gpu"]
        self.assertEqual((told["utilization"], told["power_w"], told["memory_bytes"]),
                         (0.93, 412, 1 << 30))
        with open(self.path("run/summary.json")) as file:
            self.assertEqual(json.load(file)["measured"]["energy_j"], 1.5)
        self.assertRegex(done.stdout, r"\n  energy +- +1\.5 J +-\n")
        events, = (name for name in os.listdir(self.path("run")) if "tfevents" in name)
        with open(self.path(f"run/{events}"), "rb") as file:
            content = file.read()
        for tag in ("utilization", "power_w", "temperature_c", "clock_mhz", "memory_bytes"):
            self.assertIn(f"gpu/{tag}".encode(), content)
        same = self.train("--device", "cuda", "--out", "same", RIDGE_FAKE_NVML="power_mw=99000")
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertIn("equal: ", self.ok("compare", "run", "same"))

    def test_every_counter_has_a_tag_of_tensorboard(self):
        done = self.train("--device", "cuda", "--out", "run",
                          RIDGE_FAKE_NVML="sm=81,tensor=42,dram=63,reasons=0,energy_mj=0/500/1000,"
                                          "corrected=0/3,uncorrected=0")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = self.reports("run")[-1]["gpu"]
        self.assertEqual({name: told[name] for name in ("sm_share", "tensor_share", "bandwidth_share")},
                         {"sm_share": 0.81, "tensor_share": 0.42, "bandwidth_share": 0.63})
        with open(os.path.join(SOURCE, "ridge/core/device_counters.h")) as file:
            fields = re.findall(r'\{"(\w+)", &DeviceCounters::\1\b', file.read())
        self.assertIn("energy_j", fields)
        self.assertEqual(sorted(told), sorted(fields))
        events, = (name for name in os.listdir(self.path("run")) if "tfevents" in name)
        with open(self.path(f"run/{events}"), "rb") as file:
            tags = set(re.findall(rb"gpu/([a-z_]+)", file.read()))
        self.assertEqual(tags, {field.encode() for field in fields})

    def test_errors_that_ecc_could_not_correct_are_an_alarm(self):
        done = self.train("--device", "cuda", "--out", "run",
                          RIDGE_FAKE_NVML="uncorrected=5/5/7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count(
            "ridge: warning: the GPU's memory had 2 errors that ECC could not correct: what it "
            "computed since may be wrong. hint: nvidia-smi -q -d ECC has the counts; reset the "
            "GPU, and train again\n"), 1, done.stderr)

    def test_counters_that_are_not_told_are_no_failure(self):
        for script, sentence in [
                ("init=9", "cuda:0: no counters of load, power and heat: nvmlInit_v2 failed: "
                           "Driver Not Loaded (9)"),
                ("utilization=-,power_mw=-", "cuda:0: NVML does not tell its load, power")]:
            shutil.rmtree(self.path("run"), ignore_errors=True)
            done = self.train("--device", "cuda", "--out", "run", RIDGE_FAKE_NVML=script)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(sentence + "\n", done.stderr)
            gpu = self.reports("run")[-1].get("gpu", {})
            self.assertNotIn("power_w", gpu)
            self.assertEqual("clock_mhz" in gpu, script != "init=9")

    def bench_memory(self, *words, script=""):
        env = {**FAKE_GPU, "RIDGE_FAKE_NVML": script}
        return self.ridge("bench", "memory", *words, env=env)

    def test_memory_of_a_gpu_is_written_and_verified(self):
        done = self.bench_memory("--device", "cuda", "--size", "2MiB", script="corrected=1/1/4")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "cuda:0, 2.00 MiB, 1 round")
        self.assertEqual([line.split()[0] for line in lines[3:7]],
                         ["address", "inverse", "random", "walking"])
        self.assertEqual([line.split()[-1] for line in lines[3:7]], ["0"] * 4)
        self.assertEqual(lines[-1], "ECC corrected 3 errors and could not correct 0")

    def test_memory_with_errors_is_a_failure_of_the_device(self):
        done = self.bench_memory("--device", "cuda", "--size", "2MiB", "--json",
                                 script="uncorrected=0/0/1")
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertEqual(json.loads(done.stdout)["uncorrected_errors"], 1)
        self.assertEqual(done.stderr, "ridge: cuda:0: ECC could not correct 1 error. hint: train "
                                      "on another device; nvidia-smi -q -d ECC has a GPU's counts\n")

    def test_memory_that_is_not_there_does_not_fit(self):
        env = {"RIDGE_CUDA_PATH": FAKE_CUDA}
        self.refused(3, "cuda:0: --size is 1.00 GiB, 256 MiB are free. hint: a smaller --size",
                     "bench", "memory", "--device", "cuda", "--size", "1GiB", env=env)
        self.fails(3, "cpu: --size is 1.00 PiB, ", "bench", "memory", "--size", "1048576GiB")
        self.refused(2, "--size is 0. hint: --size 1GiB", "bench", "memory", "--size", "0")

    def test_memory_of_the_host_is_written_and_verified(self):
        result = json.loads(self.ok("bench", "memory", "--size", "1MiB", "--rounds", "2", "--json"))
        self.assertEqual((result["device"], result["rounds"]), ("cpu", 2))
        self.assertEqual([of["wrong_words"] for of in result["patterns"]], [0] * 4)
        self.assertIsNone(result["uncorrected_errors"])

    def test_a_gpu_is_measured_and_later_plans_take_its_rates(self):
        env = {**FAKE_GPU, "XDG_CACHE_HOME": self.path("cache")}
        done = self.ridge("bench", "device", "--device", "cuda", "--quick", "--json", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        profile = json.loads(done.stdout)
        self.assertEqual((profile["id"], profile["name"]), ("cuda-test-gpu-0", "Test GPU 0"))
        # TF32 is there where it is faster, which on the host is chance.
        self.assertEqual({*profile["dtypes"]} - {"tf32"}, {"bf16", "f16", "f32", "f64"})
        plan = ["plan", "mlp:hidden=8,layers=1,inputs=12,classes=3", "--data", "synthetic",
                "--batch", "4", "--device", "cuda", "--json"]
        kept = json.loads(self.ridge(*plan, env=env).stdout)
        path = self.path("cache/ridge/profiles/cuda-test-gpu-0.json")
        slow = {"peak_flops_per_s": profile["dtypes"]["f32"]["peak_flops_per_s"] / 1e6}
        with open(path, "w") as file:
            json.dump({**profile, "dtypes": {**profile["dtypes"], "tf32": slow}}, file)
        rounded = json.loads(self.ridge(*plan, "--precision", "tf32", env=env).stdout)
        self.assertGreater(rounded["modelled_step_s"], 2 * kept["modelled_step_s"])
        exact = json.loads(self.ridge(*plan, env=env).stdout)
        self.assertLess(exact["modelled_step_s"], 2 * kept["modelled_step_s"])
        self.assertGreater(profile["host_link_bytes_per_s"], 0)
        with open(path, "w") as file:
            json.dump({**profile, "host_link_bytes_per_s": 1e3}, file)
        offload = json.loads(self.ridge("plan", "mlp:hidden=400", "--batch", "4", "--device", "cuda",
                                        "--offload", "optimizer", "--json", env=env).stdout)["offload"]
        self.assertAlmostEqual(offload["transfer_s"], offload["to_host_bytes"] / 1e3)
        os.remove(path)
        published = json.loads(self.ridge(*plan, env=env).stdout)
        self.assertGreater(kept["modelled_step_s"], 2 * published["modelled_step_s"])
        refused = self.ridge("bench", "device", "--device", "cuda", "--record", "gpu.json", env=env)
        self.assertEqual((refused.returncode, refused.stderr.splitlines()[-1]),
                         (2, "ridge: --record is of the CPU; the catalog plans for a GPU elsewhere. "
                             "hint: ridge devices"))

    def test_every_launch_trains_to_the_same_weights(self):
        gpt = "gpt:layers=1,hidden=16,heads=2,context=8,vocab=32"
        for i, words in enumerate((["mlp:hidden=8,layers=1,inputs=12,classes=3"],
                                   ["cnn:filters=4"], ["cnn:filters=4", "--precision", "bf16"],
                                   [gpt, "--precision", "bf16"])):
            for launch in ("graph", "single", "sync"):
                with self.subTest(words, launch=launch):
                    self.train_on_gpu(f"{launch}{i}", *words, "--batch", "4", "--kernel-launch", launch)
                    same = self.ridge("compare", f"graph{i}", f"{launch}{i}")
                    self.assertEqual(same.returncode, 0, same.stdout + same.stderr)

    def updates(self, *words):
        """Operators and numbers of a plan's nodes that update parameters."""
        done = self.ridge("plan", *words, "--data", "synthetic", "--device", "cuda", "--json",
                          env=FAKE_GPU)
        self.assertEqual(done.returncode, 0, done.stderr)
        ops = [node["op"] for node in json.loads(done.stdout)["nodes"]]
        return {op: ops.count(op) for op in sorted(set(ops)) if "update" in op}

    def test_small_updates_share_a_launch_and_no_bit_changes(self):
        gpt = ["gpt:layers=1,hidden=32,heads=2,vocab=64,context=8", "--batch", "4"]
        mlp = ["mlp:hidden=300,layers=2,inputs=12,classes=3", "--batch", "4"]
        sgd = ["--optimizer", "sgd"]
        for i, (words, updates) in enumerate((
                (gpt, {"adam_update_group": 1}),
                ([*mlp, "--optimizer", "adamw", "--slices", "2"],
                 {"adam_update": 1, "adam_update_group": 1}),
                ([*mlp, *sgd, "--precision", "f16"], {"sgd_update": 1, "sgd_update_group": 1}),
                ([*mlp, *sgd, "--momentum", "0.9", "--accumulate", "2"],
                 {"momentum_update_group": 1, "sgd_update": 1}))):
            self.assertEqual(self.updates(*words), updates)
            # State on the host is updated parameter by parameter.
            single = self.updates(*words, "--offload", "optimizer")
            self.assertFalse([op for op in single if op.endswith("_group")])
            for out, more in ((f"group{i}", []), (f"single{i}", ["--offload", "optimizer"])):
                done = self.ridge("train", *words, *more, "--data", "synthetic", "--steps", "4",
                                  "--device", "cuda", "--out", out, env=FAKE_GPU)
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(self.ok("compare", f"group{i}", f"single{i}"), "^equal: ")
        tree = self.updates(*mlp, "--sums", "tree", "--slices", "4")
        self.assertEqual(tree, {"adam_update": 6})

    def test_slices_whose_rows_end_at_any_byte_train(self):
        for inputs, precision in ((12, "f32"), (7, "bf16")):
            done = self.ridge("train", f"mlp:hidden=8,layers=1,inputs={inputs},classes=3", "--data",
                              "synthetic", "--batch", "16", "--steps", "2", "--slices", "4", "--device",
                              "cuda", "--precision", precision, "--out", precision, "-q",
                              env=FAKE_GPU)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_first_value_of_a_recorded_step_that_is_not_finite_is_named_as_on_the_cpu(self):
        """One sample is too large for exp; its batch is none of the first."""
        self.write("net.ridge", """graph net
  x = input f32[batch,4]
  t = input f32[batch]
  w = parameter f32[1,4] init=constant(1)
  y = matmul(x, w, transpose_b=1)
  p = reshape(y, dims=[-1])
  e = exp(p)
  gap = sub(e, t)
  each = square(gap)
  loss = reduce_mean(each)
  output e
  output loss
""")
        x = [30.0 if i // 4 == 71 else 0.1 for i in range(80 * 4)]
        write_npz(self.path("data.npz"), {"x": ((80, 4), x), "t": ((80,), [1.0] * 80)})
        said = {}
        for device, launch in (("cpu", []), ("cuda", ["--kernel-launch", "graph"]),
                               ("cuda", ["--kernel-launch", "single"])):
            done = self.ridge("train", "net.ridge", "--data", "npz:data.npz", "--batch", "4", "--lr",
                              "0.0001", "--device", device, *launch, "--passes=-fuse", "-q", env=FAKE_GPU)
            self.assertEqual(done.returncode, 1, done.stderr)
            said[device, *launch] = done.stderr.splitlines()[-1]
        self.assertEqual(len(set(said.values())), 1, said)
        sentence = said["cpu",]
        self.assertIn("; first non-finite value: node 'e' (exp). hint: ", sentence)
        self.assertGreater(int(re.match("ridge: step ([0-9]+): ", sentence)[1]), 4)

    def sync_error(self, model, *words, **variables):
        """The last line of a training whose kernels are waited for, one by one."""
        done = self.ridge("train", model, *words, "--data", "synthetic", "--steps", "2", "--device", "cuda",
                          "--kernel-launch", "sync", "--out", "run", env={**FAKE_GPU, **variables})
        self.assertEqual(done.returncode, 6, done.stderr)
        return done.stderr.splitlines()[-1]

    def test_a_kernel_that_is_waited_for_names_its_node_when_it_fails(self):
        mlp = ["mlp:hidden=8,layers=1,inputs=12,classes=3", "--batch", "4"]
        node = r"^ridge: [a-z_]+ '[^']+': "
        launched = self.sync_error(*mlp, RIDGE_FAKE_CUDA_FAIL="cuLaunchKernel:30:700")
        self.assertRegex(launched, node + ".* failed: ")
        product = self.sync_error(*mlp, RIDGE_FAKE_CUBLASLT_FAIL="cublasLtMatmul:2:13")
        hint = r"\. hint: compute-sanitizer names the kernel and the address$"
        self.assertRegex(product, "^ridge: matmul '[^']+': cuda:0: cublasLtMatmul failed: "
                                  r"CUBLAS_STATUS_EXECUTION_FAILED \(13\)" + hint)
        convolution = self.sync_error("cnn:filters=4", "--batch", "2", "--precision", "bf16",
                                      RIDGE_FAKE_CUDNN_FAIL="1")
        self.assertRegex(convolution, "^ridge: conv[a-z_]* '[^']+': cuda:0: cuDNN fake[0-9]+: asked to "
                                      "fail" + hint)

    def test_each_node_of_a_step_is_named_by_its_wait_when_that_fails(self):
        """Waits for uploads, the loss and the step's end are of no node."""
        mlp = ["mlp:hidden=8,layers=1,inputs=12,classes=3", "--batch", "4"]
        done = self.ridge("plan", *mlp, "--data", "synthetic", "--device", "cuda", "--kernel-launch", "sync",
                          "--json", env=FAKE_GPU)
        nodes = [f"{node['op']} '{node['name']}'" for node in json.loads(done.stdout)["nodes"]]
        named = []
        for call in range(1, 61):
            wait = self.sync_error(*mlp, RIDGE_FAKE_CUDA_FAIL=f"cuStreamSynchronize:{call}:719")
            shutil.rmtree(self.path("run"), ignore_errors=True)
            said = re.fullmatch(r"ridge: (?:([a-z_]+ '[^']+'): )?cuda:0: cuStreamSynchronize failed: "
                                r"CUDA_ERROR_LAUNCH_FAILED \(719\)", wait)
            self.assertIsNotNone(said, f"{call}: {wait}")
            named += [said[1]] if said[1] else []
            if len(named) == len(nodes):
                break
        self.assertEqual(named, nodes)

    def limit(self, *words, **variables):
        """The bytes that a plan may take."""
        done = self.ridge("plan", "mlp:hidden=8", "--device", "cuda", *words, "--json",
                          env={**FAKE_GPU, **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["limit_bytes"] >> 20

    def test_a_plan_may_take_a_part_of_what_is_free_beside_what_is_held(self):
        others = {"RIDGE_FAKE_CUDA_OTHERS_BYTES": str(64 << 20)}
        context = {"RIDGE_FAKE_CUDA_CONTEXT_BYTES": str(8 << 20)}
        half = ["--device-memory", "0.5"]
        self.assertEqual(self.limit(*half), 256 // 2)
        self.assertEqual(self.limit(*half, **others), 64 + 192 // 2)
        self.assertEqual(self.limit(*half, **others, **context), 72 + 184 // 2)
        self.assertEqual(self.limit("--device-memory", "1", **others), 256)
        self.assertEqual(self.limit("--device-memory", "100MiB", **others), 64 + 100)
        self.assertEqual(self.limit("--device-memory", "1GiB", **others), 256)
        self.assertEqual(self.limit("--fit", "100MiB", **others), 64 + 100)

    def test_without_nvml_a_context_is_taken_to_have_what_is_published(self):
        use = {"RIDGE_FAKE_CUDA_BYTES": str(2 << 30), "RIDGE_FAKE_CUDA_OTHERS_BYTES": str(400 << 20),
               "RIDGE_FAKE_CUDA_CONTEXT_BYTES": str(600 << 20)}
        size = ["--device-memory", "900MiB"]
        self.assertEqual(self.limit(*size, **use), 400 + 900)
        self.assertEqual(self.limit(*size, **use, RIDGE_FAKE_NVML="init=9"), 400 + 900)

    def test_a_part_that_is_none_is_refused(self):
        for value in ("0", "-1", "0.5x", "1.5"):
            with self.subTest(value):
                done = self.train("--device", "cuda", "--device-memory", value)
                self.assertEqual((done.returncode, done.stderr),
                                 (2, f"ridge: --device-memory is '{value}'; it must be a size such as 20GiB, "
                                     "or a part of what is free such as 0.9\n"))

    def test_a_mig_instance_trains_as_the_whole_gpu_does(self):
        self.train("--device", "cuda", "--out", "whole")
        done = self.train("--device", "cuda", "--out", "slice", CUDA_VISIBLE_DEVICES="MIG-a")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on cuda (Test GPU 0 MIG 1g)", done.stdout)
        self.assertRegex(done.stdout, r"\n  fits: .* of 115 MiB available\n")  # nine tenths of a half
        self.assertIn("\ncuda:0: bytes proven: ", done.stdout)
        self.assertEqual(self.read_json("slice/summary.json")["parameters_sha256"],
                         self.read_json("whole/summary.json")["parameters_sha256"])

    def test_a_profile_has_a_table_of_the_gpus_kernels(self):
        done = self.ridge("profile", "mlp:hidden=8", "--device", "cuda", "--steps", "2", env=FAKE_GPU)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Profile  mlp:hidden=8, batch 32, adam, f32, on Test GPU 0\n", done.stdout)
        for row in ("matmul +8 ", "adam_update_group +1 ", "softmax_cross_entropy +1 ", "step +19 "):
            self.assertRegex(done.stdout, rf"\n +{row}")
        self.assertRegex(done.stdout, r"\n +0\.weight\.grad +matmul ")
        self.assertIn(", cublaslt.matmul/algo1_tile18\n", done.stdout)

    def test_what_equal_bits_cost_with_cudnn_is_told_elsewhere(self):
        for model, text in (
                (["mlp:hidden=8"], "costs nothing here: every kernel gives equal bits"),
                (["cnn:filters=4", "--batch", "2", "--precision", "bf16"],
                 "cuDNN gives deterministic kernels alone here; what they cost is known of devices "
                 "that are not here. hint: --on h200-sxm")):
            self.assertEqual(self.ridge("plan", *model, "--device", "cuda", "--why", "determinism", "-q",
                                        env=FAKE_GPU).stdout, f"Determinism  {text}\n")

    def test_what_equal_bits_cost_on_a_gpu_of_the_catalog_is_on_record(self):
        words = ["plan", "cnn", "--batch", "2", "--precision", "bf16", "--why", "determinism", "-q"]
        done = self.ridge(*words, "--device", "cuda", env={
            **FAKE_GPU, "RIDGE_FAKE_CUDA_NAME": "NVIDIA H200", "RIDGE_FAKE_CUDA_BYTES": "150108897280"})
        self.assertIn("what equal bits in every run cost on h200-sxm\n", done.stdout, done.stderr)
        self.assertEqual(done.stdout, self.ok(*words, "--on", "h200-sxm"))

    def test_a_trace_has_the_copies_of_batches_beside_the_nodes(self):
        done = self.train("--device", "cuda", "--batch", "8", "--trace", "--out", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("run/trace.json")) as file:
            events = json.load(file)["traceEvents"]
        names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(names, {"training loop", "nodes", "copies"})
        copies = [event for event in events if event.get("cat") == "upload"]
        self.assertGreater(len(copies), 1)
        self.assertEqual({copy["args"]["bytes"] for copy in copies}, {8 * (12 * 4 + 8)})
        for copy in copies:
            self.assertGreaterEqual(copy["dur"], 0)

    def test_a_traced_update_behind_micro_batches_has_no_copy(self):
        """The next batch may cross into its slot meanwhile."""
        done = self.ridge("train", "mlp:hidden=1,layers=1", "--data", "synthetic", "--batch", "1360",
                          "--accumulate", "3", "--steps", "30", "--trace", "--device", "cuda", "--out",
                          "run", env={**FAKE_GPU, "RIDGE_FAKE_CUDA_DELAY_US": "50"})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("run/trace.json")) as file:
            events = json.load(file)["traceEvents"]
        copies = [event for event in events if event.get("cat") == "upload"]
        self.assertEqual(len(copies), 90)  # of the micro batches

    def test_attention_behind_rotary_embeddings_reads_16_bits(self):
        done = self.ridge("plan", "llama:vocab=64,context=64,hidden=64,layers=1,heads=2,kv_heads=2,"
                          "inner=64", "--batch", "4", "--device", "cuda", "--precision", "bf16",
                          "--json", env=FAKE_GPU)
        self.assertEqual(done.returncode, 0, done.stderr)
        kernels = {node["kernel"].split("/")[0] for node in json.loads(done.stdout)["nodes"]
                   if "attention" in node["op"]}
        self.assertEqual(kernels, {"cudnn.attention", "cudnn.attention_grad"})

    def test_slices_of_a_batch_begin_where_no_library_wants_them(self):
        self.write("net.ridge", "graph net\n"
                   "  x = input f32[batch=4,1,27,27]\n  label = input i64[batch=4]\n"
                   "  w = parameter f32[8,1,3,3] init=normal(0.1)\n  v = parameter f32[5000,3] "
                   "init=normal(0.1)\n  y = conv(x, w)\n  flat = reshape(y, dims=[-1,5000])\n"
                   "  logits = matmul(flat, v)\n  losses = softmax_cross_entropy(logits, label)\n"
                   "  loss = reduce_mean(losses)\n  output loss\n  output logits\n")
        words = ["train", "net.ridge", "--data", "synthetic", "--steps", "2", "--slices", "4",
                 "--precision", "bf16", "--device", "cuda", "--out", "run", "-q"]
        done = self.ridge(*words, env=FAKE_GPU)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_others_hold_of_a_gpu_does_not_change_what_a_plan_takes(self):
        """The search has what is left, and --device-memory is of this process."""
        layers = "".join(f"  m{i} = mul({f'g{i - 1}' if i else 'x'}, s)\n  g{i} = gelu(m{i})\n"
                         for i in range(16))
        self.write("net.ridge", "graph net\n  x = input f32[batch=64,4096]\n"
                   "  label = input i64[batch=64]\n  w = parameter f32[4096,3] init=normal(0.1)\n"
                   f"  s = parameter f32[4096] init=constant(1)\n{layers}  logits = matmul(g15, w)\n"
                   "  losses = softmax_cross_entropy(logits, label)\n  loss = reduce_mean(losses)\n"
                   "  output loss\n  output logits\n")
        mib = 1 << 20
        for most, size, others in ([], 2048, 0), ([], 32, 0), ([], 2080, 2048), (["32MiB"], 256, 100):
            done = self.ridge("plan", "net.ridge", "--batch", "64", "--device", "cuda", "--json", "-q",
                              *(["--device-memory", *most] if most else []),
                              env={**FAKE_GPU, "RIDGE_FAKE_CUDA_BYTES": str(size * mib),
                                   "RIDGE_FAKE_CUDA_OTHERS_BYTES": str(others * mib)})
            self.assertEqual(done.returncode, 0, done.stderr)
            plan = json.loads(done.stdout)
            taken, = [one for one in plan["candidates"] if one["chosen"]]
            self.assertEqual((plan["fits"], taken["fits"], taken["recompute"], plan["arena_bytes"]),
                             (True, True, *(("off", 36 * mib) if size == 2048 else ("full", 18 * mib))))

    def test_options_of_another_device_are_refused(self):
        for words, sentence in (
                (["--on", "h100-sxm", "--device-memory", "1GiB"],
                 "--device-memory is of a GPU that is here, and --on plans for 'h100-sxm'. hint: --fit SIZE"),
                (["--on", "h100-sxm", "--kernel-launch", "sync"],
                 "--kernel-launch is of a GPU that is here, and --on plans for 'h100-sxm'. hint: leave it "
                 "out"),
                (["--device", "cuda", "--backend", "reference"],
                 "--backend reference is of the CPU, and --device is 'cuda'. hint: --device cpu")):
            done = self.ridge("plan", "mlp", *words, env=FAKE_GPU)
            self.assertEqual((done.returncode, done.stderr), (2, f"ridge: {sentence}\n"))

    def test_options_of_the_cpu_are_refused_beside_a_gpu_that_runs_all(self):
        mlp = "mlp:hidden=8,layers=1,inputs=12,classes=3"
        for option, value in ("conv", "direct"), ("intra-op", "1"), ("inter-op", "auto"):
            sentence = f"--{option} is of the CPU, and --device is 'cuda'. hint: leave it out"
            job = [mlp, "--batch", "4", "--device", "cuda", f"--{option}", value]
            for verb in (["train", "--data", "synthetic", "--steps", "1", "--out", "run"], ["plan"], ["profile"],
                         ["bench", "step", "--steps", "1"]):
                done = self.ridge(*verb, *job, env=FAKE_GPU)
                self.assertEqual((done.returncode, done.stderr), (2, f"ridge: {sentence}\n"), verb)
            placed = self.ridge("plan", *job, "--place", "*=cpu", env=FAKE_GPU)
            if option == "inter-op":  # the host's kernels run one after the other
                self.assertEqual((placed.returncode, placed.stderr), (2, f"ridge: {sentence}\n"))
            else:
                self.assertEqual(placed.returncode, 0, placed.stderr)

    def test_runs_keep_their_options_on_another_device(self):
        self.assertEqual(self.train("--out", "cpu", "--conv", "direct").returncode, 0)
        self.assertEqual(self.train("--out", "gpu", "--device", "cuda").returncode, 0)
        for run in "cpu", "gpu":
            words = ["eval", run, "--data", "synthetic", "--device", "cuda"]
            self.ok(*words, env=FAKE_GPU)
            done = self.ridge(*words, "--conv", "auto", env=FAKE_GPU)
            self.assertEqual((done.returncode, done.stderr),
                             (2, "ridge: --conv is of the CPU, and --device is 'cuda'. hint: leave it out\n"))
        self.ok("train", "--resume", "gpu", "--steps", "5", env=FAKE_GPU)

    def test_inputs_that_no_step_reads_are_not_filled(self):
        self.write("net.ridge", "graph net\n"
                   "  x = input f32[batch=4,8]\n  label = input i64[batch=4]\n"
                   "  unread = input f32[batch=4]\n  other = input f32[batch=4]\n"
                   "  w = parameter f32[8,3] init=normal(0.1)\n  logits = matmul(x, w)\n"
                   "  losses = softmax_cross_entropy(logits, label)\n"
                   "  loss = reduce_mean(losses)\n"
                   "  twice = add(other, other)\n"
                   "  output loss\n  output logits\n  output twice\n")
        for precision in "f32", "bf16":
            out = f"gpu_{precision}"
            self.train_on_gpu(out, "net.ridge", "--batch", "4", "--precision", precision)
            words = ["eval", out, "--data", "synthetic"]
            on_gpu = self.ok(*words, "--device", "cuda", env=FAKE_GPU)
            on_cpu = self.ok(*words, "--device", "cpu")
            self.assertEqual(on_gpu.splitlines()[0], on_cpu.splitlines()[0])

    def test_batches_cross_on_either_stream_to_the_same_weights(self):
        for stream in ("on", "off"):
            done = self.train("--device", "cuda", "--copy-stream", stream, "--out", stream)
            self.assertEqual(done.returncode, 0, done.stderr)
        same = self.ridge("compare", "on", "off")
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)

    def test_without_data_the_batch_crosses_once(self):
        """Its 8 MiB in front of each step are a wait for input."""
        wait_s = {}
        for stream in ("on", "off"):
            done = self.ridge("profile", "mlp:hidden=1,layers=1,inputs=4096,classes=2", "--batch", "512",
                              "--steps", "20", "--device", "cuda", "--copy-stream", stream, "--json",
                              env=FAKE_GPU)
            self.assertEqual(done.returncode, 0, done.stderr)
            wait_s[stream] = json.loads(done.stdout)["input_wait_s"]
        self.assertGreater(wait_s["on"], 0)  # scalars
        self.assertLess(wait_s["on"], wait_s["off"] / 2)

    def test_a_gpu_that_is_not_there_is_named(self):
        for words, sentence in [
                (("--device", "cuda:1"), "there is no cuda:1: the driver shows 1 GPU. hint: cuda:0"),
                (("--device", "cuda:x"), "--device is 'cuda:x'; it must be cpu or cuda[:N]"),
                (("--device-memory", "1GiB"), "--device-memory is of a GPU, and --device is 'cpu'. "
                                              "hint: --fit SIZE")]:
            self.assertEqual(self.train(*words).stderr.splitlines()[-1], f"ridge: {sentence}")


if __name__ == "__main__":
    unittest.main()
