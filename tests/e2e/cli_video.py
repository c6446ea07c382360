"""video: by its plug-in, built here: frames of Debian's ffmpeg, and what is refused."""
import ctypes
import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest

from _ridge import SOURCE, RidgeTest, build_failing_disk, environment

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
except ImportError:  # scripts/setup.sh --test-tools brings them
    onnx = None

WIDTH, HEIGHT, SECONDS, RATE = 96, 64, 3, 25
CODECS = {
    "h264.mp4": ["-c:v", "libx264", "-bf", "3", "-g", "20"],
    "open-gop.mp4": ["-c:v", "libx264", "-bf", "3", "-g", "12", "-x264-params", "open-gop=1"],
    "intra-refresh.mp4": ["-c:v", "libx264", "-x264-params", "intra-refresh=1"],
    "h264.mkv": ["-c:v", "libx264", "-bf", "2", "-g", "15"],
    "h264.ts": ["-c:v", "libx264", "-bf", "2", "-g", "15"],
    "h264.avi": ["-c:v", "libx264", "-bf", "2", "-g", "15"],
    "variable-rate.mp4": ["-vf", "select='not(mod(n,3))+gt(n,40)'", "-vsync", "vfr", "-c:v",
                          "libx264", "-bf", "3", "-g", "10"],
    "mpeg4.avi": ["-c:v", "mpeg4", "-bf", "2", "-g", "12"],
    "mpeg4.mp4": ["-c:v", "mpeg4", "-bf", "2", "-g", "12"],
    "mpeg2.mpg": ["-c:v", "mpeg2video", "-bf", "2"],
    "vp8.webm": ["-c:v", "libvpx", "-g", "20", "-b:v", "100k"],
    "vp9.webm": ["-c:v", "libvpx-vp9", "-g", "20", "-b:v", "100k"],
}


# Clips [3,4,H,W] to two classes by a convolution in time and space.
NET = """graph clip_net
  image = input f32[batch,{dims}]
  label = input i64[batch]
  kernel = parameter f32[6,{channels},2,3,3] init=uniform(0.2)
  bias = parameter f32[6] init=zeros
  c = conv(image, kernel, bias, stride=[2,8,8])
  r = relu(c)
  flat = reshape(r, dims=[0,-1])
  w = parameter f32[2,{flat}] init=uniform(0.05)
  b = parameter f32[2] init=zeros
  logits = matmul(flat, w, b, transpose_b=1)
  losses = softmax_cross_entropy(logits, label)
  loss = reduce_mean(losses)
  output logits
  output loss
"""


def ffmpeg(*words):
    return subprocess.run(["ffmpeg", "-v", "error", "-y", *words], check=True,
                          capture_output=True).stdout


def draw(path, codec, pattern="testsrc2", seconds=SECONDS):
    source = f"{pattern}=size={WIDTH}x{HEIGHT}:rate={RATE}:duration={seconds}"
    ffmpeg("-f", "lavfi", "-i", source, *codec, "-threads", "1", "-pix_fmt", "yuv420p", path)


def setUpModule():
    """The tests of a program without plug-in name another place."""
    folder = tempfile.mkdtemp(prefix="ridge-video-")
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    plugin = os.path.join(folder, "libridge_video.so")
    subprocess.run([os.path.join(SOURCE, "scripts/build_video.sh"), plugin], env=environment(),
                   check=True, capture_output=True)
    Video.plugin = {"RIDGE_VIDEO": plugin}


P, T, L, I = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int32


class Info(ctypes.Structure):
    _fields_ = [("width", I), ("height", I), ("frames", L), ("index_bytes", L),
                ("decoder_bytes", L), ("format", T)]


class Api(ctypes.Structure):
    """ridge/data/container/video_abi.h"""
    _fields_ = [("abi", I), ("library", T),
                ("index", ctypes.CFUNCTYPE(P, I, L, L, T, L)),
                ("drop_index", ctypes.CFUNCTYPE(None, P)),
                ("info", ctypes.CFUNCTYPE(Info, P)),
                ("seconds", ctypes.CFUNCTYPE(ctypes.c_double, P, L)),
                ("open", ctypes.CFUNCTYPE(P, P, I, T, L)),
                ("close", ctypes.CFUNCTYPE(None, P)),
                ("read", ctypes.CFUNCTYPE(I, P, L, T, T, L))]


class Opened:
    """A file by the plug-in itself; failures are texts."""

    def __init__(self, plugin, path):
        library = ctypes.CDLL(plugin)
        library.ridge_video_api.restype = ctypes.POINTER(Api)
        self.api = library.ridge_video_api().contents
        self.error = ctypes.create_string_buffer(1024)
        self.fd = os.open(path, os.O_RDONLY)
        self.index = self.api.index(self.fd, 1 << 25, 1 << 24, self.error, 1024)
        self.frames = self.api.info(self.index).frames if self.index else 0
        self.decoder = self.index and self.api.open(self.index, self.fd, self.error, 1024)

    def read(self, frame):
        info = self.api.info(self.index)
        rgb = ctypes.create_string_buffer(info.width * info.height * 3)
        failed = self.api.read(self.decoder, frame, rgb, self.error, 1024)
        return self.error.value.decode() if failed else rgb.raw

    def close(self):
        if self.index:
            self.api.close(self.decoder)
            self.api.drop_index(self.index)
        os.close(self.fd)


class Video(RidgeTest):
    plugin = None

    def open(self, name):
        opened = Opened(self.plugin["RIDGE_VIDEO"], self.path(name))
        self.addCleanup(opened.close)
        return opened

    def clips(self, each=3, codec=("-c:v", "libx264", "-bf", "2", "-g", "12")):
        for kind, pattern in ("bars", "testsrc2"), ("fractal", "mandelbrot"):
            os.makedirs(self.path(f"clips/{kind}"))
            for i in range(each):
                seconds = SECONDS - 0.4 * i
                if pattern == "mandelbrot":
                    ffmpeg("-f", "lavfi", "-i", f"mandelbrot=size={WIDTH}x{HEIGHT}:rate={RATE}",
                           "-t", str(seconds), *codec, "-pix_fmt", "yuv420p",
                           self.path(f"clips/{kind}/{i}.mp4"))
                else:
                    draw(self.path(f"clips/{kind}/{i}.mp4"), list(codec), pattern, seconds)

    def weights(self, out, *words, data="video:clips,fps=4"):
        self.ok("train", "cnn", "--data", data, "--batch", "4", "--threads", "1", "--out", out,
                "-q", *words, env=self.plugin)
        return self.read_json(f"{out}/summary.json")["parameters_sha256"]

    def test_any_frame_in_any_order_is_that_of_decoding_all(self):
        for name, codec in CODECS.items():
            draw(self.path(name), codec)
            whole = ffmpeg("-i", self.path(name), "-vsync", "passthrough", "-sws_flags",
                           "bilinear+bitexact+accurate_rnd+full_chroma_int", "-f", "rawvideo",
                           "-pix_fmt", "rgb24", "-")
            size = WIDTH * HEIGHT * 3
            wanted = [whole[i:i + size] for i in range(0, len(whole), size)]
            opened = self.open(name)
            self.assertEqual(opened.frames, len(wanted), name)
            order = random.Random(7).sample(range(len(wanted)), len(wanted)) + [5, 5, 6, 7]
            for frame in order:
                self.assertEqual(opened.read(frame), wanted[frame], (name, frame))

    def test_frames_train_as_pictures_of_them(self):
        self.clips()
        for kind in "bars", "fractal":
            os.makedirs(self.path(f"pictures/{kind}"))
            for i in range(3):
                opened = self.open(f"clips/{kind}/{i}.mp4")
                for frame in range(0, opened.frames, 10):
                    raw = self.write("frame.rgb", opened.read(frame))
                    ffmpeg("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}", "-i",
                           self.path(raw), self.path(f"pictures/{kind}/{i}-{frame:03}.png"))
        wanted = self.weights("pictures-run", data="images:pictures")
        for workers in "1", "3":
            got = self.weights(f"run-{workers}", "--workers", workers,
                               data="video:clips,every=10")
            self.assertEqual(got, wanted, workers)
        self.assertEqual(self.weights("cached", "--cache", "disk", data="video:clips,every=10"),
                         wanted)

    def test_transforms_give_the_same_bits_for_all_workers_and_after_a_resume(self):
        self.clips()
        words = ["--augment", "rrc,flip", "--validation", "0.3", "--checkpoint-every", "2"]
        whole = self.weights("whole", *words, "--epochs", "3")
        self.assertEqual(self.weights("three", *words, "--epochs", "3", "--workers", "3"), whole)
        self.weights("cut", *words, "--epochs", "1")
        self.ok("train", "--resume", "cut", "--epochs", "3", "-q", env=self.plugin)
        self.assertEqual(self.read_json("cut/summary.json")["parameters_sha256"], whole)

    def test_equal_videos_are_on_one_side_of_a_split_with_all_frames(self):
        for name in "a/1.mp4", "a/2.mp4", "b/1.mp4":
            os.makedirs(os.path.dirname(self.path(f"clips/{name}")), exist_ok=True)
            codec = CODECS["variable-rate.mp4" if name == "b/1.mp4" else "h264.mp4"]
            draw(self.path(f"clips/{name}"), codec)
        self.weights("run", "--validation", "0.3", data="video:clips,every=1")
        self.assertIn(self.read_json("run/evaluation.json")["samples"], (48, 2 * 75))
        shutil.copy(self.path("clips/a/1.mp4"), self.path("clips/b/1.mp4"))
        self.refused(4, "video:clips: all samples are equal: none can be held out for validation",
                     "train", "cnn", "--data", "video:clips", "--validation", "0.3",
                     env=self.plugin)

    def test_data_shows_and_draws_frames(self):
        self.clips(each=1)
        shown = self.ok("data", "video:clips,fps=2,size=32", env=self.plugin)
        self.assertRegex(shown, r"image +u8\[32,32,3\]")
        self.assertRegex(shown, "bars .* 6\n")
        self.ok("data", "video:clips,size=32", "--contact-sheet", "sheet.png", env=self.plugin)
        self.assertGreater(os.path.getsize(self.path("sheet.png")), 1000)

    def test_predict_says_a_class_a_frame_and_the_mean(self):
        self.clips()
        self.weights("run", "--epochs", "4")
        shown = self.ok("predict", "run", "clips/bars/0.mp4,fps=2", "clips/fractal/1.mp4,fps=2",
                        "--csv", "-", env=self.plugin).splitlines()
        names = [line.split(",")[0] for line in shown[1:]]
        self.assertEqual(names.count("clips/bars/0.mp4 mean"), 1)
        self.assertEqual(names[-1], "clips/fractal/1.mp4 mean")
        frames = [n for n in names if n.startswith("clips/bars/0.mp4 frame ")]
        self.assertEqual(len(frames), 6)

    def test_wrong_options_are_named(self):
        self.clips(each=1)
        for option, reason in {
                "every=0": "every is '0'; it must be from 1 to 16777216",
                "fps=0": "fps is '0'; it must be above 0, to 1000",
                "fps=nan": "fps is 'nan'; it must be above 0, to 1000",
                "fps=2,every=2": "has both every and fps; give one",
                "frames=0": "frames is '0'; it must be from 1 to 4096",
                "frames=4,stride=0": "stride is '0'; it must be from 1 to 16777216",
                "stride=2": "stride is of clips, and frames is not given. hint: "
                            "video:clips,stride=2,frames=16"}.items():
            spec = f"video:clips,{option}"
            self.refused(2, f"data '{spec}': {reason}", "data", spec, env=self.plugin)

    def net(self, height=HEIGHT, width=WIDTH):
        flat = 6 * 2 * ((height - 3) // 8 + 1) * ((width - 3) // 8 + 1)
        self.write("net.ridge", NET.format(dims=f"3,4,{height},{width}", channels=3, flat=flat))

    def clip_weights(self, out, *words, data="video:clips,every=5,frames=4", model="net.ridge"):
        self.ok("train", model, "--data", data, "--batch", "4", "--threads", "1", "--out", out,
                "--lr", "0.01", "-q", *words, env=self.plugin)
        return self.read_json(f"{out}/summary.json")["parameters_sha256"]

    @unittest.skipIf(onnx is None, "needs numpy")
    def test_a_clip_is_its_frames_one_behind_the_other(self):
        self.clips()
        self.net()
        pixels, labels = bytearray(), []
        for label, kind in enumerate(("bars", "fractal")):
            for i in range(3):
                opened = self.open(f"clips/{kind}/{i}.mp4")
                picked = range(0, opened.frames, 5)
                for first in range(0, len(picked) - 4 + 1, 2):
                    for frame in picked[first:first + 4]:
                        pixels += opened.read(frame)
                    labels.append(label)
        image = np.frombuffer(bytes(pixels), "uint8").reshape(-1, 4, HEIGHT, WIDTH, 3)
        np.savez(self.path("clips.npz"), image=image, label=np.array(labels))
        runs = iter(range(100))
        for augment in [], ["--augment", "flip,crop:4,mixup:0.4"]:
            wanted = self.clip_weights(f"run-{next(runs)}", *augment, data="npz:clips.npz")
            for words in (["--workers", "1"], ["--workers", "3"], ["--cache", "disk"],
                          ["--cache", "memory"]):
                got = self.clip_weights(f"run-{next(runs)}", *augment, *words,
                                        data="video:clips,every=5,frames=4,stride=2")
                self.assertEqual(got, wanted, (augment, words))

    def test_crops_of_clips_give_the_same_bits_for_all_workers_and_after_a_resume(self):
        self.clips()
        self.net(24, 32)
        words = ["--augment", "rrc,flip", "--validation", "0.3", "--checkpoint-every", "2"]
        whole = self.clip_weights("whole", *words, "--epochs", "3")
        self.assertEqual(self.clip_weights("three", *words, "--epochs", "3", "--workers", "3"),
                         whole)
        self.clip_weights("cut", *words, "--epochs", "1")
        self.ok("train", "--resume", "cut", "--epochs", "3", "-q", env=self.plugin)
        self.assertEqual(self.read_json("cut/summary.json")["parameters_sha256"], whole)

    @unittest.skipIf(onnx is None, "needs onnx")
    def test_an_onnx_model_takes_clips_with_the_frames_first(self):
        self.clips()
        weight = helper.make_tensor("weight", TensorProto.FLOAT, [3, 2], [1, -1, 0.5, 0, -1, 1])
        nodes = [helper.make_node("ReduceMean", ["pixel_values"], ["mean"], axes=[1, 3, 4],
                                  keepdims=0),
                 helper.make_node("MatMul", ["mean", "weight"], ["y"], "fc")]
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "net", [value("pixel_values", TensorProto.FLOAT, ["N", 4, 3, 24, 32])],
            [value("y", TensorProto.FLOAT, ["N", 2])], [weight])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                    ir_version=8), self.path("net.onnx"))
        self.clip_weights("run", "--loss", "cross_entropy:y", "--epochs", "2", model="net.onnx")
        shown = self.ok("predict", "run", "clips/bars/0.mp4", "--csv", "-", env=self.plugin)
        self.assertEqual([line.split(",")[0] for line in shown.splitlines()[1:]],
                         ["clips/bars/0.mp4 frames 0 to 15", "clips/bars/0.mp4 frames 20 to 35",
                          "clips/bars/0.mp4 frames 40 to 55", "clips/bars/0.mp4 mean"])
        self.refused(2, "data 'video:clips,frames=8': makes clips of 8 frames; the model takes "
                     "clips, pixel_values f32[4,3,24,32]. hint: frames=4",
                     "train", "net.onnx", "--loss", "cross_entropy:y", "--data",
                     "video:clips,frames=8", env=self.plugin)
        self.refused(2, "data 'video:clips': makes single frames; the model takes clips, "
                     "pixel_values f32[4,3,24,32]. hint: frames=4",
                     "train", "net.onnx", "--loss", "cross_entropy:y", "--data", "video:clips",
                     env=self.plugin)

    def test_the_run_keeps_how_clips_are_made(self):
        self.clips()
        self.net(24, 32)
        self.clip_weights("run", "--epochs", "2", data="video:clips,fps=4,frames=4,stride=2")
        self.assertEqual(self.read_json("run/preprocessing.json")["clips"],
                         {"frames": 4, "stride": 2, "fps": 4.0})
        shown = self.ok("predict", "run", "clips/fractal/1.mp4", "--csv", "-", env=self.plugin)
        self.assertIn("\nclips/fractal/1.mp4 frames 0 to 18,", shown)
        self.refused(2, "data 'clips/bars/0.mp4,frames=5': frames is 5; the model takes clips of 4 "
                     "frames", "predict", "run", "clips/bars/0.mp4,frames=5", env=self.plugin)
        self.ok("eval", "run", "--data", "video:clips", env=self.plugin)

    def test_videos_that_are_too_short_for_a_clip_are_bad_records(self):
        self.clips()
        self.net(24, 32)
        draw(self.path("clips/bars/short.mp4"), CODECS["h264.mp4"], seconds=0.4)
        self.refused(4, "clips/bars/short.mp4: has 2 frames by every=5, a clip 4. hint: frames=2, "
                     "or a smaller every", "train", "net.ridge", "--data",
                     "video:clips,every=5,frames=4", env=self.plugin)
        self.clip_weights("run", "--bad-records", "skip:1")
        with open(self.path("run/bad_records.jsonl"), encoding="utf-8") as file:
            self.assertIn("clips/bars/short.mp4", file.read())

    def test_data_shows_and_draws_clips(self):
        self.clips(each=1)
        spec = "video:clips,fps=8,frames=4,size=32"
        self.ok("data", spec, "--contact-sheet", "sheet.png", "--augment", "rrc,flip",
                env=self.plugin)
        shown = self.ok("data", spec, env=self.plugin)
        self.assertRegex(shown, r"image +u8\[4,32,32,3\]")
        self.assertRegex(shown, "bars .* 6\n")
        self.assertGreater(os.path.getsize(self.path("sheet.png")), 1000)

    def test_a_pattern_names_the_files_and_their_folders_are_classes(self):
        self.clips(each=2)
        wanted = self.weights("folder")
        for run, pattern in ("all", "clips/*/*.mp4"), ("named", "clips/{bars,fractal}/?.mp4"):
            self.assertEqual(self.weights(run, data=f"video:{pattern},fps=4"), wanted)
        self.assertEqual(self.read_json("all/preprocessing.json")["classes"], ["bars", "fractal"])
        draw(self.path("clips/bars/alone.mp4"), CODECS["h264.mp4"])
        shown = self.ok("data", "video:clips/*/alone.mp4", env=self.plugin)
        self.assertRegex(shown, "bars .* 3\n")
        self.write("clips/bars/notes.txt", "no video")
        shown = self.ok("data", "video:clips/*/*", env=self.plugin)
        self.assertRegex(shown, "bars .* 9\n")
        self.refused(4, "data 'video:clips/*/9.mp4': no file matches clips/*/9.mp4", "data",
                     "video:clips/*/9.mp4", env=self.plugin)
        self.fails(4, "no file that matches clips/*/*.txt is a video (.mp4, ",
                   "data", "video:clips/*/*.txt", env=self.plugin)

    def bad(self, content, reason, name="bad.mp4"):
        os.makedirs(self.path("bad/a"), exist_ok=True)
        self.write(f"bad/a/{name}", content)
        self.fails(4, f"bad/a/{name}: {reason}", "data", "video:bad", env=self.plugin)
        os.remove(self.path(f"bad/a/{name}"))

    def test_bad_files_are_named(self):
        draw(self.path("ok.mp4"), [*CODECS["h264.mp4"], "-movflags", "+faststart"])
        with open(self.path("ok.mp4"), "rb") as file:
            content = file.read()
        self.bad(b"", "is empty")
        self.bad(b"no video at all", "is no video that can be read")
        self.bad(content[:200], "has no stream of pictures")
        self.bad(content[:len(content) // 2], "is cut: it has ")
        self.bad(b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n/etc/passwd\n",
                 "is no video that can be read")
        ffmpeg("-f", "lavfi", "-i", "sine=duration=1", self.path("sound.mp4"))
        with open(self.path("sound.mp4"), "rb") as file:
            self.bad(file.read(), "has no stream of pictures")
        ffmpeg("-f", "lavfi", "-i", "color=size=7008x7008:rate=1:duration=1", "-c:v", "mpeg4",
               self.path("huge.mp4"))
        with open(self.path("huge.mp4"), "rb") as file:
            self.bad(file.read(), "has frames of no known size, or of more than 33554432 pixels")

    def test_damaged_frames_are_bad_records_and_crash_nothing(self):
        self.clips()
        with open(self.path("clips/bars/0.mp4"), "rb") as file:
            content = bytearray(file.read())
        random_bytes = random.Random(3)
        for _ in range(60):
            damaged = bytearray(content)
            for _ in range(random_bytes.choice([1, 20, 300])):
                damaged[random_bytes.randrange(len(damaged))] = random_bytes.randrange(256)
            self.write("damaged.mp4", bytes(damaged))
            opened = self.open("damaged.mp4")
            for frame in range(0, min(opened.frames, 80), 9):
                opened.read(frame)
        begin = content.find(b"mdat") + 1500
        content[begin:begin + 3000] = bytes(3000)
        self.write("clips/bars/0.mp4", bytes(content))
        done = self.fails(4, "clips/bars/0.mp4 frame ", "train", "cnn", "--data",
                          "video:clips,every=1", "--steps", "100", "-q", env=self.plugin)
        self.assertRegex(done.stderr, r"clips/bars/0.mp4 frame \d+: ")
        self.ok("train", "cnn", "--data", "video:clips,every=1", "--steps", "60", "--bad-records",
                "skip:90%", "-q", "--out", "run", env=self.plugin)

    def test_a_failing_disk_is_named_with_file_and_byte(self):
        self.clips(each=1)
        os.rename(self.path("clips/bars/0.mp4"), self.path("clips/bars/failing.mp4"))
        done = self.fails(4, "failing.mp4: ", "data", "video:clips",
                          env={"LD_PRELOAD": build_failing_disk(), "FAIL_AT": "0", **self.plugin})
        self.assertRegex(done.stderr, r"cannot be read at byte \d+: Input/output error")

    def test_a_file_that_changes_under_a_run_is_named(self):
        self.clips(each=1)
        process = self.start("train", "cnn", "--data", "video:clips,every=1", "--steps", "100000",
                             "-q", "--out", "run", env=self.plugin)
        while process.poll() is None and not os.path.exists(self.path("run/plan.json")):
            time.sleep(0.01)
        shutil.copy(self.path("clips/fractal/0.mp4"), self.path("clips/bars/0.mp4"))
        self.assertIn("clips/bars/0.mp4: has changed since the data was opened",
                      process.communicate(timeout=300)[1])

    def test_without_the_plug_in_the_message_says_what_to_install(self):
        os.makedirs(self.path("clips/a"))
        self.write("clips/a/1.mp4", "no")
        self.fails(5, "clips/a/1.mp4: videos are read by a plug-in, libridge_video.so, which is not "
                   "there. hint: apt-get install libavformat-dev libavcodec-dev libswscale-dev, "
                   "then scripts/build_video.sh", "data", "video:clips",
                   env={"RIDGE_VIDEO": "/no/such.so"})
        self.write("other.so", "no library")
        self.fails(5, "is not there (", "data", "video:clips",
                   env={"RIDGE_VIDEO": self.path("other.so")})


if __name__ == "__main__":
    unittest.main()
