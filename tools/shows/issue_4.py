"""The must-shows of issue 4: the update step as a device program. What needs a GPU is judged from
the file that tools/gpu_update wrote on one, and says from which commit and device it is."""

import json

from proof import ROOT

RESULTS = ROOT / "docs" / "results" / "update-h200.json"
LIMITS_US = {"g1_walk_flat": 40, "g1_motion_tracking_sac": 80}


def recorded(proof):
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    print(f"  {found['machine']['gpu_and_driver']}; {found['machine']['host_cores']} host cores; "
          f"{RESULTS.relative_to(ROOT)}; {found['versions']}")
    proof.check("the session that wrote it had no failure", found["failures"] == [],
                found["failures"])
    return found


def show_1(proof):
    """1,000 ticks of both tasks: eager = graph, CUDA = CPU bit for bit; here on stand-ins."""
    proof.native_tests("*Captured*:*DeviceUpdate*:*GraphedUpdate*:*Certif*:*DeviceRun*:*Fault*:"
                       "*SubmittedUpdate*")
    found = recorded(proof)
    on_cuda = found["tests"]["on_cuda"]
    proof.check("native tests on the machine", found["tests"]["failures"] == 0,
                f"{found['tests']['run']} run, {len(on_cuda)} on cuda")
    for name in ("DeviceUpdateTest.EveryCarrierRowAndOutcomeHasTheBitsOfTheHost",
                 "CapturedUpdate.WalkThousandTicks", "CapturedUpdate.TrackingThousandTicks",
                 "Certification.EveryTermIsCertified",
                 "DeviceRun.EqualsTheRunOnTheCpuWithEveryTask"):
        proof.check(name, any(name in test for test in on_cuda))


def show_2(proof):
    """The update step at 4,096 environments: at most 40 us walking, 80 us tracking."""
    found = recorded(proof)
    for task, limit_us in LIMITS_US.items():
        median = found[f"update_{task}_4096"]["medians"]
        best = min(median["eager_us"], median["graph_us"])
        proof.check(f"{task} <= {limit_us} us", best <= limit_us,
                    f"eager {median['eager_us']:.1f} us, graph {median['graph_us']:.1f} us, "
                    f"{median['floor_ratio']:.1f} x the floor of the bytes moved")


def show_3(proof):
    """The allocator proof: zero over 10,000 replays, and an allocation is found with its site."""
    update = recorded(proof)["proof"]["graphs"]["update"]
    proof.check("at least 10,000 replays", update["replays"] >= 10_000, update["replays"])
    changes = {key: value for key, value in update["alloc_proof"].items() if key != "runs"}
    proof.check("nothing was allocated", not any(changes.values()), update["alloc_proof"])
    proof.native_tests("*AllocatorProof*:*CapturedProgram*")


def show_4(proof):
    """Every finding has a golden output; graph: on with an unsupported owner exits with 3."""
    proof.native_tests("*Preflight*:*Finding*:*GraphPreflight*:*UpdateFacts*")
    refused = proof.run(ROOT / "tools" / "millrace", "train", "g1_walk_flat", "--out",
                        proof.folder / "run", "-s", "device=cpu", "-s", "graph=on", "-s",
                        "precision=bf16")
    proof.check("exit code 3", refused.code == 3, refused.code)
    text = refused.out + refused.err
    for reason in ("BACKEND_HAS_NO_GRAPHS", "PRECISION_UNAVAILABLE"):
        proof.check(f"names {reason}", reason in text)
    found = recorded(proof)
    for name in ("refused_normaliser", "refused_cpu"):
        proof.check(f"{name} on the machine", found[name]["exit_code"] == 3, found[name]["text"])
    never = found["never_replayed"]
    proof.check("a graph that never replayed is a failed run", never["exit_code"] == 4,
                never["text"])


def show_5(proof):
    """The tables in docs/results and the page that is written from them."""
    recorded(proof)
    page = proof.run(ROOT / "tools" / "graphs_page", "--check")
    proof.check("docs/results/graphs.md is what the file says", page.code == 0)
    print((ROOT / "docs" / "results" / "graphs.md").read_text(encoding="utf-8"))
