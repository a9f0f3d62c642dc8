"""The must-shows of issue 2: the spine, end to end, on a CPU."""

import os
import signal
import subprocess
import time

from proof import (ROOT, checkpoints, manifest, metrics, sha256, tree_hash, without_times)


def mean_ended_length(rows):
    """Mean length of the episodes that ended in these rows, and how many those are."""
    ended = [(float(row["episodes_ended"]), float(row["ended_length_mean"])) for row in rows
             if row["ended_length_mean"] != ""]
    count = sum(number for number, _ in ended)
    return (sum(number * length for number, length in ended) / count if count else 0.0), int(count)


def show_1(proof):
    """Fresh clone, empty Maven cache: one command builds and trains the G1; it learns to stay up."""
    clone = proof.folder / "clone"
    proof.must_run("git", "clone", "--quiet", ROOT, clone)
    run = proof.folder / "run"
    empty = {"MAVEN_OPTS": f"-Dmaven.repo.local={proof.folder / 'm2'}"}
    result = proof.must_run(clone / "tools" / "millrace", "train", "g1_walk_flat", "--out", run,
                            cwd=proof.folder, env=empty)
    rows = metrics(run)
    steps = float(rows[-1]["env_steps"])
    first, first_count = mean_ended_length(
        [row for row in rows if float(row["env_steps"]) <= 0.1 * steps])
    last, last_count = mean_ended_length(
        [row for row in rows if float(row["env_steps"]) > 0.9 * steps])
    proof.check("episodes ended in the first and the last tenth", first_count and last_count,
                f"{first_count}, {last_count}")
    proof.check("length of the last tenth is at least 3 x that of the first",
                first > 0 and last >= 3 * first,
                f"{last:.1f} / {first:.1f} ticks = {last / max(first, 1e-9):.2f}")
    print(f"  {steps:.0f} env steps, {rows[-1]['updates']} updates, {result.seconds:.0f} s in all")
    proof.must_run(clone / "tools" / "millrace", "manifest", "verify", run)
    proof.check("profile of the run", manifest(run)["config"]["profile"],
                manifest(run)["config"]["profile"])


def show_2(proof):
    """The cartpole swings up and stays up within 4 minutes, for seeds 1, 2 and 3."""
    proof.must_run(ROOT / "tools" / "build")
    for seed in (1, 2, 3):
        run = proof.folder / f"seed-{seed}"
        trained = proof.must_millrace("train", "cartpole_swingup", "--seed", seed, "--out", run)
        played = proof.must_millrace("play", run, "--episodes", 20, "--json")
        mean = played.json()["return_mean"]
        proof.check(f"seed {seed}: return of the last checkpoint is at least 350 of 500",
                    mean >= 350, f"{mean:.1f}")
        proof.check(f"seed {seed}: trained within 240 s", trained.seconds <= 240,
                    f"{trained.seconds:.0f} s")


def same_run(proof, what, one, other):
    proof.check(f"{what}: metrics.csv, time columns aside",
                without_times(metrics(one)) == without_times(metrics(other)),
                f"{len(metrics(one))} rows")
    last, last_other = checkpoints(one)[-1], checkpoints(other)[-1]
    proof.check(f"{what}: last checkpoint", last.name == last_other.name, last.name)
    for name in ("state.safetensors", "replay.safetensors"):
        proof.check(f"{what}: {name}", sha256(last / name) == sha256(last_other / name),
                    sha256(last / name)[:16])


def kill_at_checkpoint(arguments, run):
    """Starts a run and kills it with SIGKILL when its first checkpoint is complete."""
    process = subprocess.Popen([ROOT / "tools" / "millrace", *arguments], cwd=ROOT,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not checkpoints(run):
        time.sleep(0.02)
    was_running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return was_running


def show_3(proof):
    """Same seed, same run, bit for bit; and so is a run that was killed and resumed."""
    proof.must_run(ROOT / "tools" / "build")
    for task, ticks in (("cartpole_swingup", 400), ("g1_walk_flat", 80)):
        settings = ["-s", "run.max_seconds=0", "-s", f"run.max_ticks={2 * ticks}",
                    "-s", f"checkpoint.interval_ticks={ticks}", "-s", "replay.save=true",
                    "-s", f"log.interval_ticks={ticks // 8}", "--profile", "laptop"]
        runs = {name: proof.folder / f"{task}-{name}" for name in ("one", "two", "killed")}
        for name in ("one", "two"):
            proof.must_millrace("train", task, *settings, "--out", runs[name])
        same_run(proof, f"{task} twice", runs["one"], runs["two"])

        killed = kill_at_checkpoint(["train", task, *settings, "--out", str(runs["killed"])],
                                    runs["killed"])
        proof.check(f"{task}: killed while it ran", killed)
        proof.must_millrace("resume", runs["killed"])
        same_run(proof, f"{task} killed and resumed", runs["one"], runs["killed"])
        ticks_seen = [row["tick"] for row in metrics(runs["killed"])]
        proof.check(f"{task}: no double row", len(ticks_seen) == len(set(ticks_seen)))


def show_4(proof):
    """Physics: equal to a plain mj_step loop, and to MuJoCo 3.14 under Node within 1e-6."""
    proof.native_tests("PhysicsMujoco.EqualsAPlainLoopBitForBit")
    result = proof.must_run(ROOT / "tools" / "show_physics_oracle")
    print(result.out.rstrip())
    proof.check("oracle", result.code == 0)


def show_5(proof):
    """Every term against an independent double-precision reference; the mirror map."""
    proof.native_tests("Terms.*:TermTable.*:Symmetry.*:*.MirrorMapMatchesPhysics:"
                       "PhysicsMujoco.AMirroredStateHasAMirroredFuture")


def show_6(proof):
    """One FastSAC update against finite differences in double precision; C51 keeps its mass."""
    proof.native_tests("*FastSac*:*C51*")


def show_7(proof):
    """The pool keeps 95 % of a bare loop's rate; the update step costs at most 15 % of physics."""
    proof.must_run(ROOT / "tools" / "build")
    physics = proof.must_millrace("bench", "physics", "--json").json()
    proof.check("rounds, interleaved", physics["rounds"] >= 7, physics["rounds"])
    proof.check("median of bare time / our time is at least 0.95", physics["ratio"] >= 0.95,
                f"{physics['ratio']:.3f} (nefc {physics['nefc_mean']:.1f}, "
                f"ncon {physics['ncon_mean']:.1f})")
    train = proof.must_millrace("bench", "train", "g1_walk_flat", "--profile", "laptop",
                                "-s", "env.num_envs=256", "--json").json()
    medians = train["medians"]
    share = medians["update_share_of_physics"]
    proof.check("update body + pack + ingress are at most 15 % of physics", share <= 0.15,
                f"{100 * share:.1f} % ({medians['time/update_ms']:.3f} + "
                f"{medians['time/publish_ms']:.3f} of {medians['time/physics_ms']:.3f} ms a tick)")


def show_8(proof):
    """Host bytes of the replay are the slots only, whatever the capacity."""
    proof.must_run(ROOT / "tools" / "build")
    for capacity in (4096, 65536):
        run = proof.folder / f"capacity-{capacity}"
        proof.must_millrace("train", "cartpole_swingup", "-s", "run.max_ticks=20",
                            "-s", f"replay.capacity_rows={capacity}", "--profile", "laptop",
                            "-s", "env.num_envs=16", "--out", run)
        replay = manifest(run)["replay"]
        expected = replay["ingress_depth"] * 16 * replay["row_bytes"]
        proof.check(f"capacity {capacity}: host bytes = depth x rows x row bytes",
                    replay["host_bytes"] == expected,
                    f"{replay['ingress_depth']} x 16 x {replay['row_bytes']} = {expected}, "
                    f"manifest {replay['host_bytes']}; ring and batches {replay['device_bytes']}")


def refused(proof, finding, *settings):
    result = proof.millrace("preflight", "g1_walk_flat", "--profile", "laptop", "--json",
                            *[part for each in settings for part in ("-s", each)])
    reasons = [each["reason"] for each in result.json()["findings"]
               if each["id"].startswith(finding) and each["verdict"] == "REFUSED"]
    proof.check(f"refused with {finding}", result.code == 3 and len(reasons) == 1,
                f"exit {result.code}: {'; '.join(reasons)}")
    proof.check("the reason holds the numbers",
                any(letter.isdigit() for reason in reasons for letter in reason))
    proof.check("nothing large was allocated", result.peak_bytes < 400 << 20,
                f"peak {result.peak_bytes >> 20} MiB")


def show_9(proof):
    """Impossible plans are refused before any large allocation, with the arithmetic."""
    proof.must_run(ROOT / "tools" / "build")
    refused(proof, "REPLAY_CAN_NEVER_START", "env.num_envs=512", "learner.learning_starts=10",
            "replay.capacity_rows=4096")
    refused(proof, "BATCH_ODD_WITH_SYMMETRY", "learner.batch=511")
    refused(proof, "INGRESS_DEPTH", "replay.ingress_depth=0")
    refused(proof, "REPLAY_CAPACITY_BELOW_IN_FLIGHT", "env.num_envs=512",
            "replay.capacity_rows=1024", "learner.learning_starts=1")
    refused(proof, "BUDGET_", "replay.capacity_rows=1000000000")


def one_line(proof, what, codes, words, *arguments, **options):
    """A bad input: the exit code, one clear line on stderr that holds the words, no stack trace."""
    result = proof.millrace(*arguments, **options)
    lines = [line for line in result.err.splitlines() if line.strip()]
    clear = all(word in result.err + result.out for word in words)
    proof.check(what, result.code in codes and clear and "\tat " not in result.err,
                f"exit {result.code}: {lines[-1] if lines else '(nothing on stderr)'}")


def bad_files(proof):
    folder = proof.folder
    texts = {
        "unknown.yaml": "learner: {bacth: 3}\n",
        "type.yaml": "learner: {batch: abc}\n",
        "number.yaml": "learner: {actor_lr: 1e-4x}\n",
        "good.yaml": "learner: {actor_lr: 1e-4}\n",
        "double.yaml": "seed: 1\nseed: 2\n",
    }
    for name, text in texts.items():
        (folder / name).write_text("task: cartpole_swingup\nalgo: fastsac\n" + text)
    (folder / "deep.yaml").write_text("task: " + "[" * 100_000)
    (folder / "robots").mkdir()
    models = {
        "empty.xml": "<mujoco><worldbody><geom type='plane' size='1 1 1'/></worldbody></mujoco>",
        "outside.xml": "<mujoco><include file='../secret.xml'/></mujoco>",
        "broken.xml": "<mujoco><worldbody><body><geom type='sphere' size='-1'/>",
    }
    for name, text in models.items():
        (folder / "robots" / name).write_text(text)
    (folder / "secret.xml").write_text("<mujoco/>")


def show_10(proof):
    """Bad input: one clear line each, the right exit code, and nothing is lost."""
    proof.must_run(ROOT / "tools" / "build")
    bad_files(proof)
    folder = proof.folder
    task = "cartpole_swingup"
    one_line(proof, "unknown key", (2,), ["learner.bacth", "batch"], "preflight",
             folder / "unknown.yaml")
    one_line(proof, "wrong type", (2,), ["learner.batch", "abc"], "preflight",
             folder / "type.yaml")
    one_line(proof, "not a number, in a file", (2,), ["1e-4x"], "preflight",
             folder / "number.yaml")
    one_line(proof, "a number", (0,), [], "preflight", folder / "good.yaml")
    one_line(proof, "not a number, as an option", (2,), ["1e-4x"], "preflight", task,
             "-s", "learner.actor_lr=1e-4x")
    one_line(proof, "duplicate key", (2,), ["seed"], "preflight", folder / "double.yaml")
    one_line(proof, "100,000 brackets", (2,), ["deep.yaml"], "preflight", folder / "deep.yaml")
    one_line(proof, "missing file", (2,), ["none.yaml"], "preflight", folder / "none.yaml")
    for name, words in (("empty.xml", ["left_hip_pitch_joint", "right_ankle_roll_joint"]),
                        ("outside.xml", ["../secret.xml"]), ("broken.xml", ["broken.xml"])):
        one_line(proof, f"robot file {name}", (2, 3), words, "preflight", "g1_walk_flat",
                 "-s", f"env.model_file={folder / 'robots' / name}")
    bad_disks(proof, task)


def bad_disks(proof, task):
    short = ["-s", "run.max_ticks=200", "-s", "checkpoint.interval_ticks=100",
             "-s", "log.interval_ticks=50", "--profile", "laptop"]
    run = proof.folder / "run"
    proof.must_millrace("train", task, *short, "--out", run)
    before = tree_hash(run)
    one_line(proof, "a run directory that exists", (2,), [str(run)], "train", task, *short,
             "--out", run)
    proof.check("it is untouched", tree_hash(run) == before, f"{len(before)} files")
    one_line(proof, "unwritable --out", (2, 3), ["/proc/run"], "train", task, *short,
             "--out", "/proc/run")

    newest = checkpoints(run)[-1]
    state = newest / "state.safetensors"
    os.truncate(state, state.stat().st_size // 2)
    one_line(proof, "truncated checkpoint: the one before is taken", (0,), [newest.name],
             "resume", run, "--ticks", "100")

    full = proof.folder / "full"
    one_line(proof, "file size limit", (4,), [], "train", task, *short, "--out", full,
             limit_file_bytes=200_000)
    small = proof.folder / "small"
    small.mkdir()
    if proof.run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small).code != 0:
        print("  mounting is not allowed here: no small tmpfs")
        return
    try:
        one_line(proof, "full disk", (4,), ["No space left"], "train", task, *short,
                 "--out", small / "run")
    finally:
        proof.must_run("umount", small)


def show_11(proof):
    """Kill -9 at random moments of 200 checkpoint writes: the newest complete one always loads."""
    proof.must_run(ROOT / "tools" / "mvn", "-B", "-f", ROOT, "-DskipTests", "test-compile",
                   "dependency:build-classpath", f"-Dmdep.outputFile={proof.folder / 'classpath'}")
    classes = [ROOT / "target" / "classes", ROOT / "target" / "test-classes"]
    class_path = ":".join([*map(str, classes), (proof.folder / "classpath").read_text().strip()])
    result = proof.must_run("java", "-cp", class_path,
                            "dev.millrace.checkpoint.CheckpointKillTest", proof.folder / "run",
                            200, 1)
    proof.check("200 kills", result.code == 0, result.out.strip())


def show_12(proof):
    """Ingress, ring and sampler under the thread sanitizer: 10^6 rows, every row checked."""
    proof.must_run(ROOT / "tools" / "sanitize", "thread", "-Dctest.skip=true")
    proof.native_tests("ReplayStress.*", build="target/tsan")
