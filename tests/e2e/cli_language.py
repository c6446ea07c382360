"""Own text: a language model and a classifier, resumed, evaluated and asked to write."""
import json
import os
import random
import shutil
import unittest

from _ridge import RidgeTest

GPT = "gpt:context=16,hidden=16,layers=1,heads=2"
BERT = "bert:tokens=16,hidden=16,layers=1,heads=2"


class Language(RidgeTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        words = ["alpha", "beta", "gamma", "delta", "epsilon"]
        os.mkdir(self.path("texts"))
        for kind in range(2):
            lines = [" ".join(draw.choice(words[2 * kind:2 * kind + 3]) for _ in range(5))
                     for _ in range(60)]
            self.write(f"texts/{'ab'[kind]}.txt", "\n".join(lines))

    def sha(self, run):
        with open(self.path(f"{run}/summary.json")) as file:
            return json.load(file)["parameters_sha256"]

    def test_a_language_model_resumes_to_the_same_bits_and_writes(self):
        words = ["train", GPT, "--data", "text:texts", "--validation", "0.2", "--batch", "8",
                 "--threads", "1", "--checkpoint-every", "3", "-q"]
        self.ok(*words, "--epochs", "3", "--out", "whole")
        self.ok(*words, "--epochs", "1", "--out", "cut")
        self.ok("train", "--resume", "cut", "--epochs", "3", "--threads", "1", "-q")
        self.assertEqual(self.sha("whole"), self.sha("cut"))
        evaluation = json.loads(self.ok("eval", "whole", "--data", "text:texts/a.txt", "--json"))
        self.assertGreater(evaluation["samples"], 10)
        words = ["generate", "whole", "--ids", "100,101", "--tokens", "10", "--json", "--threads",
                 "1"]
        first, second = (json.loads(self.ok(*words)) for _ in range(2))
        self.assertEqual(len(first["ids"]), 10)
        self.assertEqual(first["ids"], second["ids"])

    def test_a_classifier_keeps_its_tokenizer(self):
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "alpha", "beta", "gamma",
                      "delta", "ep", "##silon"]
        os.mkdir(self.path("tokenizer"))
        self.write("tokenizer/vocab.txt", "\n".join(vocabulary) + "\n")
        self.ok("train", BERT, "--data", "text:texts,tokenizer=tokenizer", "--validation", "0.2",
                "--batch", "8", "--epochs", "12", "--threads", "1", "--lr", "3e-3", "--out", "run",
                "-q")
        shutil.rmtree(self.path("tokenizer"))
        evaluation = json.loads(self.ok("eval", "run", "--data", "text:texts", "--json"))
        self.assertGreater(evaluation["accuracy"], 0.8)
        with open(self.path("run/preprocessing.json")) as file:
            kept = json.load(file)
        self.assertEqual(kept["classes"], ["a", "b"])
        self.assertEqual(kept["text"], {"tokenizer": "wordpiece", "files": ["vocab.txt"]})

    def test_what_cannot_be_is_told(self):
        self.fails(5, "bert: is no language model", "generate", "bert", "--ids", "1", "-q")
        self.fails(2, "--ids has 'x'", "generate", GPT, "--ids", "1,x")
        self.fails(2, "--top-p is", "generate", GPT, "--ids", "1", "--top-p", "2")
        self.fails(4, "nowhere", "train", GPT, "--data", "text:nowhere", "-q")


if __name__ == "__main__":
    unittest.main()
