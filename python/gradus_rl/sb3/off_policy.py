"""DQN, DDPG, TD3 and SAC."""

from typing import Any

import numpy as np

from gradus_rl.sb3.arguments import ArgumentError, Schedule, number, refuse, schedule
from gradus_rl.sb3.base import BaseAlgorithm


class OffPolicyAlgorithm(BaseAlgorithm):
    """What agents with a replay buffer have in common."""

    log_every, logs_episodes = 4, True

    def _common(self, n_envs):
        refuse(replay_buffer_class=(self.replay_buffer_class, [None]), replay_buffer_kwargs=(self.replay_buffer_kwargs, [None]))
        rate, falls = schedule("learning_rate", self.learning_rate)
        every = self.train_freq
        if isinstance(every, (tuple, list)):
            every, unit = every
            if unit != "step":
                raise ArgumentError(f"train_freq: expected a number of steps, got {self.train_freq}")
        for name, count, most in (("train_freq", every, None), ("gradient_steps", self.gradient_steps, -1)):
            if not isinstance(count, (int, np.integer)) or (count < 1 and count != most):
                raise ArgumentError(f"{name}: expected a whole number from 1 up{' or -1' if most else ''}, got {count}")
        updates = 1.0 if self.gradient_steps == -1 else self.gradient_steps / (every * n_envs)  # for each step of an environment
        agent = self.agent
        return [
            f"{agent}.buffer_size={self.buffer_size}", f"{agent}.learning_starts={self.learning_starts}", f"{agent}.batch_size={self.batch_size}",
            f"{agent}.tau={float(self.tau)}", f"{agent}.gamma={self.gamma}", f"{agent}.rollout_steps={every}", f"{agent}.updates_per_step={updates!r}",
            f"{agent}.n_step={self.n_steps}", f"{agent}.priority_exponent=0", f"optimiser.learning_rate={rate!r}", f"optimiser.schedule={falls}",
            "optimiser.rule=adam", "optimiser.epsilon=1e-8", "optimiser.weight_decay=0", "optimiser.warmup=0", "optimiser.critic_learning_rate_ratio=1",
            "optimiser.clip_per_group=false", "network.cell=none", "network.trunk=none", "network.orthogonal=false", "network.activation=relu",
            "network.layer_norm=false", "network.shared=false", "network.gsde=false", "network.log_std_init=0", "wrappers.normalise_observations=false", "wrappers.normalise_rewards=false",
            "wrappers.clip_reward=inf", "wrappers.reward_scale=1", "wrappers.time_aware=false",
        ]  # fmt: skip

    def _noise(self):
        """Returns the settings that `action_noise` is."""
        if self.action_noise is None:
            return [f"{self.agent}.action_noise_std=0"]
        std = getattr(self.action_noise, "_sigma", None)
        if std is None or hasattr(self.action_noise, "_theta") or not np.allclose(std, np.ravel(std)[0]) or not np.allclose(getattr(self.action_noise, "_mu", 0), 0):
            raise ArgumentError(f"action_noise: expected None, or normal noise with mean 0 and one standard deviation, got {self.action_noise}")
        return [f"{self.agent}.action_noise=normal", f"{self.agent}.action_noise_std={float(np.ravel(std)[0])}"]


class DQN(OffPolicyAlgorithm):
    """Deep Q-learning (Mnih et al., 2015)."""

    agent = "dqn"

    def __init__(
        self, policy: Any, env: Any, learning_rate: float | Schedule = 1e-4, buffer_size: int = 1_000_000, learning_starts: int = 100, batch_size: int = 32,
        tau: float = 1.0, gamma: float = 0.99, train_freq: int | tuple[int, str] = 4, gradient_steps: int = 1, replay_buffer_class: None = None,
        replay_buffer_kwargs: None = None, optimize_memory_usage: bool = False, n_steps: int = 1, target_update_interval: int = 10_000,
        exploration_fraction: float = 0.1, exploration_initial_eps: float = 1.0, exploration_final_eps: float = 0.05, max_grad_norm: float = 10.0,
        stats_window_size: int = 100, tensorboard_log: Any = None, policy_kwargs: dict[str, Any] | None = None, verbose: int = 0, seed: int | None = None,
        device: str = "auto", _init_setup_model: bool = True,
    ) -> None:  # fmt: skip
        self._begin(locals())

    def _settings(self, n_envs):
        return [
            *self._common(n_envs), f"optimiser.max_grad_norm={number(self.max_grad_norm)}", "network.hidden=[64,64]", "dqn.loss=huber", "dqn.double=false",
            "dqn.dueling=false", f"dqn.target_update_interval={self.target_update_interval}", f"dqn.exploration_fraction={self.exploration_fraction}",
            f"dqn.exploration_initial_eps={self.exploration_initial_eps}", f"dqn.exploration_final_eps={self.exploration_final_eps}",
        ]  # fmt: skip


class DDPG(OffPolicyAlgorithm):
    """Deep deterministic policy gradients (Lillicrap et al., arXiv 1509.02971)."""

    agent = "ddpg"

    def __init__(
        self, policy: Any, env: Any, learning_rate: float | Schedule = 1e-3, buffer_size: int = 1_000_000, learning_starts: int = 100, batch_size: int = 256,
        tau: float = 0.005, gamma: float = 0.99, train_freq: int | tuple[int, str] = 1, gradient_steps: int = 1, action_noise: Any = None,
        replay_buffer_class: None = None, replay_buffer_kwargs: None = None, optimize_memory_usage: bool = False, n_steps: int = 1,
        tensorboard_log: Any = None, policy_kwargs: dict[str, Any] | None = None, verbose: int = 0, seed: int | None = None, device: str = "auto",
        _init_setup_model: bool = True,
    ) -> None:  # fmt: skip
        self._begin(locals())

    def _settings(self, n_envs):
        return [*self._common(n_envs), *self._noise(), "optimiser.max_grad_norm=inf", "network.hidden=[400,300]"]


class TD3(OffPolicyAlgorithm):
    """Twin delayed deep deterministic policy gradients (Fujimoto et al., arXiv 1802.09477)."""

    agent = "td3"

    def __init__(
        self, policy: Any, env: Any, learning_rate: float | Schedule = 1e-3, buffer_size: int = 1_000_000, learning_starts: int = 100, batch_size: int = 256,
        tau: float = 0.005, gamma: float = 0.99, train_freq: int | tuple[int, str] = 1, gradient_steps: int = 1, action_noise: Any = None,
        replay_buffer_class: None = None, replay_buffer_kwargs: None = None, optimize_memory_usage: bool = False, n_steps: int = 1, policy_delay: int = 2,
        target_policy_noise: float = 0.2, target_noise_clip: float = 0.5, stats_window_size: int = 100, tensorboard_log: Any = None,
        policy_kwargs: dict[str, Any] | None = None, verbose: int = 0, seed: int | None = None, device: str = "auto", _init_setup_model: bool = True,
    ) -> None:  # fmt: skip
        self._begin(locals())

    def _settings(self, n_envs):
        return [
            *self._common(n_envs), *self._noise(), "optimiser.max_grad_norm=inf", "network.hidden=[400,300]", f"td3.policy_delay={self.policy_delay}",
            f"td3.target_policy_noise={self.target_policy_noise}", f"td3.target_noise_clip={self.target_noise_clip}",
        ]  # fmt: skip


class SAC(OffPolicyAlgorithm):
    """Soft actor-critic (Haarnoja et al., arXiv 1812.05905)."""

    agent = "sac"

    def __init__(
        self, policy: Any, env: Any, learning_rate: float | Schedule = 3e-4, buffer_size: int = 1_000_000, learning_starts: int = 100, batch_size: int = 256,
        tau: float = 0.005, gamma: float = 0.99, train_freq: int | tuple[int, str] = 1, gradient_steps: int = 1, action_noise: Any = None,
        replay_buffer_class: None = None, replay_buffer_kwargs: None = None, optimize_memory_usage: bool = False, n_steps: int = 1,
        ent_coef: float | str = "auto", target_update_interval: int = 1, target_entropy: float | str = "auto", use_sde: bool = False,
        sde_sample_freq: int = -1, use_sde_at_warmup: bool = False, stats_window_size: int = 100, tensorboard_log: Any = None,
        policy_kwargs: dict[str, Any] | None = None, verbose: int = 0, seed: int | None = None, device: str = "auto", _init_setup_model: bool = True,
    ) -> None:  # fmt: skip
        self._begin(locals())

    def _settings(self, n_envs):
        refuse(action_noise=(self.action_noise, [None]), target_update_interval=(self.target_update_interval, [1]), use_sde=(self.use_sde, [False]))
        is_auto = isinstance(self.ent_coef, str) and self.ent_coef.startswith("auto")
        try:
            first = float((self.ent_coef.split("_")[1] if "_" in self.ent_coef else 1.0) if is_auto else self.ent_coef)
        except (TypeError, ValueError):
            raise ArgumentError(f"ent_coef: expected a number, auto or auto_NUMBER, got {self.ent_coef}") from None
        try:
            self.target_entropy == "auto" or float(self.target_entropy)
        except (TypeError, ValueError):
            raise ArgumentError(f"target_entropy: expected a number or auto, got {self.target_entropy}") from None
        return [
            *self._common(n_envs), "optimiser.max_grad_norm=inf", "network.hidden=[256,256]", f"sac.ent_coef={first}", f"sac.auto_ent_coef={number(is_auto)}",
        ]  # fmt: skip
