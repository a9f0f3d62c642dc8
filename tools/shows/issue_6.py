"""The must-shows of issue 6: what of Metal can be shown without a Mac, and that it says no more."""

import re

from proof import ROOT


def show_1(proof):
    """Every Metal kernel against the CPU through the shim, on random inputs, barriers by fibres; what the
    shim cannot show is written down."""
    proof.native_tests("Fibres.*:MetalKernels.*:MetalGather.*:MetalCopy.*")
    proof.native_tests("On*/*Launch*/metal_kernels:On*/*Launch*/fake_metal")
    proof.native_tests("On*/*Learner*/metal_kernels:On*/*Learner*/fake_metal")
    proof.native_tests("On*/*Update*/metal_kernels:On*/*Update*/fake_metal")
    kernels = set()
    for file in sorted((ROOT / "metal").glob("*.metal")):
        kernels |= set(re.findall(r"^kernel void (\w+)", file.read_text(encoding="utf-8"), re.M))
    registered = set(re.findall(r"MR_KERNEL\((\w+)\)",
                                (ROOT / "tests/shim/metal_kernels.cpp").read_text(encoding="utf-8")))
    proof.check("every kernel of metal/ runs in the shim", kernels and kernels <= registered,
                f"{len(kernels)} kernels, missing: {sorted(kernels - registered)}")
    page = (ROOT / "docs" / "metal.md").read_text(encoding="utf-8")
    limits = re.search(r"cannot show: ([^\n]+(?:\n[^\n]+)*)", page)
    proof.check("docs/metal.md lists what cannot be shown", limits is not None)
    if limits:
        print("  " + limits.group(0).replace("\n", "\n  "))


def show_2(proof):
    """Ten seeded mistakes, each caught by the fake device, and none where there is none."""
    proof.native_tests("Seeded/MetalMistakeTest.*:MetalMistake.*")
    proof.native_tests("MetalDeviceTest.*")


def show_3(proof):
    """The replay's protocol tests on the fake Metal device; one tick's prefetch lies inside the update
    window, and the call at the boundary submits nothing."""
    proof.native_tests("On*/Replay*/fake_metal*:On*/*Replay*/fake_metal*")
    proof.native_tests("On*/SubmitThread*/fake_metal*:On*/*Gather*/fake_metal*:On*/*Contract*/fake_metal*")
    proof.native_tests("MetalPrefetch.*")


def show_4(proof):
    """metal/ compiles with clang here, kernels also with real address spaces; a machine without Metal says
    so, and device: metal ends with 3."""
    proof.must_run(ROOT / "tools" / "metal_strict")
    proof.must_run(ROOT / "tools" / "build")
    built = (ROOT / "target/native/.ninja_log").read_text(encoding="utf-8")
    modules = sorted(path.name for path in (ROOT / "metal").glob("*.mm"))
    proof.check("the build of the tests has compiled every module, by clang",
                all(f"metal/{name}.o" in built for name in modules), modules)
    lines = {line["what"]: line for line in proof.must_millrace("doctor", "--json").json()}
    said = re.fullmatch(r"not available: (.*) \(verified: (\w+)\)", lines["device metal"]["value"])
    proof.check("doctor: metal is not available, with the reason", said is not None,
                lines["device metal"]["value"])
    reason, level = said.groups() if said else ("?", "?")
    proof.check("doctor says how far metal was verified", level == "host", level)
    for command in ("preflight", "train"):
        more = [] if command == "preflight" else ["--out", proof.folder / "run"]
        refused = proof.millrace(command, "cartpole_swingup", "-s", "device=metal", *more)
        text = (refused.out + refused.err).strip()
        proof.check(f"{command}: device: metal ends with 3, with the reason",
                    refused.code == 3 and reason in text, f"{refused.code}: {text[:200]}")


def show_5(proof):
    """The sources read against Apple's rules: a checklist with links."""
    page = (ROOT / "docs" / "metal.md").read_text(encoding="utf-8")
    rules = [line for line in page.split("## Apple's rules")[1].splitlines()
             if line.startswith("| ") and not line.startswith(("| rule", "|---"))]
    linked = [line for line in rules if "](https://developer.apple.com/" in line]
    done = [line for line in rules if line.rstrip().endswith("✓ |")]
    proof.check("rules with a link", len(linked) >= 15, f"{len(linked)} of {len(rules)}")
    proof.check("rules that hold in the sources", len(done) >= 15, len(done))
    for line in rules:
        if line not in done:
            print("  open: " + line.strip("| ").split("|")[0].strip())
    named = set(re.findall(r"`(\w+)::(\w+)`", "\n".join(rules)))
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "metal").iterdir()
                     if path.suffix in (".h", ".mm", ".cpp"))
    missing = [f"{owner}::{member}" for owner, member in sorted(named)
               if not re.search(rf"\b{member}\b", text)]
    proof.check("the places that the list names exist", not missing, missing)
