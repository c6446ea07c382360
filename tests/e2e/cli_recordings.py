"""Recordings and what is said in them: manifests, training with CTC, error rates, texts of new sounds."""
import json
import math
import os
import random
import shutil
import struct
import unittest
import wave

from _ridge import RidgeTest

RATE = 8000
TONES = {"a": 400, "b": 800, "c": 1300, "d": 2000}
NET = ("conformer_s:hidden=32,layers=1,heads=2,kernel=7", "--optimizer", "adamw", "--lr", "0.003")


def text(draw):
    words = ["".join(draw.choice("abcd") for _ in range(draw.randint(1, 2))) for _ in range(draw.randint(1, 2))]
    return " ".join(words)


def sound(said, draw):
    """A tone a letter, silence between letters, a longer one between words."""
    frames = []
    for letter in said:
        seconds = 0.12 if letter == " " else draw.uniform(0.08, 0.12)
        for i in range(int(RATE * seconds)):
            tone = math.sin(2 * math.pi * TONES[letter] * i / RATE) if letter in TONES else 0
            frames.append(int(8000 * tone + draw.uniform(-200, 200)))
        frames += [int(draw.uniform(-200, 200)) for _ in range(int(RATE * 0.05))]
    return frames


def edits(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        diagonal, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            diagonal, row[j + 1] = row[j + 1], min(diagonal + (x != y), row[j] + 1, row[j + 1] + 1)
    return row[-1]


class Recordings(RidgeTest):
    def put(self, path, frames):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with wave.open(self.path(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(struct.pack(f"<{len(frames)}h", *frames))

    def corpus(self, name, count, seed):
        """-> (file, text) of each."""
        draw = random.Random(seed)
        said = [(f"{name}/{i:03}.wav", text(draw)) for i in range(count)]
        for file, words in said:
            self.put(file, sound(words, draw))
        with open(self.path(f"{name}.jsonl"), "w") as manifest:
            for file, words in said:
                manifest.write(json.dumps({"audio_filepath": file, "text": words.upper()}) + "\n")
        return said

    def train(self, *words, out="run"):
        self.ok("train", *words, "--out", out, "--batch", "16", "--threads", "2", "--seed", "3", "-q")
        with open(self.path(f"{out}/summary.json")) as file:
            return json.load(file)

    def test_it_writes_what_it_never_heard(self):
        self.corpus("train", 240, 1)
        said = self.corpus("dev", 40, 2)
        self.train(*NET, "--data", "transcripts:train.jsonl,case=lower,val=dev.jsonl", "--epochs", "30")
        with open(self.path("run/preprocessing.json")) as file:
            self.assertEqual(json.load(file)["spelling"],
                             {"lower": True, "letters": [" ", "a", "b", "c", "d"]})
        answers = json.loads(self.ok("predict", "run", *[file for file, _ in said], "--json", "-q"))
        self.assertEqual(answers["answer"], "text")
        heard = [answer["text"] for answer in answers["predictions"]]
        found = json.loads(self.ok("eval", "run", "--data", "transcripts:dev.jsonl", "--json"))["metrics"]
        self.assertLess(found["wer"], 0.2)
        letters = sum(len(words) for _, words in said)
        self.assertAlmostEqual(
            found["cer"], sum(edits(h, words) for h, (_, words) in zip(heard, said)) / letters)
        words = sum(len(words.split()) for _, words in said)
        self.assertAlmostEqual(
            found["wer"], sum(edits(h.split(), w.split()) for h, (_, w) in zip(heard, said)) / words)
        told = self.ok("eval", "run", "--data", "transcripts:dev.jsonl")
        self.assertRegex(told, r"word error rate \d+\.\d %, character error rate \d+\.\d %, loss")
        self.assertEqual(self.ok("predict", "run", said[0][0], "-q"), heard[0] + "\n")
        with open(self.path("run/metrics.jsonl")) as file:
            lines = [line for line in map(json.loads, file) if line.get("validation_wer") is not None]
        least = min(lines, key=lambda line: line["validation_wer"])  # the first of equals
        self.assertEqual(os.readlink(self.path("run/checkpoints/best")), f"step-{least['step']}")
        self.ok("export", "run", "--to", "onnx", "--out", "net.onnx")
        exported = json.loads(self.ok("predict", "net.onnx", *[file for file, _ in said], "--json", "-q"))
        self.assertEqual([answer["text"] for answer in exported["predictions"]], heard)
        self.put("long.wav", sound("abcd" * 10, random.Random(1)))
        self.fails(4, "s. hint: cut it into parts", "predict", "run", "long.wav")
        told = json.loads(self.ok("predict", "run", "long.wav", said[0][0], "--bad-records", "skip",
                                  "--json", "-q"))
        self.assertEqual([one["input"] for one in told["skipped"]], ["long.wav"])
        self.assertEqual([one["text"] for one in told["predictions"]], heard[:1])

    def test_a_model_that_writes_learns_from_the_same_transcripts(self):
        self.corpus("train", 240, 1)
        self.corpus("dev", 40, 2)
        net = ("whisper_tiny:hidden=32,layers=1,heads=2,context=12", "--optimizer", "adamw", "--lr", "0.003")
        data = "transcripts:train.jsonl,case=lower,val=dev.jsonl"
        told = self.ok("train", *net, "--data", data, "--epochs", "40", "--out", "run", "--batch", "16",
                       "--threads", "2", "--seed", "3")
        self.assertRegex(told, r"\nvalidation accuracy \d+\.\d %, validation word error rate \d+\.\d %, loss [\d.e-]+ after 600 ")
        with open(self.path("run/metrics.jsonl")) as file:
            rates = [line["validation_wer"] for line in map(json.loads, file) if "validation_wer" in line]
        self.assertGreater(rates[0], 0.8)
        self.assertLess(min(rates), 0.5 * rates[0])
        found = json.loads(self.ok("eval", "run", "--data", "transcripts:dev.jsonl", "--json"))["metrics"]
        self.assertAlmostEqual(found["wer"], rates[-1])
        self.assertLessEqual(found["cer"], found["wer"])
        shown = f"{100 * rates[-1]:.1f} %"
        self.assertRegex(self.ok("runs", "."), rf"accuracy +WER .*\n.* {shown} ")
        self.assertEqual(json.loads(self.ok("runs", ".", "--json"))[0]["wer"], rates[-1])

    def test_a_tokenizer_is_kept_with_the_run(self):
        self.corpus("train", 32, 1)
        words = ["[UNK]", "[PAD]", "<s>", "</s>"] + list("abcd ")
        os.makedirs(self.path("tok"))
        self.write("tok/tokenizer.json", json.dumps({
            "version": "1.0", "added_tokens": [
                {"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False,
                 "normalized": False, "special": True} for i, word in enumerate(words[:4])],
            "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                                                  "trim_offsets": True, "use_regex": True},
            "post_processor": {"type": "TemplateProcessing", "single": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [],
                "special_tokens": {w: {"id": w, "ids": [i], "tokens": [w]}
                                   for w, i in (("<s>", 2), ("</s>", 3))}},
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": "[UNK]", "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False,
                      "vocab": {w.replace(" ", "\u0120"): i for i, w in enumerate(words)}, "merges": []}}))
        net = ("whisper_tiny:hidden=16,layers=1,heads=2", "--lr", "0.01")
        data = "transcripts:train.jsonl,case=lower,tokenizer=tok/tokenizer.json,length=12"
        words = [*net, "--data", data, "--epochs", "2", "--checkpoint-every", "2", "--validation", "0.2"]
        whole = self.train(*words, out="whole")["parameters_sha256"]
        self.assertEqual(self.train(*words, "--workers", "4", out="w4")["parameters_sha256"], whole)
        with open(self.path("w4/preprocessing.json")) as file:
            self.assertEqual(json.load(file)["text"]["files"], ["tokenizer.json"])
        shutil.rmtree(self.path("tok"))
        self.cut("w4", 2)
        self.ok("train", "--resume", "w4", "-q")
        with open(self.path("w4/summary.json")) as file:
            self.assertEqual(json.load(file)["parameters_sha256"], whole)
        found = json.loads(self.ok("eval", "whole", "--data", "transcripts:train.jsonl", "--json"))["metrics"]
        self.assertGreaterEqual(found["wer"], 0)
        self.fails(5, "'logits' is not one answer for each sample", "predict", "whole", "train/000.wav")

    def test_all_forms_of_transcripts_are_the_same_data(self):
        said = self.corpus("train", 24, 1)
        self.write("train.csv", "path,sentence\n" + "".join(f"{f},{w.upper()}\n" for f, w in said))
        self.write("train.tsv", "client_id\tpath\tsentence\tsegment\n" +
                   "".join(f"x\t{f}\t{w.upper()}\t\n" for f, w in said))
        self.write("train/train.trans.txt", "".join(
            f"{os.path.basename(f)[:-4]} {w.upper()}\n" for f, w in said))
        kept = {self.train(*NET, "--data", f"transcripts:{name}", "--epochs", "1", out="run-" + name)
                ["parameters_sha256"] for name in ("train.jsonl", "train.csv", "train.tsv", "train")}
        self.assertEqual(len(kept), 1)

    def test_a_resumed_run_has_the_same_bits_with_any_number_of_workers(self):
        self.corpus("train", 40, 1)
        words = [*NET, "--data", "transcripts:train.jsonl", "--epochs", "2", "--checkpoint-every", "2",
                 "--validation", "0.2", "--augment", "timemask:5,freqmask"]
        whole = self.train(*words, out="whole")["parameters_sha256"]
        self.assertEqual(self.train(*words, "--workers", "4", out="w4")["parameters_sha256"], whole)
        shutil.copytree(self.path("w4"), self.path("cut"))
        self.cut("cut", 2)
        self.ok("train", "--resume", "cut", "-q")
        with open(self.path("cut/summary.json")) as file:
            self.assertEqual(json.load(file)["parameters_sha256"], whole)

    def test_a_survey_tells_lengths_and_letters(self):
        self.put("a.wav", sound("ab", random.Random(1)))
        self.put("b.wav", sound("b b", random.Random(1)))
        self.write("all.jsonl", '{"path": "a.wav", "text": "ab"}\n{"path": "b.wav", "text": "b b"}\n')
        told = self.ok("data", "transcripts:all.jsonl")
        self.assertIn("Sounds of the training set: 2 WAV; 2 of 8000 samples a second", told)
        self.assertIn("Transcripts of the training set: 3 words, 5 letters; from 2 letters by 3 in the "
                      "middle to 3\n  ' ' 1, 'a' 1, 'b' 3\n", told)
        found = json.loads(self.ok("data", "transcripts:all.jsonl", "--json"))["sets"][0]
        self.assertEqual(found["transcripts"]["spelled"], {" ": 1, "a": 1, "b": 3})

    def test_wrong_lines_and_sounds_are_named_or_skipped(self):
        self.corpus("train", 24, 1)
        self.write("bad.wav", b"RIFF")
        with open(self.path("train.jsonl"), "a") as file:
            file.write('{"audio_filepath": "bad.wav", "text": "A"}\n{"audio_filepath": 3}\n')
        words = [*NET, "--data", "transcripts:train.jsonl", "--epochs", "1", "--bad-records"]
        self.fails(4, "train.jsonl:26: 'audio_filepath' is 3, no text", "train", *words, "fail", "-q")
        self.train(*words, "skip:2")
        with open(self.path("run/bad_records.jsonl")) as file:
            bad = {line["file"]: line["reason"] for line in map(json.loads, file)}
        self.assertEqual(sorted(bad), ["train.jsonl:25", "train.jsonl:26"])
        self.assertTrue(bad["train.jsonl:25"].startswith("bad.wav: "), bad)

    def test_wrong_options_are_refused(self):
        self.corpus("train", 2, 1)
        def refused(options, text):
            self.fails(2, text, "data", "transcripts:train.jsonl," + options)
        refused("case=upper", "case is 'upper'; it must be keep or lower")
        refused("letters=0", "letters is '0'; it must be from 1 to 16384")
        refused("size=3", "no option 'size'")
        self.fails(2, "cut parts a sound from its text. hint: timemask,freqmask", "train", *NET, "--data",
                   "transcripts:train.jsonl", "--augment", "cut", "--batch", "2", "-q")


if __name__ == "__main__":
    unittest.main()
