"""What the proofs share: a work folder, commands and their results, and checks that are printed."""

import csv
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIME_COLUMN = re.compile(r"(_s|_ms|_per_s)$")


@dataclass
class Result:
    code: int
    out: str
    err: str
    seconds: float
    peak_bytes: int  # of this process, or of the largest one that it waited for

    def json(self):
        return json.loads(self.out)


class Proof:
    """One must-show: its folder is target/show/ISSUE-NUMBER, emptied at the start."""

    def __init__(self, name):
        self.folder = ROOT / "target" / "show" / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._checks = []

    def check(self, what, passed, measured=""):
        self._checks.append(bool(passed))
        print(f"  {'ok  ' if passed else 'FAIL'} {what}{': ' if measured != '' else ''}{measured}",
              flush=True)

    def passed(self):
        return bool(self._checks) and all(self._checks)

    def run(self, *command, cwd=ROOT, env=None, limit_file_bytes=None):
        """Runs a command to its end; what it prints is kept, not shown."""
        print("  $ " + " ".join(str(part) for part in command), flush=True)

        def limit():
            if limit_file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_file_bytes, limit_file_bytes))

        begun = time.monotonic()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen([str(part) for part in command], cwd=cwd, stdout=out,
                                       stderr=err, preexec_fn=limit,
                                       env={**os.environ, **(env or {})})
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            return Result(process.returncode, out.read(), err.read(), time.monotonic() - begun,
                          usage.ru_maxrss * 1024)

    def must_run(self, *command, **options):
        """Runs a command that has to succeed: what it said is shown when it does not."""
        result = self.run(*command, **options)
        if result.code != 0:
            self.check(f"exit code of {command[1] if len(command) > 1 else command[0]}", False,
                       f"{result.code}\n{result.out[-2000:]}{result.err[-2000:]}")
        return result

    def millrace(self, *arguments, **options):
        return self.run(ROOT / "tools" / "millrace", *arguments, **options)

    def must_millrace(self, *arguments, **options):
        return self.must_run(ROOT / "tools" / "millrace", *arguments, **options)

    def native_tests(self, test_filter, build="target", also_disabled=False):
        """Runs native tests; a filter that matches nothing fails, which Google Test would not."""
        self.must_run(ROOT / "tools" / "build")
        binary = ROOT / build / "native" / "millrace_tests"
        more = ["--gtest_also_run_disabled_tests"] if also_disabled else []
        result = self.run(binary, f"--gtest_filter={test_filter}", *more)
        passed = re.search(r"\[  PASSED  \] (\d+) test", result.out)
        count = int(passed.group(1)) if passed else 0
        for line in result.out.splitlines():
            if re.match(r"\[       OK|\[  FAILED", line):
                print("    " + line)
        if result.code != 0:
            print(result.out[-3000:] + result.err[-3000:])
        self.check(f"native tests {test_filter}", result.code == 0 and count > 0,
                   f"{count} passed in {result.seconds:.0f} s")


def metrics(run):
    """The rows of a run's metrics.csv, as text by column."""
    with open(Path(run) / "metrics.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def without_times(rows):
    return [{name: value for name, value in row.items() if not TIME_COLUMN.search(name)}
            for row in rows]


def manifest(run):
    return json.loads((Path(run) / "manifest.json").read_text(encoding="utf-8"))


def checkpoints(run):
    """The folders of the complete checkpoints, oldest first."""
    return sorted((Path(run) / "checkpoints").glob("tick-*"))


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def tree_hash(folder):
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return [(str(path.relative_to(folder)), sha256(path)) for path in files]
