//! [`SingleEnv`] plays the same episodes as a vector of one environment, in every world and with every autoreset mode.

use gradus_base::random::{Purpose, Stream};
use gradus_envs::{Action, Actions, Autoreset, Env, EnvError, EnvSpec, Space, Step, make, registry};

/// Steps a single environment and a vector of one with the same random actions, and compares everything that both show.
fn compare(world: &EnvSpec, autoreset: Autoreset) {
    let name = &world.name;
    let (mut one, mut many) = (world.single_with(3, autoreset).unwrap(), world.vec_env_with(0..1, 3, autoreset).unwrap());
    let mut random = Stream::new(1, Purpose::Action, 0);
    let mut ended = 0;
    for step in 0..400 {
        let at = format!("{name}, {autoreset:?}, step {step}");
        assert_eq!(one.observation(), many.observation_rows(), "{at}");
        assert_eq!(one.action_mask(), many.action_masks(), "{at}");
        let (discrete, continuous);
        let actions = match world.env().action_space() {
            Space::Discrete(n) => {
                let allowed = |action: &u32| one.action_mask().is_none_or(|mask| mask[*action as usize]);
                let choices: Vec<u32> = (0..n).filter(allowed).collect();
                discrete = [choices[random.below(choices.len() as u32) as usize]];
                Actions::Discrete(&discrete)
            }
            Space::Box { low, high } => {
                continuous = low.iter().zip(&high).map(|(low, high)| low + random.unit_f32() * (high - low)).collect::<Vec<f32>>();
                Actions::Continuous { rows: &continuous, width: low.len() }
            }
            space => panic!("{space} is no action space of a world here"),
        };
        let (alone, transition) = (one.step(actions.get(0)).unwrap(), many.step(actions).unwrap());
        assert_eq!(alone.reward as f32, transition.rewards[0], "{at}");
        assert_eq!((alone.terminated, alone.truncated), (transition.endings[0].terminated(), transition.endings[0].truncated()), "{at}");
        if let Some(finished) = transition.finished.first() {
            ended += 1;
            let mut alone = one.finished().expect("an episode has ended").clone();
            let difference = (alone.episode_return - finished.episode_return).abs(); // a vector's rewards are rounded to f32
            assert!(difference <= 1e-5 * finished.episode_return.abs(), "{at}");
            alone.episode_return = finished.episode_return;
            assert_eq!(alone, *finished, "{at}");
            if autoreset == Autoreset::Disabled {
                assert_eq!(one.observation(), finished.observation, "{at}: the final observation stays");
                assert_eq!(one.step(actions.get(0)), Err(EnvError::Finished { env: 0 }), "{at}");
                one.reset().unwrap();
                many.reset_finished().unwrap();
            }
        }
    }
    let has_short_episodes = world.max_episode_steps.is_none_or(|limit| limit <= 400);
    assert!(ended > 0 || !has_short_episodes, "{name}: no episode has ended");
}

#[test]
fn a_single_environment_plays_the_episodes_of_a_vector_of_one() {
    for world in registry::all() {
        for autoreset in [Autoreset::SameStep, Autoreset::NextStep, Autoreset::Disabled] {
            compare(&world, autoreset);
        }
    }
}

#[test]
fn the_seed_of_an_episode_can_be_chosen() {
    let mut env = make("cartpole", 1).unwrap();
    let first = env.observation().to_vec();
    assert_eq!((env.episode(), env.length()), (1, 0));
    env.step(Action::Discrete(0)).unwrap();
    env.reset_to(env.episode_seed()).unwrap();
    assert_eq!(env.observation(), first);
    assert_eq!((env.episode(), env.length(), env.episode_return()), (2, 0, 0.0));
    env.reset_to(99).unwrap();
    assert_ne!(env.observation(), first);
    assert!(env.render().unwrap().is_some() && env.ansi().unwrap().is_none());
}

/// An environment with a fault at its third step.
struct Faulty(&'static str, u32);

impl Env for Faulty {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![-1.0; 2], high: vec![1.0; 2] }
    }
    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }
    fn reset(&mut self, _: u64, observation: &mut [f32]) {
        self.1 = 0;
        observation.fill(0.0);
    }
    fn step(&mut self, _: Action<'_>, observation: &mut [f32]) -> Step {
        self.1 += 1;
        observation.fill(0.5);
        let is_now = |fault| self.1 == 3 && self.0 == fault;
        assert!(!is_now("panic"), "a fault");
        if is_now("observation") {
            observation[1] = f32::NAN;
        }
        Step { reward: if is_now("reward") { f64::INFINITY } else { 1.0 }, terminated: false, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        vec![]
    }
    fn load(&mut self, _: &[u64]) -> Result<(), EnvError> {
        Ok(())
    }
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        if self.0 == "mask" {
            mask.fill(self.1 < 3);
        }
        self.0 == "mask"
    }
}

#[test]
fn faults_of_an_environment_are_errors() {
    let third = |fault: &'static str| {
        let mut env = EnvSpec::new("faulty", move || Faulty(fault, 0)).single(1).unwrap();
        (0..2).for_each(|_| assert!(env.step(Action::Discrete(0)).is_ok()));
        let error = env.step(Action::Discrete(0)).expect_err(fault).to_string();
        env.reset().expect("a reset mends it");
        assert_eq!(env.action_mask().is_some(), fault == "mask", "masks are those of before");
        error.split(" (").next().unwrap().to_string()
    };
    assert!(third("panic").starts_with("faulty: panicked at step 3 of episode 1"));
    assert_eq!(third("observation"), "faulty: observation[1] of environment 0 is NaN, expected a finite number");
    assert_eq!(third("reward"), "faulty: reward of environment 0 is inf, expected a finite number");
    assert_eq!(third("mask"), "faulty: action mask of environment 0: expected at least one action, got none");
    let mut env = make("cartpole", 1).unwrap();
    let wrong = env.step(Action::Discrete(2)).unwrap_err().to_string();
    assert_eq!(wrong, "action of environment 0: expected Discrete(2), that is 0 to 1, got 2");
    assert_eq!(env.length(), 0, "the environment is unchanged");
    assert!(make("cartpol", 1).is_err_and(|error| error.to_string().contains("did you mean `cartpole`")));
}
