"""Plays a game of the Arcade Learning Environment with Gymnasium's AtariPreprocessing, for the test `atari_games_are_those_of_gymnasiums_wrapper`: atari.py ID SEED STEPS"""
import struct
import sys

import ale_py
import gymnasium

gymnasium.register_envs(ale_py)
name, seed, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
env = gymnasium.wrappers.AtariPreprocessing(gymnasium.make(name, frameskip=1))
picture, reward, ended = env.reset(seed=seed)[0], 0.0, 0
for step in range(steps):
    sys.stdout.buffer.write(struct.pack("<Bf", ended, reward) + picture.tobytes())
    if ended:
        seed += 1
        env.reset(seed=seed)
    picture, reward, terminated, truncated, _ = env.step(step // 3 * 7 % env.action_space.n)
    ended = terminated + 2 * truncated
