"""Sequences without an alignment: ctc_loss learns to spell what it was never told the place of."""
import json
import random
import unittest
import zipfile

from _ridge import RidgeTest, npy_bytes, read_npz
from cli_loss import i64_bytes

FRAMES, LETTERS, LONGEST = 20, 4, 5  # classes: the blank and the letters
NET = f"""graph speller
  frames = input f32[batch,{FRAMES},{LETTERS}]
  text = input i64[batch,{LONGEST}]
  frame_count = input i64[batch]
  text_length = input i64[batch]
  w = parameter f32[{LETTERS + 1},{LETTERS}] init=uniform(0.5)
  b = parameter f32[{LETTERS + 1}] init=zeros
  logits = matmul(frames, w, b, transpose_b=1)
  losses = ctc_loss(logits, text, frame_count, text_length)
  loss = reduce_mean(losses)
  output logits
  output loss
"""


def sample(draw):
    """-> frames of tones with silence between them, their number, the letters."""
    letters = [draw.randint(1, LETTERS) for _ in range(draw.randint(1, LONGEST))]
    frames = []
    for letter in letters:
        tone = [1.0 if k == letter - 1 else 0.0 for k in range(LETTERS)]
        frames += [tone] * draw.randint(1, 2) + [[0.0] * LETTERS] * draw.randint(1, 2)
    return [[x + draw.uniform(-0.2, 0.2) for x in frame] for frame in frames], letters


def corpus(draw, count):
    """-> name -> (dims, numbers); what lies behind a sample's frames and letters must not matter."""
    frames, texts, frame_counts, lengths = [], [], [], []
    for _ in range(count):
        sound, letters = sample(draw)
        padding = [draw.uniform(-9, 9) for _ in range((FRAMES - len(sound)) * LETTERS)]
        frames += [x for frame in sound for x in frame] + padding
        texts += letters + [99] * (LONGEST - len(letters))
        frame_counts.append(len(sound))
        lengths.append(len(letters))
    return {"frames": ([count, FRAMES, LETTERS], frames), "text": ([count, LONGEST], texts),
            "frame_count": ([count], frame_counts), "text_length": ([count], lengths)}


def spelled(logits, frames):
    """The best class of each frame, without repeats and blanks."""
    best = [max(range(LETTERS + 1), key=lambda k: logits[t][k]) for t in range(frames)]
    return [c for t, c in enumerate(best) if c != 0 and (t == 0 or best[t - 1] != c)]


class Speech(RidgeTest):
    def write_npz(self, name, arrays):
        """Whole numbers become i64."""
        with zipfile.ZipFile(self.path(name), "w") as archive:
            for field, (dims, values) in arrays.items():
                to_bytes = i64_bytes if isinstance(values[0], int) else npy_bytes
                archive.writestr(field + ".npy", to_bytes(dims, values))

    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        train, self.test = corpus(draw, 256), corpus(draw, 50)
        self.write("net.ridge", NET)
        self.write_npz("data.npz", {**{f"{field}_train": values for field, values in train.items()},
                                    **{f"{field}_test": values
                                       for field, values in self.test.items()}})
        self.write_npz("test.npz", self.test)

    def learn(self, out, epochs="25"):
        self.ok("train", "net.ridge", "--data", "npz:data.npz", "--batch", "16", "--epochs", epochs,
                "--optimizer", "adam", "--lr", "0.05", "--threads", "1", "--out", out, "-q")
        return self.losses(out)

    def losses(self, out):
        with open(self.path(f"{out}/metrics.jsonl")) as file:
            return [json.loads(line)["loss"] for line in file]

    def outputs(self, out):
        """Of all test samples as one batch."""
        self.ok("run", out, "--inputs", "test.npz", "--outputs", "out.npz")
        return read_npz(self.path("out.npz"))

    def wrong(self, out):
        """Test samples that are not spelled letter by letter."""
        dims, numbers = self.outputs(out)["logits"]
        self.assertEqual(dims, (50, FRAMES, LETTERS + 1))
        classes = LETTERS + 1
        count = 0
        for i in range(50):
            rows = [numbers[(i * FRAMES + t) * classes:][:classes] for t in range(FRAMES)]
            length = self.test["text_length"][1][i]
            letters = self.test["text"][1][i * LONGEST:][:length]
            count += spelled(rows, self.test["frame_count"][1][i]) != letters
        return count

    def test_it_spells_sounds_that_it_never_heard(self):
        losses = self.learn("run")
        self.assertGreater(losses[0], 5)
        self.assertLess(losses[-1], 0.5)
        self.assertEqual(self.wrong("run"), 0)
        found = json.loads(self.ok("eval", "run", "--data", "npz:data.npz", "--json"))["metrics"]
        self.assertEqual(found, {"cer": 0})

    def test_the_bits_do_not_depend_on_resume(self):
        whole = self.learn("whole")
        self.learn("parts", epochs="9")
        self.ok("train", "--resume", "parts", "--epochs", "25", "-q")
        self.assertEqual(self.losses("parts"), whole)

    def test_an_evaluation_counts_each_sample_of_the_padded_batch_once(self):
        self.learn("run", epochs="2")
        found = json.loads(self.ok("eval", "run", "--data", "npz:data.npz", "--json"))["loss"]
        self.assertAlmostEqual(found / self.outputs("run")["loss"][1][0], 1, places=6)


if __name__ == "__main__":
    unittest.main()
