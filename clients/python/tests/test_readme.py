"""The program in the README prints what the README says."""

import os
import pathlib
import subprocess
import sys
import unittest

from server import TOKEN, Server

README = pathlib.Path(__file__).parent.parent / "README.md"


def block(language):
    return README.read_text().split(f"```{language}\n")[1].split("```")[0]


class Readme(unittest.TestCase):
    def test_the_program_prints_what_the_readme_says(self):
        server = Server()
        self.addCleanup(server.stop)
        environment = {**os.environ, "TREFOIL_URL": server.url, "TREFOIL_TOKEN": TOKEN}
        program = [sys.executable, "-c", block("python")]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr), (block("text"), ""))
