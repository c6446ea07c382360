"""Where output goes: links, devices, pipes and standard output stay what they are; a terminal is
not made to obey a file."""
import io
import json
import os
import stat
import subprocess
import threading
import unittest
import zipfile

from _ridge import NOT_HERE, RIDGE, RidgeTest, environment, read_npz, write_npz

NET = "graph net\n  x = input f32[batch,2]\n  y = relu(x)\n  output y\n"


class Outputs(RidgeTest):
    def setUp(self):
        super().setUp()
        self.write("net.ridge", NET)
        write_npz(self.path("in.npz"), {"x": ([2, 2], [-1.0, 2.0, 3.0, -4.0])})
        self.words = ["run", "net.ridge", "--inputs", "in.npz", "--threads", "1"]

    def raw(self, *words, **options):
        return subprocess.run([RIDGE, *words], cwd=self.folder, env=environment(), check=False,
                              stderr=subprocess.PIPE, timeout=120, **options)

    def assert_outputs(self, data):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            self.assertEqual(archive.namelist(), ["y.npy"])

    def test_standard_output_under_each_of_its_names(self):
        os.symlink("/proc/self/fd/1", self.path("stdout"))  # as /dev has one
        for name in ("-", "stdout", "/proc/self/fd/1"):
            done = self.raw(*self.words, "--outputs", name, stdout=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_outputs(done.stdout)
            self.assertIn(b"y f32[2,2]", done.stderr)
        self.assertTrue(os.path.islink(self.path("stdout")))
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.npz", "net.ridge", "stdout"])

    def test_a_redirected_file_keeps_what_was_in_it(self):
        os.symlink("/proc/self/fd/1", self.path("stdout"))
        with open(self.path("all"), "wb") as file:
            file.write(b"before")
            file.flush()
            self.raw(*self.words, "--outputs", "stdout", stdout=file)
        with open(self.path("all"), "rb") as file:
            self.assertEqual(file.read(6), b"before")
            self.assert_outputs(file.read())

    def test_a_pipe_takes_the_bytes(self):
        os.mkfifo(self.path("pipe"))
        read = []

        def reader():
            with open(self.path("pipe"), "rb") as file:
                read.append(file.read())
        thread = threading.Thread(target=reader, daemon=True)
        thread.start()
        self.ok(*self.words, "--outputs", "pipe")
        thread.join(timeout=20)
        self.assertTrue(read, "nothing came through the pipe")
        self.assert_outputs(read[0])
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))

    def test_a_device_stays_a_device(self):
        """Its own node of the null device: a test must not risk the system's."""
        try:
            os.mknod(self.path("null"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            self.skipTest(NOT_HERE + "no right to make devices")
        for words in (["--outputs", "null"], ["--outputs", "link"]):
            if words[1] == "link":
                os.symlink("null", self.path("link"))
            self.raw(*self.words, *words)
            self.assertTrue(stat.S_ISCHR(os.stat(self.path("null")).st_mode))
        self.assertTrue(os.path.islink(self.path("link")))

    def test_a_link_stays_a_link_and_a_file_keeps_its_permissions(self):
        os.mkdir(self.path("there"))
        self.write("there/out.npz", "old")
        os.chmod(self.path("there/out.npz"), 0o640)
        os.symlink("there/out.npz", self.path("out.npz"))
        self.ok(*self.words, "--outputs", "out.npz")
        self.assertTrue(os.path.islink(self.path("out.npz")))
        self.assertEqual(read_npz(self.path("there/out.npz"))["y"][1], (0.0, 2.0, 3.0, 0.0))
        self.assertEqual(os.stat(self.path("there/out.npz")).st_mode & 0o777, 0o640)
        self.assertEqual(os.listdir(self.path("there")), ["out.npz"])

    def test_exports_follow_links_and_go_to_pipes(self):
        for form in ("onnx", "safetensors"):
            words = ["export", "mlp:hidden=8", "--to", form, "--threads", "1", "--out"]
            self.ok(*words, "plain")
            with open(self.path("plain"), "rb") as file:
                plain = file.read()
            os.symlink("end", self.path("link"))
            self.ok(*words, "link")
            self.assertTrue(os.path.islink(self.path("link")))
            with open(self.path("end"), "rb") as file:
                self.assertEqual(file.read(), plain)
            done = self.raw(*words, "-", stdout=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (0, plain), done.stderr)
            self.assertIn(b"read back", done.stderr)
            for name in ("plain", "link", "end"):
                os.remove(self.path(name))
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.npz", "net.ridge"])

    def test_one_thing_at_a_time_on_standard_output(self):
        profile = ["profile", "mlp:hidden=8", "--batch", "4", "--steps", "2", "--threads", "1"]
        done = self.ridge(*profile, "--trace", "-")
        self.assertTrue(json.loads(done.stdout)["traceEvents"], done.stderr)
        done = self.ridge(*profile, "--html", "-")
        self.assertEqual((done.stdout[:15], done.stdout[-8:]), ("<!doctype html>", "</html>\n"))
        self.refused(2, "--json and --html both write to standard output. hint: --html with a "
                     "file's name", *profile, "--json", "--html", "-")
        self.refused(2, "--json and --out both write to standard output. hint: --out with a "
                     "file's name", "export", "mlp", "--to", "onnx", "--json", "--out", "-")


class Terminal(RidgeTest):
    """What a file holds reaches the terminal as text, never as a command to it."""

    def test_control_characters_of_a_file_are_shown_as_question_marks(self):
        self.write("esc.csv", "a,y\n" + 9 * "1,0\n" + "\x1b]0;title\x07\x9b2J\x1b[31mred,1\n")
        done = self.ridge("train", "mlp:inputs=1,classes=2", "--data", "csv:esc.csv", "--out",
                          "run")
        self.assertEqual(done.returncode, 4)
        self.assertIn("ridge: esc.csv:11: column 1 ('a'): '?]0;title??2J?[31mred' is not a number",
                      done.stderr)
        self.assertNotIn("\x1b", done.stderr)
        self.refused(5, "a?[2Jb.ridge: no such file", "plan", "a\x1b[2Jb.ridge")


if __name__ == "__main__":
    unittest.main()
