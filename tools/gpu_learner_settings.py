"""What the scripts that measure learners on a GPU machine measure: arguments of `bench learner`."""

# sac_torch.py's mlp:256x3:1024: critics and actor in every update, no mirrored rows.
PLAIN_SAC = {"critic": "scalar", "network": "plain", "actor_hidden": 256, "critic_hidden": 256,
             "batch": 1024, "policy_frequency": 1, "symmetry": "false"}


def arguments(config, learner):
    return [config, *(part for key, value in learner.items()
                      for part in ("-s", f"learner.{key}={value}"))]


# FastSAC at batch 8,192, FlashSAC at batch 2,048, and plain SAC, three layers of 256, at 1,024.
LEARNERS = {"learner": arguments("g1_walk_flat", {}),
            "flashsac": arguments("g1_walk_flat_flashsac", {"batch": 2048}),
            "plain_sac": arguments("g1_walk_flat", PLAIN_SAC)}
