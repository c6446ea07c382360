"""Tables as people have them: words, categories, empty cells; the run keeps what became of them."""
import json
import os
import shutil
import unittest

from _ridge import RidgeTest

# Three sorts of flowers that differ in both columns.
SORTS = {"setosa": (1.5, "short"), "virginica": (5.5, "long"), "versicolor": (4.0, "medium")}


def flowers(rows, delimiter=",", point="."):
    lines = [delimiter.join(["length", "sepal", "species"])]
    for i in range(rows):
        name = list(SORTS)[i % 3]
        length, sepal = SORTS[name]
        text = f"{length + i * 7 % 11 / 10:.2f}".replace(".", point)
        lines.append(delimiter.join([text, sepal, name]))
    return "\n".join(lines) + "\n"


class Tables(RidgeTest):
    def train_on(self, data, *words, out="run"):
        return self.ok("train", "mlp:hidden=8", "--data", data, "--batch", "8", "--epochs", "30",
                       "--lr", "0.02", "--threads", "1", "--out", out, "-q", *words)

    def accuracy(self, run, data):
        return json.loads(self.ok("eval", run, "--data", data, "--threads", "1", "--json"))

    def test_a_model_takes_its_sizes_from_a_table_with_words(self):
        self.write("t.csv", flowers(60))
        self.train_on("csv:t.csv", "--validation", "auto")
        kept = self.read_json("run/preprocessing.json")
        self.assertEqual(kept["classes"], sorted(SORTS))
        self.assertEqual([column["name"] for column in kept["table"]["columns"]],
                         ["length", "sepal"])
        self.assertEqual(kept["table"]["columns"][1]["values"], ["long", "medium", "short"])
        self.assertEqual(self.read_json("run/options.json")["data-dim"], ["inputs=4", "classes=3"])
        self.assertEqual(self.read_json("run/summary.json")["evaluated_on"], "validation")
        self.assertEqual(self.accuracy("run", "csv:t.csv")["accuracy"], 1)

    def test_other_marks_and_other_order_are_the_same_table(self):
        self.write("t.csv", flowers(60))
        self.train_on("csv:t.csv")
        expected = self.accuracy("run", "csv:t.csv")
        lines = [line.split(";") for line in flowers(60, ";", ",").split("\n")[:-1]]
        self.write("turned.csv", "".join(";".join(reversed(line)) + "\r\n" for line in lines))
        actual = self.accuracy("run", "csv:turned.csv")
        for key in ("samples", "loss", "accuracy"):
            self.assertEqual(actual[key], expected[key])
        self.write("part.csv", "species,sepal\nsetosa,short\nvirginica,long\n")
        self.refused(4, "part.csv: no column 'length', which is a feature of the training data; it "
                     "has: species, sepal", "eval", "run", "--data", "csv:part.csv,header=yes")

    def test_the_runs_statistics_hold_for_other_data(self):
        """One row alone is its own mean; by the run's statistics it is what it was."""
        self.write("t.csv", flowers(60))
        self.train_on("csv:t.csv")
        self.write("one.csv", "length,sepal,species\n1.50,short,setosa\n")
        self.write("unknown.csv", "length,sepal,species\n1.50,short,setosa\n1.50,huge,setosa\n")
        self.assertEqual(self.accuracy("run", "csv:one.csv")["accuracy"], 1)
        done = self.ridge("eval", "run", "--data", "csv:unknown.csv", "--threads", "1")
        self.assertEqual(done.stderr, "ridge: warning: csv:unknown.csv: 1 cell of 'sepal' with no "
                         "value of the training data, such as 'huge': no category there\n")

    def test_sizes_that_the_user_gives_win(self):
        self.write("t.csv", flowers(12))
        self.fails(4, "f32[4]", "train", "mlp:inputs=5", "--data", "csv:t.csv", "--batch", "4",
                   "-q")
        self.ok("train", "mlp:hidden=8,classes=7", "--data", "csv:t.csv", "--batch", "4", "--out",
                "seven", "-q")
        self.assertEqual(self.read_json("seven/options.json")["data-dim"], ["inputs=4"])

    def test_a_run_goes_on_and_another_starts_with_its_preprocessing(self):
        self.write("t.csv", flowers(60))
        words = ["mlp:hidden=8", "--data", "csv:t.csv", "--batch", "8", "--threads", "1",
                 "--validation", "0.3", "--checkpoint-every", "5", "-q", "--epochs", "4"]
        self.ok("train", *words, "--out", "whole")
        shutil.copytree(self.path("whole"), self.path("cut"), symlinks=True)
        for name in os.listdir(self.path("cut/checkpoints")):
            if name not in ("step-5", "best"):
                shutil.rmtree(self.path(f"cut/checkpoints/{name}"))
        os.remove(self.path("cut/summary.json"))
        self.ok("train", *words, "--out", "cut", "--resume")
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")
        self.write("more.csv", flowers(9).replace("4.", "9."))
        self.ok("train", "whole", "--data", "csv:more.csv", "--batch", "3", "--out", "next", "-q")
        self.assertEqual(self.read_json("next/preprocessing.json"),
                         self.read_json("whole/preprocessing.json"))
        self.ok("export", "next", "--to", "onnx", "--out", "next.onnx", "-q")

    def test_a_run_without_the_file_reads_numbers_as_they_are(self):
        self.write("t.csv", "a,b,y\n" + "".join(f"{i % 7},{i % 3},{i % 2}\n" for i in range(32)))
        self.train_on("csv:t.csv,standardize=no")
        expected = self.accuracy("run", "csv:t.csv")
        os.remove(self.path("run/preprocessing.json"))
        self.assertEqual(self.accuracy("run", "csv:t.csv")["loss"], expected["loss"])

    def test_a_label_beyond_the_runs_classes_is_refused(self):
        self.write("t.csv", "a,b,y\n" + "".join(f"{i % 7},{i % 3},{i % 2}\n" for i in range(32)))
        self.train_on("csv:t.csv")
        self.write("more.csv", "a,b,y\n1,2,0\n1,2,7\n")
        self.refused(4, "csv:more.csv: field 'label' has label 7; the model has 2 classes, 0 to 1",
                     "eval", "run", "--data", "csv:more.csv")


if __name__ == "__main__":
    unittest.main()
