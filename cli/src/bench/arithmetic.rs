//! The number of floating-point operations that an environment step of an agent requires.

use gradus::agents::Work;
use gradus::envs::EnvSpec;
use gradus::nets::{Activation, Cell, NetworkConfig, Trunk};

use gradus::config::Network;
use gradus::{Config, Error};

/// The cost of one environment step of an agent, including acting and learning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arithmetic {
    /// Floating-point operations of the networks' matrix products; a multiply-add counts as two.
    pub products: f64,
    /// Evaluations of tanh.
    pub tanh: f64,
    /// Evaluations of exp: the softmax of discrete actions, and the probability ratio of the new to the old policy.
    pub exp: f64,
    /// Evaluations of ln, in the softmax.
    pub ln: f64,
    /// Parameters updated by the optimiser.
    pub moved: f64,
}

impl Arithmetic {
    /// Counts the operations that the formulas require for `config` in `world`, and the derivatives of the observations, which nobody needs (1 to 2 % with four numbers and two
    /// layers of 64). An engine may perform more.
    pub fn of(config: &Config, world: &EnvSpec) -> Result<Self, Error> {
        let expected = "ppo, dqn, ddpg, td3 or sac, with perceptrons";
        let no = |got: &str| Error::Parse { what: "roofline".into(), expected: expected.into(), got: got.into() };
        let Network::Perceptron(network) = &config.network else { return Err(no(&config.environment)) };
        if network.trunk != Trunk::none() || network.cell != Cell::None {
            return Err(no(&format!("a network of {} with layers for images or a memory", config.environment)));
        }
        let env = world.env();
        let (width, algorithm) = (env.observation_space().width(), &config.algorithm);
        // number of outputs of the actor's head per row, and how many of them go through a softmax
        let (actions, softmax) = match env.action_space() {
            space if space.mask_width() > 0 => (space.mask_width(), space.mask_width()),
            space => (space.width(), 0),
        };
        let spaces = (width, actions);
        let (epochs, steps) = match algorithm.work(config.envs).ok_or_else(|| no(&config.agent))? {
            Work::ActorCritic { epochs, steps } => (epochs, steps),
            work @ Work::ActionValues { .. } => return Ok(Self::of_action_values(work, network, spaces)),
            work @ Work::ActorAndCritics { .. } => return Ok(Self::of_actor_critic(work, network, spaces)),
        };
        let mut widths = vec![width];
        widths.extend(&network.hidden);
        let trunks = if network.shared { 1 } else { 2 };
        let hidden = trunks * network.hidden.iter().sum::<usize>();
        let weights = trunks * widths.windows(2).map(|pair| pair[0] * pair[1]).sum::<usize>() + widths[widths.len() - 1] * (actions + 1);
        let deviations = match softmax == 0 {
            true if network.gsde => widths[widths.len() - 1] * actions,
            true => actions,
            false => 0,
        };
        let parameters = weights + hidden + actions + 1 + deviations;
        // acting: one forward pass; every epoch: a forward pass and a backward pass, which costs as much as two forward passes
        let (epochs, passes) = (epochs as f64, 1.0 + epochs as f64);
        let is_tanh = network.activation == Activation::Tanh;
        Ok(Self {
            products: 2.0 * weights as f64 * (1.0 + 3.0 * epochs),
            tanh: if is_tanh { hidden as f64 * passes } else { 0.0 },
            exp: softmax as f64 * passes + epochs,
            ln: if softmax > 0 { passes } else { 0.0 },
            moved: parameters as f64 * steps,
        })
    }
}

impl Arithmetic {
    /// Counts the operations of an agent with action values. An update has a forward and a backward pass over the sample, and a forward pass
    /// of the target network over the next observations; with double Q-learning, also one of the network.
    fn of_action_values(work: Work, network: &NetworkConfig, (width, actions): (usize, usize)) -> Self {
        let Work::ActionValues { updates, batch_size, next, dueling } = work else { unreachable!("action values") };
        let hidden = &network.hidden;
        let (own, shared) = match hidden.split_last() {
            Some((own, shared)) if dueling => (std::slice::from_ref(own), shared),
            _ => (&[][..], &hidden[..]),
        };
        let weights = |widths: &[usize]| widths.windows(2).map(|pair| pair[0] * pair[1]).sum::<usize>();
        let trunk = [&[width][..], shared].concat();
        let features = trunk[trunk.len() - 1];
        let head = |outputs: usize| weights(&[&[features][..], own, &[outputs]].concat());
        let weights = (weights(&trunk) + head(actions) + if dueling { head(1) } else { 0 }) as f64;
        let (passes, rows) = (3.0 + next as f64, updates * batch_size as f64);
        // the hidden layers of the dueling streams are counted twice
        let units = (hidden.iter().sum::<usize>() + own.iter().sum::<usize>()) as f64;
        let outputs = (actions + usize::from(dueling)) as f64;
        let is_tanh = network.activation == Activation::Tanh;
        Self {
            products: 2.0 * weights * (1.0 + passes * rows),
            tanh: if is_tanh { units * (1.0 + (passes - 2.0) * rows) } else { 0.0 },
            exp: 0.0,
            ln: 0.0,
            moved: (weights + units + outputs) * updates,
        }
    }

    /// Counts the operations of an agent with an actor and critics of its actions. An update has:
    ///
    /// - a forward pass of an actor and of the target critics over the next observations,
    /// - a forward and a backward pass of the critics over the sample,
    /// - for a share of the updates, a forward and a backward pass of the actor, a forward pass of the critics that its loss reads, and a
    ///   backward pass to the action, without the gradient of the weights, of the critic on which the loss depends in a row.
    fn of_actor_critic(work: Work, network: &NetworkConfig, (width, actions): (usize, usize)) -> Self {
        let Work::ActorAndCritics { updates, batch_size, critics, criticised, share, is_random } = work else {
            unreachable!("an actor and critics")
        };
        let weights = |inputs: usize, outputs: usize| {
            let widths = [&[inputs][..], &network.hidden, &[outputs]].concat();
            widths.windows(2).map(|pair| pair[0] * pair[1]).sum::<usize>() as f64
        };
        let outputs = if is_random && !network.gsde { 2 * actions } else { actions };
        let (actor, critic, critics) = (weights(width, outputs), weights(width + actions, 1), critics as f64);
        let (criticised, rows) = (criticised as f64, updates * batch_size as f64);
        let products = actor + 4.0 * critics * critic + share * (3.0 * actor + (criticised + 1.0) * critic);
        let units = network.hidden.iter().sum::<usize>() as f64;
        // every action has a tanh; its log-probability has the deviation, and ln(1 + exp)
        let chosen = 1.0 + rows * (1.0 + share);
        let random = if is_random { actions as f64 } else { 0.0 };
        let is_tanh = network.activation == Activation::Tanh;
        let hidden = if is_tanh { units * (chosen + rows * (2.0 * critics + share * criticised)) } else { 0.0 };
        let deviations = if network.gsde { network.hidden.last().copied().unwrap_or(width) * actions } else { 0 };
        let of_actor = actor + units + (outputs + deviations) as f64;
        Self {
            products: 2.0 * (actor + products * rows),
            tanh: hidden + chosen * actions as f64,
            exp: 2.0 * random * chosen,
            ln: random * chosen,
            moved: updates * (share * of_actor + critics * (critic + units + 1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::with_envs;
    use super::*;

    fn arithmetic(agent: &str, environment: &str, settings: &[&str]) -> Result<Arithmetic, Error> {
        let config = Config::preset(agent, environment, None)?.with_setting("envs=4")?;
        let config = settings.iter().try_fold(config, |config, setting| config.with_setting(setting))?;
        Arithmetic::of(&config, &config.world()?)
    }

    #[test]
    fn the_arithmetic_of_cleanrls_configuration_matches_a_count_by_hand() {
        let config = Config::preset("ppo", "cartpole", Some("cleanrl")).unwrap();
        // 2 x (4 x 64 + 64 x 64) + 64 x 3 = 8896 weights, 9155 parameters; 16 minibatches for 512 decisions
        let expected = Arithmetic { products: 13.0 * 2.0 * 8896.0, tanh: 5.0 * 256.0, exp: 14.0, ln: 5.0, moved: 9155.0 / 32.0 };
        for envs in [4, 64, 2048] {
            let config = with_envs(config.clone(), envs);
            let found = Arithmetic::of(&config, &config.world().unwrap()).unwrap();
            // the number of minibatches is constant, so the optimiser's work per step falls as 1 / number of environments
            assert_eq!(found, Arithmetic { moved: expected.moved * 4.0 / envs as f64, ..expected });
        }
    }

    #[test]
    fn the_parameter_count_matches_the_policy() {
        // one minibatch, one epoch, one decision of one environment: every parameter is updated once per step
        let plain = ["envs=1", "ppo.rollout_steps=1", "ppo.minibatch_size=1", "ppo.epochs=1"];
        let networks: [&[&str]; 4] =
            [&[], &["network.hidden=[]"], &["network.shared=true", "network.hidden=[8,24]"], &["network.gsde=true", "network.hidden=[40]"]];
        for (environment, networks) in [("cartpole", &networks[..3]), ("pendulum", &networks[..])] {
            for network in networks {
                let settings = [&plain[..], network].concat();
                let config = Config::preset("ppo", environment, None).unwrap();
                let config = settings.iter().try_fold(config, |config, setting| config.with_setting(setting)).unwrap();
                let policy = config.policy(&config.world().unwrap()).unwrap();
                let parameters: usize = policy.save().values().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
                let found = Arithmetic::of(&config, &config.world().unwrap()).unwrap();
                assert_eq!(found.moved, parameters as f64, "{environment} {network:?}");
            }
        }
    }

    /// The products of a row, in forward passes of about equal networks: SAC 15, TD3 with two critics 11.5, DDPG 10.
    #[test]
    fn the_arithmetic_of_actors_and_critics_matches_a_count_by_hand() {
        let of = |agent: &str, settings: &[&str]| {
            let config = Config::preset(agent, "pendulum", None).unwrap();
            let config = settings.iter().try_fold(config, |config, setting| config.with_setting(setting)).unwrap();
            (Arithmetic::of(&config, &config.world().unwrap()).unwrap(), config)
        };
        let (actor, critic) = (3.0 * 256.0 + 65_536.0 + 256.0 * 2.0, 4.0 * 256.0 + 65_536.0 + 256.0);
        let sac = of("sac", &[]).0;
        assert_eq!(sac.products, 2.0 * (actor + 256.0 * (4.0 * actor + 11.0 * critic)));
        assert_eq!((sac.tanh, sac.exp, sac.ln), (513.0, 1026.0, 513.0));
        let (actor, critic) = (3.0 * 400.0 + 120_000.0 + 300.0, 4.0 * 400.0 + 120_000.0 + 300.0);
        assert_eq!(of("td3", &[]).0.products, 2.0 * (actor + 256.0 * (2.5 * actor + 9.0 * critic)));
        assert_eq!(of("ddpg", &[]).0.products, 2.0 * (actor + 256.0 * (4.0 * actor + 6.0 * critic)));
        let tanh = of("td3", &["network.activation=tanh", "td3.policy_delay=1"]).0;
        assert_eq!(tanh.tanh, 700.0 * (513.0 + 256.0 * 5.0) + 513.0);
        for (agent, settings) in [("sac", &[][..]), ("ddpg", &[]), ("td3", &["td3.policy_delay=1"]), ("sac", &["network.gsde=true"])] {
            let (found, config) = of(agent, settings);
            let built = config.build(&config.world().unwrap()).unwrap();
            let gradus::agents::AgentKind::ActorAndCritics { head, .. } = built else { panic!("an actor and critics") };
            let network = config.network.q_actor_critic(head, &config.world().unwrap(), (1, config.device), &config.torch).unwrap();
            let parameters: usize = network.save().values().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
            assert_eq!(found.moved, parameters as f64, "{agent} {settings:?}");
        }
    }

    #[test]
    fn functions_that_a_network_does_not_use_are_not_counted() {
        let relu = arithmetic("ppo", "pendulum", &["network.activation=relu", "ppo.epochs=3"]).unwrap();
        assert_eq!((relu.tanh, relu.exp, relu.ln), (0.0, 3.0, 0.0));
        let error = arithmetic("a2c", "cartpole", &[]).unwrap_err();
        assert_eq!(error.to_string(), "roofline: expected ppo, dqn, ddpg, td3 or sac, with perceptrons, got a2c");
        for (agent, world) in [("ppo", "sort"), ("ppo", "breakout"), ("dqn", "breakout"), ("ppo", "cartpole-masked")] {
            assert!(arithmetic(agent, world, &[]).is_err(), "{agent} {world}");
        }
    }
}
