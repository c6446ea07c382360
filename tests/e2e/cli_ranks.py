"""Ranks: alone, under the mpirun of Open MPI and of MPICH, and what is refused.

Both MPIs are Debian's (scripts/setup.sh --test-tools); their plug-ins are built with the program.
"""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from _ranks import MPIRUN, NAME, children, plugin
from _ridge import RIDGE, SMALL, RidgeTest, environment

TRAIN = ["train", *SMALL, "--steps", "2", "--slices", "8", "-q"]


class Ranks(RidgeTest):
    def lines(self, done):
        """What ridge says; the launchers have their own to say about exit codes."""
        return [line for line in done.stderr.splitlines() if line.startswith("ridge: ")]

    def mpirun(self, mpi, count, *words, env=None):
        return subprocess.run([*MPIRUN[mpi], "-n", str(count), RIDGE, *words], cwd=self.folder,
                              env=environment(env), text=True, capture_output=True, timeout=120,
                              check=False)

    def trains(self, done, ranks):
        """The ranks trained one model and said nothing."""
        self.assertEqual((done.returncode, self.lines(done)), (0, []), done.stderr)
        self.assertEqual(self.read_json("run/plan.json")["share"]["ranks"], ranks)
        summary = self.read_json("run/summary.json")
        self.assertLessEqual(summary["measured"]["peak_bytes"], summary["planned"]["peak_bytes"])
        shutil.rmtree(self.path("run"))
        return summary["parameters_sha256"]

    def alone(self):
        """The parameters of one process whose sums are the ranks'."""
        return self.trains(self.ridge(*TRAIN, "--sums", "tree", "--out", "run"), 1)

    def test_alone_needs_no_mpi(self):
        nowhere = {"RIDGE_MPI": "/no/such.so"}
        self.ok(*TRAIN, env=nowhere)
        self.ok(*TRAIN, "--devices", "1", env=nowhere)
        self.ok(*TRAIN, env={"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1"})

    def test_ranks_of_both_mpis_train_to_the_bits_of_one_process(self):
        alone = self.alone()
        for mpi in MPIRUN:
            for ranks in (2, 3):
                with self.subTest(mpi=mpi, ranks=ranks):
                    self.assertEqual(self.trains(self.mpirun(mpi, ranks, *TRAIN, "--out", "run"), ranks), alone)
            self.trains(self.mpirun(mpi, 2, *TRAIN, "--devices", "2", "--out", "run"), 2)

    def test_ranks_of_both_mpis_train_on_a_mesh(self):
        train = ["train", "gpt:layers=1,hidden=16,heads=2,context=8,vocab=32", "--data", "synthetic", "--batch", "8", "--steps", "3",
                 "--threads", "1", "-q", "--mesh", "d=2,t=2", "--shard", "zero3,sequence", "--out", "run"]
        hashes = set()
        for mpi in MPIRUN:
            with self.subTest(mpi=mpi):
                done = self.mpirun(mpi, 4, *train)
                self.assertEqual((done.returncode, self.lines(done)), (0, []), done.stderr)
                self.assertEqual(self.read_json("run/plan.json")["mesh"]["axes"], "d=2,t=2")
                summary = self.read_json("run/summary.json")
                for rank in summary["ranks"]:
                    self.assertLessEqual(rank["measured"]["peak_bytes"], rank["planned"]["peak_bytes"])
                    self.assertEqual(rank["measured"]["arena_bytes"], rank["planned"]["arena_bytes"])
                self.ok("eval", "run", "--data", "synthetic")  # in one process
                shutil.rmtree(self.path("run"))
                hashes.add(summary["parameters_sha256"])
        self.ok(*train)  # starts the ranks itself
        hashes.add(self.read_json("run/summary.json")["parameters_sha256"])
        self.assertEqual(len(hashes), 1)

    def test_what_a_mesh_does_not_go_with_is_refused(self):
        for text, words in (("--devices is 3; --mesh d=2 is of 2. hint: leave --devices out", ("--mesh", "d=2", "--devices", "3")),
                            ("--shard needs the axes of --mesh. hint: --mesh d=2,t=2", ("--shard", "zero1")),
                            ("--sums tree adds slices; on a --mesh sums are in the order of its axes. hint: leave --sums out",
                             ("--mesh", "d=2", "--sums", "tree")),
                            ("--overlap on: the collectives of a --mesh run in line. hint: leave --overlap out",
                             ("--mesh", "d=2", "--overlap", "on"))):
            self.fails(2, text, "train", *SMALL, *words)

    def test_unequal_shares_train_to_the_bits_of_one_process(self):
        alone = self.alone()
        for mpi, ranks, shares in (("openmpi", 2, "3,1"), ("mpich", 2, "1,3"), ("openmpi", 3, "1,2,1"), ("openmpi", 2, "auto")):
            for overlap in ("off", "on"):
                with self.subTest(mpi=mpi, shares=shares, overlap=overlap):
                    done = self.mpirun(mpi, ranks, *TRAIN, "--shares", shares, "--overlap", overlap, "--out", "run")
                    self.assertEqual(self.trains(done, ranks), alone)

    def test_shares_are_told_by_plan_status_and_summary(self):
        done = self.ridge("train", *SMALL, "--slices", "4", "--steps", "3", "--devices", "2", "--shares", "3,1", "--out", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("  ranks: rank 0 of 2 computes 3 of 4 slices\n", done.stdout)
        self.assertEqual(self.read_json("run/status.json")["slices"], [3, 1])
        self.assertEqual([rank["slices"] for rank in self.read_json("run/summary.json")["ranks"]], [3, 1])
        self.refused(2, "--shares is '3,1', for 2 devices; there is 1. hint: a number for each, or --shares equal",
                     *TRAIN, "--shares", "3,1")

    def test_more_ranks_than_cores_train_to_the_same_bits(self):
        alone = self.alone()
        for ranks in (4, 6):
            self.assertEqual(self.trains(self.mpirun("openmpi", ranks, *TRAIN, "--out", "run"), ranks), alone)

    def test_weights_lie_alike_on_ranks_with_more_and_fewer_slices(self):
        narrow = {"ONEDNN_MAX_CPU_ISA": "AVX2"}  # its kernels want other layouts of small weights
        train = [*TRAIN, "--out", "run"]
        alone = self.trains(self.ridge(*train, "--sums", "tree", env=narrow), 1)
        self.assertEqual(self.trains(self.mpirun("openmpi", 3, *train, env=narrow), 3), alone)

    def test_batch_norms_have_the_bits_of_one_process(self):
        train = ["train", "resnet18:image=32,classes=4", "--data", "synthetic", "--batch", "8", "--slices", "4",
                 "--steps", "2", "--threads", "1", "-q"]

        def parameters(out):
            return self.read_json(f"{out}/summary.json")["parameters_sha256"]

        self.ok(*train, "--sums", "tree", "--out", "alone")
        for mpi in MPIRUN:
            for ranks, out, words in ((2, mpi, ()), (3, f"{mpi}-beside", ("--overlap", "on"))):
                with self.subTest(mpi=mpi, ranks=ranks):
                    done = self.mpirun(mpi, ranks, *train, *words, "--out", out)
                    self.assertEqual((done.returncode, self.lines(done)), (0, []), done.stderr)
                    self.assertEqual(parameters(out), parameters("alone"))
        gathers = [c for c in self.read_json("mpich/plan.json")["collectives"] if c["op"] == "all_gather"]
        self.assertEqual([(c["step"], c["count"]) for c in gathers], [("train", 40)])  # 20 norms, forward and backward

    def test_another_number_of_ranks_goes_on_to_the_same_bits(self):
        train = ["train", *SMALL, "--slices", "4", "-q"]
        self.ok(*train, "--steps", "6", "--sums", "tree", "--out", "whole")
        self.ok(*train, "--steps", "3", "--devices", "2", "--out", "run")
        self.ok("train", "--resume", "run", "--steps", "6", "--devices", "4", "-q")
        self.assertEqual(self.read_json("run/summary.json")["parameters_sha256"],
                         self.read_json("whole/summary.json")["parameters_sha256"])

    def test_gradients_that_go_as_bf16_have_the_bits_of_one_process(self):
        train = ["train", *SMALL, "--slices", "4", "-q", "--steps", "6", "--wire", "bf16"]
        self.ok(*train, "--sums", "tree", "--out", "whole")
        whole = self.read_json("whole/summary.json")["parameters_sha256"]
        for mpi, ranks in (("openmpi", 3), ("mpich", 2)):
            with self.subTest(mpi=mpi):
                self.assertEqual(self.trains(self.mpirun(mpi, ranks, *train, "--out", "run"), ranks), whole)
        self.fails(2, '--wire is "f32"; the run was started with "bf16"', "train", "--resume", "whole", "--steps", "9", "--wire", "f32")
        self.fails(2, "--wire bf16 rounds the sums of a tree; --sums is running. hint: --sums tree, or --devices 2",
                   "train", *SMALL, "--wire", "bf16")

    def test_a_launcher_of_one_rank_changes_nothing(self):
        for mpi in MPIRUN:
            done = self.mpirun(mpi, 1, *TRAIN, env={"RIDGE_MPI": "/no/such.so"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_devices_start_their_own_ranks(self):
        for devices, ranks in (("2", 2), ("0,1", 2), ("3", 3)):
            with self.subTest(devices=devices):
                self.trains(self.ridge(*TRAIN, "--devices", devices, "--out", "run"), ranks)
        self.trains(self.ridge(*TRAIN, "--out", "run", env={"RIDGE_DEVICES": "2"}), 2)

    def test_devices_take_mpich_where_open_mpi_is_not(self):
        os.mkdir(self.path("bin"))
        for name in ("mpirun.mpich", "hydra_pmi_proxy"):
            if found := shutil.which(name):
                os.symlink(os.path.realpath(found), self.path(f"bin/{name}"))
        only = {"PATH": self.path("bin") + ":/nowhere"}
        self.trains(self.ridge(*TRAIN, "--devices", "2", "--out", "run", env=only), 2)

    def test_no_mpi_is_one_sentence(self):
        self.refused(6, "--devices is 2, and there is no mpirun to start them. hint: apt-get install "
                     "openmpi-bin", *TRAIN, "--devices", "2", env={"PATH": "/nowhere"})
        self.refused(6, "--devices is 2, and there is no mpirun to start them. hint: apt-get install "
                     "openmpi-bin libopenmpi-dev, then `make build`", *TRAIN, "--devices", "2",
                     env={"PATH": "/nowhere", "RIDGE_MPI": "/no/such.so"})
        mpirun = shutil.which("mpirun.openmpi")
        self.refused(6, f"--devices is 2: {mpirun} is here, its plug-in libridge_mpi_openmpi.so is "
                     "not. hint: apt-get install openmpi-bin libopenmpi-dev, then `make build`",
                     *TRAIN, "--devices", "2", env={"RIDGE_MPI": "/no/such.so"})

    def test_a_wrong_number_is_refused_before_anything_starts(self):
        for text in ("0", "-1", "two", "0,0", "1,", "1.5", "65537"):
            self.refused(2, f"--devices is '{text}'; it must be a number from 1 to 65536, or a list of "
                         "different devices such as 0,1", *TRAIN, f"--devices={text}")
        self.assertFalse(os.path.exists(self.path("runs")))

    def test_the_launchers_number_is_the_one_that_counts(self):
        for mpi in MPIRUN:
            done = self.mpirun(mpi, 2, *TRAIN, "--devices", "3")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"ridge: --devices is 3; mpirun of {NAME[mpi]} started 2 ranks. hint: leave "
                          "--devices out, or give both the same number", self.lines(done))

    def test_worlds_of_one_are_refused(self):
        for mpi, other in (("openmpi", "mpich"), ("mpich", "openmpi")):
            done = self.mpirun(mpi, 2, *TRAIN, env={"RIDGE_MPI": plugin(other)})
            said = self.lines(done)
            self.assertGreaterEqual(len(said), 1, done.stderr)
            for line in said:
                self.assertRegex(line, rf"^ridge: mpirun of {NAME[mpi]} started 2 ranks; {NAME[other]} "
                                 r"\d[.\d]+ joined a world of 1: each would be a training of its own\. "
                                 rf"hint: unset RIDGE_MPI, which names the plug-in of another MPI than {NAME[mpi]}$")
            self.assertNotEqual(done.returncode, 0)
            self.assertFalse(os.path.exists(self.path("runs")))

    def test_tasks_of_slurm_without_an_mpi_are_refused(self):
        self.refused(2, "srun started 4 tasks that cannot find each other: each would be a training of "
                     "its own. hint: srun --mpi=pmix with Open MPI, srun --mpi=pmi2 with MPICH",
                     *TRAIN, env={"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4"})

    def test_a_plug_in_that_is_not_there_says_what_brings_it(self):
        done = self.mpirun("openmpi", 2, *TRAIN, env={"RIDGE_MPI": "/no/such.so"})
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertEqual(self.lines(done)[0], "ridge: Open MPI is reached by a plug-in, "
                         "libridge_mpi_openmpi.so, which is not there. hint: apt-get install "
                         "openmpi-bin libopenmpi-dev, then `make build`")

    def test_ranks_that_were_not_started_alike_are_refused(self):
        for mpi in MPIRUN:
            command = [*MPIRUN[mpi], "-n", "1", RIDGE, *TRAIN, ":", "-n", "1", RIDGE, *TRAIN, "--lr", "0.5"]
            done = subprocess.run(command, cwd=self.folder, env=environment(), text=True,
                                  capture_output=True, timeout=120, check=False)
            self.assertEqual(self.lines(done), ["ridge: rank 1 has other options than rank 0. hint: "
                                                "one program, one command line and the same RIDGE_* variables everywhere"])
            self.assertEqual(done.returncode, 2)

    def test_a_sweep_starts_its_own_runs(self):
        done = self.mpirun("openmpi", 2, *TRAIN, "--sweep", "lr=1e-3,1e-4")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("ridge: --sweep starts its runs itself; mpirun of Open MPI started 2 ranks. hint: "
                      "--sweep without it, and --devices", self.lines(done))

    def test_bytes_between_ranks_are_measured(self):
        rates = {}
        for mpi in MPIRUN:
            done = self.mpirun(mpi, 2, "bench", "collective", "--most", "16KiB", "--json")
            found = json.loads(done.stdout)
            self.assertEqual((done.returncode, found["ranks"]), (0, 2), done.stderr)
            self.assertTrue(found["mpi"].startswith(NAME[mpi] + " "))
            rates[mpi] = [(rate["collective"], rate["ranks"], rate["bytes"]) for rate in found["rates"]]
            self.assertTrue(all(rate["bytes_per_s"] > 0 and rate["s"] > 0 for rate in found["rates"]))
        self.assertEqual(rates["openmpi"], [(name, 2, size) for name in ("all_to_all", "all_gather")
                                            for size in (1024, 4096, 16384)] +
                         [(name, 2, size) for name in ("tree_sum", "tree_sum_bf16") for size in (4096, 16384)])
        self.assertEqual(rates["mpich"], rates["openmpi"])
        table = self.ok("bench", "collective", "--devices", "2", "--most", "1KiB")
        self.assertRegex(table, r"\A2 ranks, Open MPI \d[.\d]+\n\n  collective +ranks +bytes +time +each sends\n"
                         r"  all_to_all +2  1\.00 KiB .*B/s\n  all_gather +2  1\.00 KiB .*B/s\n"
                         r"  tree_sum +2  4\.00 KiB .*B/s\n  tree_sum_bf16 +2  4\.00 KiB .*B/s\n\Z")
        self.refused(2, "one rank has nobody to exchange with. hint: --devices 2", "bench", "collective")

    def test_a_rank_that_fails_alone_ends_all(self):
        for mpi in MPIRUN:
            bench = [RIDGE, "bench", "collective", "--most"]
            command = [*MPIRUN[mpi], "-n", "1", *bench, "1KiB", ":", "-n", "1", *bench, "4KiB"]
            done = subprocess.run(command, cwd=self.folder, env=environment(), text=True,
                                  capture_output=True, timeout=120, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertRegex(done.stderr, r"(?m)^ridge: rank [01]: ")

    LONG = ["train", *SMALL, "--steps", "1000000", "--slices", "4", "-q", "--out", "run"]

    def starts(self, mpi, ranks, *words, env=None):
        """A job under way, and the numbers of its ranks' processes."""
        job = subprocess.Popen([*MPIRUN[mpi], "-n", str(ranks), RIDGE, *words], cwd=self.folder,
                               env=environment(env), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(job.kill)
        for _ in range(600):
            time.sleep(0.1)
            if os.path.exists(self.path("run/checkpoints")) and len(found := children(job.pid)) == ranks:
                return job, found
        self.fail("the ranks did not start")

    def names_the_late_rank(self, job, since, pattern):
        # A rank that gets no core has longer: it may be the machine that is slow.
        limit = 10 if os.getloadavg()[0] < 1.5 * os.cpu_count() else 40
        _, said = job.communicate(timeout=60)
        took = time.monotonic() - since
        self.assertEqual(job.returncode, 74, said)
        named = [line for line in said.splitlines() if line.startswith("ridge: rank ")]
        self.assertEqual(len(named), 1, said)
        self.assertRegex(named[0], pattern)
        self.assertLess(took, limit)
        self.assertEqual([name for name in os.listdir("/dev/shm") if name.startswith("ridge-ranks-")], [])

    def test_a_stopped_rank_is_named_and_all_end(self):
        for mpi in MPIRUN:
            for late in (0, 1):
                with self.subTest(mpi=mpi, late=late):
                    job, processes = self.starts(mpi, 2, *self.LONG)
                    time.sleep(2)
                    os.kill(processes[late], signal.SIGSTOP)
                    self.names_the_late_rank(
                        job, time.monotonic(),
                        r"^ridge: rank [01]: waited \d+\.\d s in .+ \(step \d+, collective \d+\); rank [01] is late: at "
                        rf"collective \d+, its process {processes[late]} does not run \(no heartbeat for \d+\.\d s\)$")
                    shutil.rmtree(self.path("run"))

    def test_a_rank_that_spins_is_named_and_all_end(self):
        for mpi in MPIRUN:
            job, _ = self.starts(mpi, 3 if mpi == "openmpi" else 2, *self.LONG,
                                 env={"RIDGE_TEST_DELAY": "1:60000:40:all_reduce 'train'"})
            self.names_the_late_rank(
                job, time.monotonic(),
                r"^ridge: rank [02]: waited \d+\.\d s in all_reduce 'train' \(step \d+, collective \d+\); rank 1 is late: "
                r"at collective \d+, its process \d+ runs, but has not reached the collective \(it computes step \d+ "
                r"for \d+\.\d s; planned [\d.e-]+ s\)$")
            shutil.rmtree(self.path("run"))

    def test_a_rank_that_does_not_come_to_a_gather_beside_buckets_is_named(self):
        job, _ = self.starts("openmpi", 2, "train", "resnet18:image=32,classes=4", "--data", "synthetic", "--batch", "4", "--steps", "100000",
                             "--threads", "1", "-q", "--overlap", "on", "--late-after", "5", "--out", "run",
                             env={"RIDGE_TEST_DELAY": "1:60000:100:all_gather 'train'"})
        self.names_the_late_rank(
            job, time.monotonic(),
            r"^ridge: rank 0: waited \d+\.\d s in all_gather 'train' \(step 3, collective 102\); rank 1 is late: "
            r"at collective 101, its process \d+ runs, but has not reached the collective \(it computes step 3 "
            r"for \d+\.\d s; planned [\d.e-]+ s\)$")

    def test_random_delays_change_no_bit(self):
        alone = self.alone()
        for delay in ("0:3", "1:7:2"):
            done = self.mpirun("openmpi", 3, *TRAIN, "--out", "run", env={"RIDGE_TEST_DELAY": delay})
            self.assertEqual(self.trains(done, 3), alone)

    def test_a_delay_that_means_nothing_is_refused(self):
        done = self.mpirun("openmpi", 2, *TRAIN, env={"RIDGE_TEST_DELAY": "1:soon"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("ridge: RIDGE_TEST_DELAY is '1:soon'; it must be RANK:MS, RANK:MS:FREE or RANK:MS:FREE:NAME",
                      self.lines(done))

    def test_nobody_is_late_where_that_is_switched_off(self):
        job, processes = self.starts("openmpi", 2, *self.LONG, "--late-after", "0")
        time.sleep(1)
        os.kill(processes[1], signal.SIGSTOP)
        with self.assertRaises(subprocess.TimeoutExpired):
            job.communicate(timeout=9)
        os.kill(processes[1], signal.SIGCONT)
        job.send_signal(signal.SIGUSR1)
        self.assertEqual((job.communicate(timeout=60), job.returncode)[1], 75)

    def test_doctor_shows_both_mpis_and_judges_a_record(self):
        found = json.loads(self.ok("doctor", "cluster", "--json"))
        mpis = found["cluster"]["mpis"]
        self.assertEqual([mpi["id"] for mpi in mpis], ["openmpi", "mpich"])
        for mpi in mpis:
            self.assertEqual(mpi["library"], f"{NAME[mpi['id']]} {mpi['version']}")
            self.assertTrue(os.path.samefile(mpi["plugin"], plugin(mpi["id"])))
        self.assertGreater(found["memory"]["shared_bytes"], 0)
        self.write("node.json", json.dumps(found))
        again = json.loads(self.ok("doctor", "cluster", "--probe", "node.json", "--json"))
        self.assertEqual((again["cluster"], again["problems"]), (found["cluster"], found["problems"]))
        wrong = self.mpirun("openmpi", 1, "doctor", "cluster", env={"RIDGE_MPI": plugin("mpich")})
        self.assertEqual(wrong.returncode, 6)
        self.assertIn("blocking: RIDGE_MPI: it is ", wrong.stdout)

    def test_ranks_share_the_cores_of_their_machine(self):
        share = max(1, len(os.sched_getaffinity(0)) // 2)
        for words, threads in (([], share), (["--threads", "2"], 2)):
            self.trains_with(threads, *words)

    def trains_with(self, threads, *words):
        done = self.mpirun("openmpi", 2, "train", "mlp:hidden=32", "--data", "synthetic", "--steps", "1", "-q",
                           "--out", "run", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read_json("run/summary.json")["threads"], threads)
        shutil.rmtree(self.path("run"))

    def test_a_rate_is_looked_for_on_one_device(self):
        done = self.mpirun("openmpi", 2, *TRAIN, "--find-lr")
        self.assertEqual(self.lines(done), ["ridge: --find-lr runs on one device. hint: leave --devices out"])
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
