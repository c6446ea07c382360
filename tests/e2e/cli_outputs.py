"""What a file holds reaches the terminal as text."""
import unittest

from _ridge import RidgeTest


class Terminal(RidgeTest):
    """What a file holds reaches the terminal as text, never as a command to it."""

    def test_control_characters_of_a_file_are_shown_as_question_marks(self):
        self.write("esc.csv", "a,y\n1,0\n\x1b]0;title\x07\x9b2J\x1b[31mred,1\n")
        done = self.ridge("train", "mlp:inputs=1,classes=2", "--data", "csv:esc.csv", "--out",
                          "run")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr, "ridge: esc.csv:3: column 1 ('a'): '?]0;title??2J?[31mred' "
                         "is not a number\n")
        self.refused(5, "a?[2Jb.ridge: no such file", "plan", "a\x1b[2Jb.ridge")


if __name__ == "__main__":
    unittest.main()
