"""What the scripts that test and measure on a GPU machine share. They run from a packaged folder and
build nothing; every command's report goes into OUT as it came, one JSON object, written after every
step. Parts may be run one by one: an OUT that is there is added to, and every part names the
version that it ran with."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST_S = 180  # of a command that is not given more

class Session:
    """What was found so far, written after every step: a machine may go away at any time."""

    def __init__(self, out, package, peers):
        self.out, self.package, self.peers = out, package, peers
        self.found = json.loads(out.read_text()) if out.exists() else {}
        self.work = Path(tempfile.mkdtemp())
        self.failures = self.found.setdefault("failures", [])

    def keep(self, name, value):
        self.found[name] = value
        self.out.write_text(json.dumps(self.found, indent=1) + "\n")

    def fail(self, what, text=""):
        self.failures.append(what)
        self.keep("failures", self.failures)
        print(f"FAILED {what}\n{text[-3000:]}", flush=True)

    def run(self, name, *command, expected=0, timeout=LONGEST_S, **options):
        """A command that takes longer is killed with all that it has started, and ends the session:
        a kernel that waits forever is not to take all the time on the machine with it."""
        begun = time.monotonic()
        started = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   **options)
        try:
            out, err = started.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            out, err = started.communicate()
            self.fail(f"{name}: killed after {timeout} s", out + err)
            sys.exit(1)  # what waits forever once does so again
        done = subprocess.CompletedProcess(command, started.returncode, out, err)
        print(f"{time.monotonic() - begun:7.1f} s  {name}", flush=True)
        if done.returncode != expected:
            self.fail(f"{name}: exit code {done.returncode}", done.stdout + done.stderr)
        return done

    def millrace(self, name, *arguments, **options):
        return self.run(name, self.package / "bin" / "millrace", *arguments, **options)


def machine(session):
    smi = session.run("nvidia-smi", "nvidia-smi", "--query-gpu=name,driver_version",
                      "--format=csv,noheader").stdout.strip()
    version = session.millrace("version", "--version").stdout.strip()
    doctor = json.loads(session.millrace("doctor", "doctor", "--json").stdout)
    session.keep("machine", {"gpu_and_driver": smi, "host_cores": os.cpu_count()})
    session.keep("doctor", doctor)
    return version


def native_tests(session, selected):
    """The tests of the package that this machine's devices can run; not of kernels that a CPU plays,
    which CI tests."""
    report = session.work / "tests.json"
    session.run("native tests", session.package / "bin" / "millrace-tests",
                f"--gtest_output=json:{report}", f"--gtest_filter={selected}:-*/*_kernels*",
                timeout=240)
    found = json.loads(report.read_text())
    names = [f"{suite['name']}.{test['name']}" for suite in found["testsuites"]
             for test in suite["testsuite"] if test.get("result") == "COMPLETED"]
    on_cuda = [name for name in names if name.endswith("/cuda")]
    session.keep("tests", {"run": len(names), "failures": found["failures"], "on_cuda": on_cuda})
    if found["failures"] or not on_cuda:
        session.fail("native tests")


def sanitize(session, selected, raced, left_out):
    """compute-sanitizer; racecheck follows shared memory and is too slow for whole runs."""
    found = {}
    for tool in ("memcheck", "initcheck", "racecheck"):
        done = session.run(f"compute-sanitizer {tool}", "compute-sanitizer", "--tool", tool,
                           "--target-processes", "all", "--error-exitcode", "9",
                           session.package / "bin" / "millrace-tests",
                           "--gtest_filter="
                           f"{raced if tool == 'racecheck' else selected}{left_out}", timeout=140)
        if done.returncode != 0:
            print((done.stdout + done.stderr)[-1500:], flush=True)
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", done.stdout + done.stderr)
        passed = re.findall(r"\[  PASSED  \] \d+ tests?", done.stdout)
        found[tool] = {"exit_code": done.returncode, "summary": summary, "tests": passed}
        session.keep("sanitizer", found)


def table(found):
    rows = []
    for name, report in found.items():
        if not isinstance(report, dict):
            continue
        medians = {**report.get("medians", {}), **report.get("bandwidth", {}).get("medians", {})}
        rows += [f"{name:44} {key:32} {value:12.2f}" for key, value in medians.items()]
    return "\n".join(rows)


def main(doc, steps):
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--package", type=Path, default=ROOT / ".carry" / "millrace")
    parser.add_argument("--peers", type=Path, default=ROOT / ".carry" / "peers")
    parser.add_argument("--parts", default=",".join(steps))
    options = parser.parse_args()
    session = Session(options.out, options.package.resolve(), options.peers.resolve())
    try:
        version = machine(session)
        for part in options.parts.split(","):
            session.keep("versions", {**session.found.get("versions", {}), part: version})
            steps[part](session)
    finally:
        shutil.rmtree(session.work, ignore_errors=True)
    print(table(session.found))
    return 1 if session.failures else 0
