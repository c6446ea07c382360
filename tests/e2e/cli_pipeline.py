"""`--mesh p=N`: trainings whose ranks have the stages of a pipeline, under both MPIs."""
import json
import shutil
import subprocess
import unittest

from _ranks import MPIRUN
from _ridge import RIDGE, RidgeTest, environment

GPT = "gpt:layers=2,hidden=16,heads=2,context=8,vocab=32"
TRAIN = ["train", GPT, "--data", "synthetic", "--batch", "4", "--accumulate", "4", "--clip-norm", "1", "--threads", "1", "--slices", "1", "--validation", "0.1", "-q", "--out", "run"]
FOUR = ["--steps", "4"]
STAGES = ["--mesh", "p=2"]


class Pipeline(RidgeTest):
    def mpirun(self, mpi, *words, code=0):
        done = subprocess.run([*MPIRUN[mpi], "-n", "2", RIDGE, *words], cwd=self.folder, env=environment(None),
                              text=True, capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def summary(self):
        return self.read_json("run/summary.json")

    def alone(self):
        self.ok(*TRAIN, *FOUR)
        summary = self.summary()
        shutil.rmtree(self.path("run"))
        return summary

    def same(self, summary, alone):
        for key in ("parameters_sha256", "loss", "validation_loss"):
            self.assertEqual(summary.get(key), alone.get(key), key)

    def test_ranks_of_both_mpis_train_to_the_bits_of_one_process(self):
        alone = self.alone()
        for mpi, schedule in (("openmpi", "1f1b"), ("mpich", "zero-bubble"), ("openmpi", "interleaved:2")):
            with self.subTest(mpi=mpi, schedule=schedule):
                self.mpirun(mpi, *TRAIN, *FOUR, *STAGES, "--pipeline", schedule)
                self.same(self.summary(), alone)
                shutil.rmtree(self.path("run"))

    def test_ranks_keep_what_the_plan_says(self):
        words = ["--batch", "4", "--accumulate", "4", "--clip-norm", "1", "--threads", "1", *STAGES]
        plan = json.loads(self.ok("plan", GPT, *words, "--json"))
        self.ok(*TRAIN, *FOUR, *STAGES)  # the ranks that it starts itself
        for rank, planned in zip(self.summary()["ranks"], plan["ranks"]):
            self.assertEqual(rank["planned"]["arena_bytes"], planned["arena_bytes"])
            self.assertEqual(rank["measured"]["arena_bytes"], planned["arena_bytes"])
            self.assertLessEqual(rank["measured"]["peak_bytes"], rank["planned"]["peak_bytes"])

    def test_one_process_goes_on_with_the_checkpoint_of_two_writers(self):
        alone = self.alone()
        for mpi in MPIRUN:
            with self.subTest(mpi=mpi):
                self.mpirun(mpi, *TRAIN, "--steps", "2", *STAGES, "--pipeline", "zero-bubble", "--checkpoint-writers", "2")
                go_on = ["train", "--resume", "run", "--steps", "4", "--mesh", "d=1", "-q"]
                self.fails(2, "the run has used --mesh p=2", *go_on)
                self.ok(*go_on, "--allow-different")
                summary = self.summary()
                self.assertEqual(summary["steps"], 4)
                self.assertAlmostEqual(summary["validation_loss"], alone["validation_loss"], delta=1e-5)
                shutil.rmtree(self.path("run"))

    def test_refuses_what_is_no_pipeline(self):
        def refuses(text, *words):
            self.fails(2, text, *TRAIN, *FOUR, *words)
        refuses("--mesh p=2,d=2: axis p trains alone, one device a stage. hint: --mesh p=2", "--mesh", "p=2,d=2")
        refuses("--pipeline needs the axis p of --mesh. hint: --mesh p=2", "--pipeline", "gpipe")
        refuses("--accumulate is 1; a pipeline needs 2 micro batches or more. hint: --accumulate 4", *STAGES,
                "--accumulate", "1")


if __name__ == "__main__":
    unittest.main()
