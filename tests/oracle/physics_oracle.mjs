// Steps the trajectories that PhysicsOracle.RecordsTrajectories wrote once more, with MuJoCo's
// official WebAssembly build, and compares every qpos and qvel.
//
// usage: node physics_oracle.mjs MODEL.xml GTEST_REPORT.json [BOUND]
// Exit code 0 if the largest difference is below BOUND (1e-6), 1 if not.
import { readFileSync } from "node:fs";
import load from "@mujoco/mujoco";

const [modelPath, reportPath, boundText = "1e-6"] = process.argv.slice(2);
const bound = Number(boundText);

const report = JSON.parse(readFileSync(reportPath, "utf8"));
const recorded = report.testsuites[0].testsuite[0];
const trajectories = JSON.parse(recorded.trajectories);

const mujoco = await load();
const model = mujoco.MjModel.from_xml_string(readFileSync(modelPath, "utf8"));
const data = new mujoco.MjData(model);

function largestDifference(actual, expected) {
  let largest = 0;
  for (let i = 0; i < expected.length; ++i) {
    const difference = Math.abs(actual[i] - expected[i]);
    if (!(difference <= largest)) largest = difference; // NaN wins
  }
  return largest;
}

let worst = 0;
for (const trajectory of trajectories) {
  mujoco.mj_resetData(model, data);
  data.qpos.set(trajectory.qpos0);
  data.qvel.set(trajectory.qvel0);
  data.ctrl.set(trajectory.ctrl);
  let position = 0;
  let velocity = 0;
  for (let step = 0; step < trajectory.qpos.length; ++step) {
    mujoco.mj_step(model, data);
    position = Math.max(position, largestDifference(data.qpos, trajectory.qpos[step]));
    velocity = Math.max(velocity, largestDifference(data.qvel, trajectory.qvel[step]));
  }
  console.log(
    `seed ${trajectory.seed}: ${trajectory.qpos.length} steps, largest difference ` +
      `qpos ${position.toExponential(2)}, qvel ${velocity.toExponential(2)}`,
  );
  worst = Math.max(worst, position, velocity);
}
const passes = worst < bound;
console.log(
  `${passes ? "PASS" : "FAIL"}: MuJoCo ${recorded.mujoco} here against ` +
    `${mujoco.mj_versionString()} (WebAssembly): ${worst.toExponential(2)}, bound ${bound}`,
);
process.exit(passes ? 0 : 1);
