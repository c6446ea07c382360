"""Sounds in folders: training, resuming, predicting, what a run keeps, and what is wrong with files."""
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
CLASSES = ("chirp", "noise", "tone")


def sample(kind, t, numbers, noise):
    if kind == "tone":
        return math.sin(2 * math.pi * numbers[0] * t)
    if kind == "chirp":
        return math.sin(2 * math.pi * (numbers[0] + numbers[1] * t) * t)
    return noise.uniform(-1, 1)


def sound(kind, seed, seconds):
    """s16 of a sound of this kind: its pitch, loudness and length differ from file to file."""
    draw = random.Random(f"{kind} {seed}")
    numbers = (draw.uniform(300, 700), draw.uniform(2500, 3300))
    loud = draw.uniform(2000, 20000)
    count = int(RATE * seconds * draw.uniform(0.7, 1))
    return [int(loud * sample(kind, i / RATE, numbers, draw)) for i in range(count)]


class Audio(RidgeTest):
    def setUp(self):
        super().setUp()
        for kind in CLASSES:
            for seed in range(20):
                self.put(f"sounds/train/{kind}/{seed:02}.wav", sound(kind, seed, 0.5))
            for seed in range(100, 108):
                self.put(f"sounds/val/{kind}/{seed}.wav", sound(kind, seed, 0.5))

    def put(self, path, frames, channels=1, rate=RATE):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with wave.open(self.path(path), "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(struct.pack(f"<{len(frames)}h", *frames))

    def train(self, *words, out="run"):
        self.ok("train", *words, "--out", out, "--batch", "8", "--threads", "2", "-q")
        with open(self.path(f"{out}/summary.json")) as file:
            return json.load(file)

    def learn(self, out="run"):
        return self.train("cnn:filters=8", "--data", "audio:sounds", "--epochs", "20", out=out)

    def test_kinds_of_sounds_are_told_apart_and_predicted_from_run_and_export(self):
        self.learn()
        evaluated = json.loads(self.ok("eval", "run", "--data", "audio:sounds", "--json"))
        self.assertGreaterEqual(evaluated["accuracy"], 0.95)
        with open(self.path("run/preprocessing.json")) as file:
            kept = json.load(file)
        self.assertEqual(kept["classes"], list(CLASSES))
        self.assertEqual(kept["sounds"]["mel"]["level"], "whisper")
        files = [f"sounds/val/{kind}/{seed}.wav" for kind in CLASSES for seed in range(100, 108)]
        answers = json.loads(self.ok("predict", "run", *files, "--json", "-q"))["predictions"]
        hits = sum(f"/{answer['class']}/" in answer["input"] for answer in answers)
        self.assertEqual(hits / len(files), evaluated["accuracy"])
        told = self.ok("export", "run", "--to", "onnx", "--out", "net.onnx")
        self.assertIn("carries the names of 3 classes, sounds of 0.5 s", told)
        exported = json.loads(self.ok("predict", "net.onnx", "sounds/val", "--batch", "8", "--json",
                                      "-q"))["predictions"]
        self.assertEqual([a["class"] for a in exported], [a["class"] for a in answers])

    def test_the_data_give_the_models_sizes(self):
        self.train("cnn", "--data", "audio:sounds", "--steps", "1")
        with open(self.path("run/options.json")) as file:
            self.assertEqual(json.load(file)["data-dim"],
                             ["classes=3", "image=80", "width=50", "channels=1"])
        self.train("resnet18", "--data", "audio:sounds,features=logmel,mels=32,seconds=0.4",
                   "--steps", "1", out="resnet")
        self.train("mlp", "--data", "audio:sounds,features=wave,rate=4000", "--steps", "1",
                   out="wave")
        with open(self.path("wave/preprocessing.json")) as file:
            self.assertEqual(json.load(file)["sounds"]["rate"], 4000)

    def test_a_resumed_run_has_the_same_bits_with_any_number_of_workers(self):
        words = ["cnn:filters=4", "--data", "audio:sounds,seconds=0.3", "--epochs", "2",
                 "--checkpoint-every", "2", "--seed", "5", "--augment", "cut,timemask:5:2,freqmask"]
        whole = self.train(*words, out="whole")["parameters_sha256"]
        for workers in ("1", "2", "4"):
            other = self.train(*words, "--workers", workers, out=f"w{workers}")
            self.assertEqual(other["parameters_sha256"], whole, workers)
        steps = sorted(int(name[5:]) for name in os.listdir(self.path("w4/checkpoints"))
                       if name.startswith("step-"))
        for kept in steps[:-1]:
            shutil.copytree(self.path("w4"), self.path("cut"))
            self.cut("cut", kept)
            self.ok("train", "--resume", "cut", "-q")
            with open(self.path("cut/summary.json")) as file:
                self.assertEqual(json.load(file)["parameters_sha256"], whole, kept)
            shutil.rmtree(self.path("cut"))
        plain = self.train(*words[:-2], out="plain")["parameters_sha256"]
        self.assertNotEqual(plain, whole)

    def test_an_evaluation_does_what_the_run_did(self):
        self.train("cnn:filters=4", "--data",
                   "audio:sounds,seconds=0.3,features=logmel,normalize=-20:30", "--epochs", "1")
        losses = [json.loads(self.ok("eval", "run", "--data", spec, "--json"))["loss"] for spec in
                  ("audio:sounds", "audio:sounds,features=logmel,normalize=-20:30,seconds=0.3",
                   "audio:sounds,normalize=none")]
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])

    def test_channels_are_averaged_or_chosen(self):
        for name, frames in (("left", (3000, 0)), ("mean", (1500, 1500))):
            for kind in CLASSES[:2]:
                self.put(f"{name}/{kind}/a.wav", list(frames) * 4000, channels=2)
        survey = {}
        for spec in ("left,channel=0", "left,channel=1", "left", "mean"):
            found = json.loads(self.ok("data", f"audio:{spec},features=wave", "--json"))
            survey[spec] = found["sets"][0]["fields"][0]["mean"]
        self.assertGreater(survey["left,channel=0"], 0.09)
        self.assertEqual(survey["left,channel=1"], 0)
        self.assertEqual(survey["left"], survey["mean"])
        self.fails(4, "has 1 channel, and channel 1 is asked for",
                   "data", "audio:sounds,channel=1")

    def test_a_survey_tells_lengths_rates_and_channels(self):
        self.put("sounds/train/tone/long.wav", [0] * 88200 * 2, channels=2, rate=44100)
        told = self.ok("data", "audio:sounds")
        self.assertIn("Sounds of the training set: 61 WAV; 60 of 8000, 1 of 44100 samples a second; "
                      "60 of 1 channels, 1 of 2 channels", told)
        self.assertIn("to 2 s (sounds/train/tone/long.wav)", told)
        found = json.loads(self.ok("data", "audio:sounds", "--json"))["sets"][0]
        self.assertEqual(found["sounds"]["longest_s"], 2)
        self.assertEqual(found["sounds"]["rates"], {"8000": 60, "44100": 1})
        self.assertEqual(found["fields"][0]["type"], "f32[80,200]")

    def test_bad_records_are_skipped_and_listed(self):
        with open(self.path("sounds/train/tone/00.wav"), "rb") as file:
            good = file.read()
        self.write("sounds/train/tone/cut.wav", good[:-100])
        self.write("sounds/train/tone/empty.wav", b"")
        floats = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 8036, b"WAVE", b"fmt ", 16, 3, 1, RATE,
                             4 * RATE, 4, 32, b"data", 8000)
        self.write("sounds/train/tone/nan.wav",
                   floats + struct.pack("<2000f", *([0.0] * 17 + [math.nan] + [0.0] * 1982)))
        words = ["cnn:filters=4", "--data", "audio:sounds", "--epochs", "1", "--bad-records"]
        self.fails(4, "sounds/train/tone/cut.wav: chunk 'data' at byte 36 has", "train", *words,
                   "fail", "-q")
        self.train(*words, "skip:3")
        with open(self.path("run/bad_records.jsonl")) as file:
            bad = {line["file"]: line["reason"] for line in map(json.loads, file)}
        self.assertEqual(bad["sounds/train/tone/empty.wav"], "is empty")
        self.assertEqual(bad["sounds/train/tone/nan.wav"], "sample 17 at byte 112 is NaN")
        self.assertEqual(len(bad), 3)
        self.fails(4, "sounds/train/tone/cut.wav", "predict", "run", "sounds/train/tone/cut.wav")

    def test_wrong_options_are_refused(self):
        def refused(options, *texts):
            for text in texts:
                self.fails(2, text, "data", "audio:sounds," + options)
        refused("rate=0", "rate is '0'; it must be a whole number from 1 to 768000")
        refused("features=mfcc", "features is 'mfcc'; it must be whisper, logmel or wave")
        refused("fft=512", "features=whisper has a rate of 16000, fft=400")
        refused("features=wave,mels=20", "features=wave has no spectrogram")
        refused("features=logmel,high=9000", "frequencies from 0 to 9000 Hz; they must rise")
        refused("seconds=0.01", "160 samples are too few for frames of 400")
        refused("size=3", "no option 'size' (it takes: features, rate, seconds,")
        self.fails(2, "'flip' is none of cut, timemask", "train", "cnn", "--data", "audio:sounds",
                   "--augment", "flip", "--batch", "8", "-q")


if __name__ == "__main__":
    unittest.main()
