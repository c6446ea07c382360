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
                "fps=2,every=2": "has both every and fps; give one"}.items():
            spec = f"video:clips,{option}"
            self.refused(2, f"data '{spec}': {reason}", "data", spec, env=self.plugin)

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
