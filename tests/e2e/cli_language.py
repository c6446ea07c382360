"""Own text: a language model and a classifier, resumed, evaluated and asked to write."""
import json
import os
import random
import shutil
import unittest

import numpy as np

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

    def test_packed_texts_are_the_same_rows_for_any_workers_and_resume(self):
        words = ["train", GPT, "--data", "text:texts,packing=on", "--validation", "0.2", "--batch",
                 "4", "--threads", "1", "--checkpoint-every", "3", "-q"]
        self.ok(*words, "--epochs", "3", "--out", "whole")
        self.ok(*words, "--epochs", "3", "--workers", "3", "--out", "shared")
        self.ok(*words, "--epochs", "1", "--out", "cut")
        self.ok("train", "--resume", "cut", "--epochs", "3", "--threads", "1", "-q")
        self.assertEqual(self.sha("whole"), self.sha("shared"))
        self.assertEqual(self.sha("whole"), self.sha("cut"))
        evaluation = json.loads(self.ok("eval", "whole", "--data", "text:texts/a.txt,packing=on",
                                        "--json"))
        self.assertGreater(evaluation["samples"], 10)
        written = json.loads(self.ok("generate", "whole", "--ids", "100,101", "--tokens", "10",
                                     "--json", "--threads", "1"))
        self.assertEqual(len(written["ids"]), 10)
        llama = "llama:context=16,hidden=16,layers=1,heads=2,kv_heads=1,inner=16"
        self.ok("train", llama, "--data", "text:texts,packing=on", "--batch", "4", "--steps", "2",
                "--out", "llama", "-q")

    def test_a_text_in_a_packed_row_has_the_logits_that_it_has_alone(self):
        models = [GPT, "llama:context=16,hidden=16,layers=2,heads=2,kv_heads=1,inner=16"]
        draw = np.random.default_rng(3)
        first, second = (draw.integers(0, 99, n) for n in (6, 7))
        rest = draw.integers(0, 99, 3)

        def positions(*lengths):
            return np.concatenate([np.arange(n) for n in lengths])

        rows = [(np.concatenate([first, second, rest]), positions(6, 7, 3)),
                (np.concatenate([second, first, rest]), positions(7, 6, 3)),
                (np.concatenate([second, rest[:1], first, rest[:2]]), positions(7, 9))]
        for model in models:
            logits = []
            for tokens, position_ids in rows:
                with open(self.path("in.npz"), "wb") as file:
                    np.savez(file, tokens=tokens[None], position_ids=position_ids[None],
                             label=np.zeros((1, 16), np.int64))
                self.ok("run", model + ",documents=1", "--inputs", "in.npz", "--outputs",
                        "out.npz", "--seed", "4", "-q")
                logits.append(np.load(self.path("out.npz"))["logits"][0])
            alone = {"first": logits[1][7:13], "second": logits[1][:7]}
            np.testing.assert_allclose(logits[0][:6], alone["first"], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(logits[0][6:13], alone["second"], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(logits[2][:7], alone["second"], rtol=1e-4, atol=1e-5)
            self.assertGreater(np.abs(logits[2][8:14] - alone["first"]).max(), 1e-3, model)

    def test_data_shows_the_share_of_padding(self):
        spec = "text:texts,length=64,packing=on"
        found = json.loads(self.ok("data", spec, "--json"))["sets"][0]
        texts = found["texts"]
        rows = found["samples"]
        self.assertEqual((texts["texts"], texts["packed_rows"], texts["length"]), (120, rows, 64))
        self.assertAlmostEqual(texts["padding"], 1 - texts["tokens"] / 120 / 64)
        self.assertAlmostEqual(texts["packed_padding"], 1 - texts["tokens"] / rows / 64)
        self.assertLess(texts["packed_padding"], texts["padding"] / 4)
        shown = self.ok("data", spec)
        self.assertRegex(shown, r"Texts of the training set: 120 of \d+ by \d+ in the middle to \d+ "
                         r"tokens, [\d,]+ in all; rows of 64\n  a row each: [\d.]+ % of 120 rows is "
                         rf"padding; packed: [\d.]+ % of {rows} rows\n")
        self.assertIn("(packing=on)", self.ok("data", "text:texts,length=64"))

    def test_what_cannot_be_is_told(self):
        self.fails(2, "packing=on puts texts side by side; the model has one label for all of its "
                   "tokens. hint: leave packing out", "train", BERT, "--data",
                   "text:texts,packing=on", "-q")
        self.fails(5, "bert: is no language model", "generate", "bert", "--ids", "1", "-q")
        self.fails(2, "--ids has 'x'", "generate", GPT, "--ids", "1,x")
        self.fails(2, "--top-p is", "generate", GPT, "--ids", "1", "--top-p", "2")
        self.fails(4, "nowhere", "train", GPT, "--data", "text:nowhere", "-q")


if __name__ == "__main__":
    unittest.main()
