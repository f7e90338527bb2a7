"""PPO and A2C."""

import warnings
from typing import Any

from gradus_rl.sb3.arguments import ArgumentError, Schedule, number, positive, refuse, schedule
from gradus_rl.sb3.base import BaseAlgorithm

ON_POLICY = [
    "network.hidden=[64,64]", "network.activation=tanh", "network.shared=false", "network.orthogonal=true", "network.trunk=none", "network.cell=none",
    "optimiser.epsilon=1e-5", "optimiser.critic_learning_rate_ratio=1", "optimiser.weight_decay=0", "optimiser.clip_per_group=false", "optimiser.warmup=0",
    "reference.coefficient=0", "network.log_std_init=0", "wrappers.normalise_observations=false", "wrappers.normalise_rewards=false", "wrappers.clip_reward=inf", "wrappers.reward_scale=1", "wrappers.time_aware=false",
]  # fmt: skip


class OnPolicyAlgorithm(BaseAlgorithm):
    """What PPO and A2C have in common."""

    def _common(self):
        refuse(rollout_buffer_class=(self.rollout_buffer_class, [None]), rollout_buffer_kwargs=(self.rollout_buffer_kwargs, [None]))
        rate, falls = schedule("learning_rate", self.learning_rate)
        if self.use_sde:
            if self.action_space is not None and not hasattr(self.action_space, "low"):
                raise ArgumentError(f"use_sde: expected False for the action space {self.action_space}, because only Box has state-dependent noise, got True")
            noise = ["network.gsde=true", f"network.gsde_sample_every={max(self.sde_sample_freq, 0)}"]
        else:
            noise = ["network.gsde=false"]
        return [
            *ON_POLICY, f"optimiser.learning_rate={rate!r}", f"optimiser.schedule={falls}", f"optimiser.max_grad_norm={number(self.max_grad_norm)}", *noise,
            f"{self.agent}.rollout_steps={self.n_steps}", f"{self.agent}.gamma={self.gamma}", f"{self.agent}.gae_lambda={self.gae_lambda}",
            f"{self.agent}.truncated=bootstraps", f"{self.agent}.normalise_advantages={number(bool(self.normalize_advantage))}",
            f"{self.agent}.entropy_coefficient={float(self.ent_coef)}",
            f"{self.agent}.value_coefficient={2 * float(self.vf_coef)}",  # ours multiplies half the squared error
        ]  # fmt: skip


class PPO(OnPolicyAlgorithm):
    """Proximal policy optimisation (arXiv 1707.06347)."""

    agent = "ppo"

    def __init__(
        self, policy: Any, env: Any, learning_rate: float | Schedule = 3e-4, n_steps: int = 2048, batch_size: int = 64, n_epochs: int = 10,
        gamma: float = 0.99, gae_lambda: float = 0.95, clip_range: float | Schedule = 0.2, clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool = True, ent_coef: float = 0.0, vf_coef: float = 0.5, max_grad_norm: float = 0.5, use_sde: bool = False,
        sde_sample_freq: int = -1, rollout_buffer_class: None = None, rollout_buffer_kwargs: None = None, target_kl: float | None = None,
        stats_window_size: int = 100, tensorboard_log: Any = None, policy_kwargs: dict[str, Any] | None = None, verbose: int = 0, seed: int | None = None,
        device: str = "auto", _init_setup_model: bool = True,
    ) -> None:  # fmt: skip
        self._begin(locals())

    def _settings(self, n_envs):
        clip, clip_schedule = schedule("clip_range", self.clip_range)
        rollout = self.n_steps * n_envs
        batch_size = min(self.batch_size, rollout) if self.observation_space is not None and rollout > 0 else self.batch_size
        return [
            *self._common(), "optimiser.rule=adam", "ppo.episodes_per_env=0", f"ppo.minibatch_size={batch_size}", f"ppo.epochs={self.n_epochs}",
            f"ppo.clip={clip}", f"ppo.clip_schedule={clip_schedule}", f"ppo.clip_value={positive('clip_range_vf', self.clip_range_vf)}",
            "ppo.normalise_over=minibatch", f"ppo.target_kl={number(self.target_kl)}", "ppo.kl_stop=minibatch", "ppo.kl_coefficient=0", "ppo.dual_clip=inf",
            "ppo.huber=inf", "ppo.whiten_rewards=false", "ppo.recompute_advantages=false",
        ]  # fmt: skip


    def _warn(self):
        rollout = self.n_steps * self.n_envs
        if self.batch_size > rollout:
            warnings.warn(f"batch_size: expected at most {rollout}, the steps of a rollout (n_steps x environments), got {self.batch_size}; a minibatch is a whole rollout", stacklevel=3)


class A2C(OnPolicyAlgorithm):
    """Advantage actor-critic (Mnih et al., arXiv 1602.01783, without threads)."""

    agent = "a2c"
    log_every = 100

    def __init__(
        self, policy: Any, env: Any, learning_rate: float | Schedule = 7e-4, n_steps: int = 5, gamma: float = 0.99, gae_lambda: float = 1.0,
        ent_coef: float = 0.0, vf_coef: float = 0.5, max_grad_norm: float = 0.5, rms_prop_eps: float = 1e-5, use_rms_prop: bool = True, use_sde: bool = False,
        sde_sample_freq: int = -1, rollout_buffer_class: None = None, rollout_buffer_kwargs: None = None, normalize_advantage: bool = False,
        stats_window_size: int = 100, tensorboard_log: Any = None, policy_kwargs: dict[str, Any] | None = None, verbose: int = 0, seed: int | None = None,
        device: str = "auto", _init_setup_model: bool = True,
    ) -> None:  # fmt: skip
        self._begin(locals())

    def _settings(self, n_envs):
        rule, epsilon = ("rmsprop", self.rms_prop_eps) if self.use_rms_prop else ("adam", 1e-5)
        return [*self._common(), f"optimiser.rule={rule}", f"optimiser.epsilon={epsilon}"]
