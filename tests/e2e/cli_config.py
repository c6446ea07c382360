"""--config and --save-config: options of a training in a TOML file."""
import unittest

from _ridge import SMALL, RidgeTest


class Config(RidgeTest):
    def run_with(self, config, *words, **options):
        self.write("run.toml", config)
        return self.ok("train", "--config", "run.toml", "--out", "run", "-q", *words, **options)

    def options_of(self, config, *words, **options):
        self.run_with(config, *words, **options)
        return self.read_json("run/options.json")

    def refused_with(self, message, config, *words):
        self.write("run.toml", config)
        self.refused(2, message + " hint: ridge train --help", "train", "--config", "run.toml", *words)

    def test_a_file_gives_what_the_command_line_would(self):
        given = self.options_of('# a comment\nmodel = "mlp:hidden=8"\ndata = "synthetic"\nsteps = 3\n'
                                'lr = 0.25\ntrace = true\noptimizer = "sgd"\nbatch = 4\n')
        self.assertEqual([given[key] for key in ("model", "steps", "lr", "trace", "batch")],
                         ["mlp:hidden=8", 3, 0.25, True, 4])

    def test_the_command_line_and_the_environment_win(self):
        config = 'model = "mlp:hidden=8"\ndata = "synthetic"\nepochs = 9\nbatch = 4\nlr = 0.5\n'
        given = self.options_of(config, "--steps", "2", "--batch", "8", env={"RIDGE_LR": "0.125"})
        self.assertEqual([given[key] for key in ("epochs", "steps", "batch", "lr")],
                         [None, 2, 8, 0.125])

    def test_what_was_saved_gives_the_same_run(self):
        words = [*SMALL, "--steps", "5", "--freeze", "0.*", "--freeze", "?.bias", "--dim", 'a"b=3']
        self.ok("train", *words, "--save-config", "run.toml")
        self.ok("train", "--config", "run.toml", "--out", "a", "-q")
        self.ok("train", *words, "--out", "b", "-q")
        a, b = self.read_json("a/options.json"), self.read_json("b/options.json")
        a.pop("out"), b.pop("out")
        self.assertEqual(a, b)
        self.assertEqual(self.read_json("a/summary.json")["parameters_sha256"],
                         self.read_json("b/summary.json")["parameters_sha256"])

    def test_a_string_may_hold_quotes_and_marks(self):
        name = self.write('a "b" #1\\c.csv', "x,y,label\n" + "1,2,0\n3,4,1\n" * 8)
        words = ["mlp:hidden=8", "--data", "csv:" + name, "--steps", "2", "--batch", "4"]
        self.ok("train", *words, "--save-config", "run.toml")
        self.ok("train", "--config", "run.toml", "--out", "saved", "-q")
        self.assertEqual(self.read_json("saved/options.json")["data"], "csv:" + name)
        given = self.options_of('model = "mlp:hidden=8"  # a comment\ndata = "csv:a \\"b\\" #1\\\\c.csv" # more\n'
                                'steps = 2\nbatch = 4\n')
        self.assertEqual(given["data"], "csv:" + name)

    def test_mistakes_name_the_file(self):
        self.refused_with("run.toml: 'epoch' is no option of train; did you mean 'epochs'?",
                          "epoch = 3\n")
        self.refused_with("--batch is 0; it must be a whole number of at least 1 (in run.toml).",
                          "batch = 0\n")
        self.refused_with("run.toml: has a section [train]; keys stand at the top of the file.", "[train]\nbatch = 3\n")
        self.refused_with("run.toml: 'config' is no option of train.", 'config = "other.toml"\n')

    def test_a_run_that_goes_on_refuses_other_options(self):
        self.ok("train", *SMALL, "--steps", "5", "--out", "run", "-q")
        self.write("other.toml", "batch = 3\n")
        done = self.ridge("train", "--resume", "run", "--config", "other.toml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--batch is 3; the run was started with", done.stderr)


if __name__ == "__main__":
    unittest.main()
