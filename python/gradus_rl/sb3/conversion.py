"""Models of Stable-Baselines3 and of Gradus, converted into each other with PyTorch."""

import gymnasium
import numpy as np

from gradus_rl.sb3.arguments import ArgumentError
from gradus_rl.spaces import is_image

POLICY_KWARGS = ("net_arch", "activation_fn", "ortho_init", "log_std_init")


def _names(model):
    """Returns triples: our name of a parameter, Stable-Baselines3's names, and the part of ours that theirs is."""
    ours = model.get_parameters()["policy"]
    last = max(int(name.split(".")[-2]) for name in ours if name.endswith("weight"))
    triples = []
    for name in ours:
        head, _, kind = name.rpartition(".")
        if name == "actor.log_std":
            triples.append((name, ["log_std"], None))
            continue
        network, _, layer = head.rpartition(".")
        is_last = int(layer) == last
        if model.agent in ("ppo", "a2c"):
            net = {"actor": ("policy_net", "action_net"), "critic": ("value_net", "value_net")}[network]
            triples.append((name, [f"{net[1]}.{kind}" if is_last else f"mlp_extractor.{net[0]}.{layer}.{kind}"], None))
        elif model.agent == "dqn":
            triples.append((name, [f"{net}.q_net.{layer}.{kind}" for net in ("q_net", "q_net_target")], None))
        elif network.startswith("critic."):
            triples.append((name, [f"{net}.qf{network[7:]}.{layer}.{kind}" for net in ("critic", "critic_target")], None))
        elif model.agent == "sac":
            half = len(ours[name]) // 2
            if is_last:
                triples += [(name, [f"actor.mu.{kind}"], slice(0, half)), (name, [f"actor.log_std.{kind}"], slice(half, None))]
            else:
                triples.append((name, [f"actor.latent_pi.{layer}.{kind}"], None))
        else:
            triples.append((name, [f"{net}.mu.{layer}.{kind}" for net in ("actor", "actor_target")], None))
    return triples


def _is_mlp(model):
    if model.policy_class != "MlpPolicy":
        raise ArgumentError(f"policy: expected MlpPolicy, whose layers are equal in both libraries, got {model.policy_class}")
    if model.observation_space is not None and is_image(model.observation_space):
        raise ArgumentError(f"env: expected observations that are no images, because Stable-Baselines3 reads their channels first, got {model.observation_space}")


def to_sb3(model, env):
    """Returns a model of Stable-Baselines3."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.noise import NormalActionNoise

    _is_mlp(model)
    if env is None:
        env = gymnasium.make("gradus/World-v0", world=model._world) if model._world else model.get_env()
    arguments = {name: getattr(model, name) for name in model._names if hasattr(model, name)} | {"device": "cpu"}
    if arguments.get("action_noise") is not None:
        std = np.broadcast_to(arguments["action_noise"]._sigma, _size(model)).astype(float)
        arguments["action_noise"] = NormalActionNoise(np.zeros_like(std), std)
    kwargs = dict(model.policy_kwargs)
    if isinstance(kwargs.get("activation_fn"), str):
        kwargs["activation_fn"] = getattr(torch.nn, kwargs["activation_fn"])
    theirs = getattr(stable_baselines3, type(model).__name__)(model.policy_class, env, **{**arguments, "policy_kwargs": kwargs or None})
    ours, state = model.get_parameters()["policy"], theirs.policy.state_dict()
    for name, others, part in _names(model):
        for other in others:
            state[other] = torch.from_numpy(ours[name] if part is None else ours[name][part])
    theirs.policy.load_state_dict(state)
    return theirs


def _size(model):
    """Returns the number of an action's components."""
    return int(np.prod(model.action_space.shape))


def from_sb3(cls, model, env, kwargs):
    """Returns a model of Gradus."""
    if not hasattr(model, "policy"):
        import stable_baselines3

        model = getattr(stable_baselines3, cls.__name__).load(model, device="cpu")
    if type(model).__name__ != cls.__name__:
        raise ArgumentError(f"model: expected one of Stable-Baselines3's {cls.__name__}, got {type(model).__name__}")
    changed = [key for key, value in (model.policy_kwargs or {}).items() if value and (key.startswith("features_extractor") or key in ("squash_output", "use_expln"))]
    if changed and not all(getattr(value, "__name__", "") == "FlattenExtractor" for value in map(model.policy_kwargs.get, changed)):
        raise ArgumentError(f"model: expected policy_kwargs that Gradus has ({', '.join(POLICY_KWARGS)}), got {', '.join(changed)}")
    kwargs.setdefault("policy_kwargs", {key: value for key, value in (model.policy_kwargs or {}).items() if key in POLICY_KWARGS})
    env = model.get_env() if env is None else env
    if env is None:
        raise ArgumentError("env: expected one, because the model has none, got None")
    own = cls("MlpPolicy", env, **kwargs)
    _is_mlp(own)
    state = {name: tensor.detach().cpu().numpy() for name, tensor in model.policy.state_dict().items()}
    parameters = {name: array.copy() for name, array in own.get_parameters()["policy"].items()}
    for name, theirs, part in _names(own):
        array = state.get(theirs[0])
        if array is None or array.shape != (parameters[name] if part is None else parameters[name][part]).shape:
            raise ArgumentError(f"model: expected a parameter {theirs[0]} with the shape {parameters[name].shape}, got {None if array is None else array.shape}")
        if part is None:
            parameters[name] = array
        else:
            parameters[name][part] = array
    own.set_parameters({"policy": parameters})
    return own
