"""The environments of Gradus in Gymnasium's registry."""

import gymnasium

from gradus_rl import _core


def register_envs():
    """Registers `gradus/CartPole-v1` and so on for tasks of Gymnasium, `gradus/NAME-v0` for others, and `gradus/World-v0`, which takes `world=NAME`."""
    ids = {"gradus/World-v0": None}
    for name in _core.worlds():
        world = _core.World(name)
        id = world.gymnasium_id or f"{name}-v0"
        ids[f"gradus/{id.split('/')[-1]}"] = world
    for id, world in ids.items():
        if id not in gymnasium.registry:
            gymnasium.register(
                id,
                entry_point="gradus_rl.world:GradusEnv",
                vector_entry_point="gradus_rl.vector:GradusVectorEnv",
                max_episode_steps=world and world.max_episode_steps,
                reward_threshold=world and world.solved_at,
                kwargs={"world": world.name} if world else {},
            )
