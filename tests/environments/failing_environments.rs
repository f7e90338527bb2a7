//! A custom environment, task or agent that panics, writes a row of the wrong length or never ends an episode gives an error that names the
//! place. The run keeps its last checkpoint.

use std::fs;
use std::time::Duration;

use crate::failing::{Fault, world};
use gradus::agents::registry::register;
use gradus::agents::{Agent, AgentError, Collection, ConfigError, Report, Rollout, UpdateContext};
use gradus::agents::{AgentConfig, AgentKind, Setup};
use gradus::envs::random::{Stream, episode_seed};
use gradus::envs::text::{Division, Finish, Problem, Split, Task, Verdict, Vocabulary};
use gradus::envs::{EnvError, EnvSpec, MAX_EPISODE_STEPS};
use gradus::evaluate::{evaluate, play, record, trace};
use gradus::nets::{Policy, settings, threads};
use gradus::{Config, Error, Mode, Run, Show, Trainer};

/// Settings of a short training in four environments.
fn config(agent: &str, seed: u64) -> Config {
    let config = Config { envs: 4, steps: 512, seed, environment: "failing".into(), ..Config::preset(agent, "cartpole", None).unwrap() };
    let settings: &[&str] = match agent {
        "ppo" => &["ppo.rollout_steps=32", "ppo.minibatch_size=64", "ppo.epochs=1"],
        _ => &[],
    };
    let settings = [settings, &["network.hidden=[8]"]].concat();
    settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap())
}

fn train(config: Config, world: EnvSpec) -> Result<(), Error> {
    Trainer::in_world(config, world)?.finish()
}

/// Returns the fields of the error of a panic: environment, episode, step, seed and message.
fn place(error: Error) -> (usize, u64, u32, u64, String) {
    match error {
        Error::Env(EnvError::Panicked { world, env, episode, step, seed, message }) => {
            assert_eq!(world, "failing");
            (env, episode, step, seed, message)
        }
        error => panic!("expected a panic of the environment, got {error}"),
    }
}

/// The environment counts its steps and episodes itself, and its panic says where it happened. The seeds identify the environment.
#[test]
fn the_error_of_a_panic_names_the_place() {
    let faults = [(Fault::Step, 1), (Fault::Step, 7), (Fault::Reset, 0), (Fault::Mask, 0), (Fault::Mask, 3), (Fault::Scores, 7)];
    for run in 1..=100 {
        let (fault, at) = faults[run as usize % faults.len()];
        let from = 1 + run / 6 % 5;
        let agent = if run % 3 == 0 { "reinforce" } else { "ppo" };
        let outcome = threads::with(1 + run as usize % 2, || train(config(agent, run), world(fault, from, at)));
        let (env, episode, step, seed, message) = place(outcome.unwrap_err());
        assert_eq!(message, format!("in step {step} of episode {episode} with seed {seed}"), "{fault:?}");
        assert_eq!((episode, u64::from(step)), (from, at), "{fault:?}");
        assert_eq!(seed, episode_seed(run, env as u64, episode - 1));
    }
}

#[test]
fn every_command_names_the_place() {
    let trained = Trainer::in_world(config("ppo", 1), world(Fault::None, 0, 0)).unwrap();
    let policy = trained.policy();
    let dir = gradus_testing::tempdir().unwrap();
    let file = dir.path().join("trace.jsonl");
    for (fault, at) in [(Fault::Step, 3), (Fault::Reset, 0), (Fault::Mask, 2)] {
        let evaluated = evaluate(policy, &world(fault, 1, at), 5, 1, Mode::Greedy).unwrap_err();
        let (env, episode, step, seed, message) = place(evaluated);
        assert_eq!((env, episode, u64::from(step)), (0, 1, at), "{fault:?}");
        assert_eq!(message, format!("in step {at} of episode 1 with seed {seed}"));
        let played = place(play::play(policy, &world(fault, 1, at), 77).err().unwrap().into());
        assert_eq!(played, (0, 1, at as u32, 77, format!("in step {at} of episode 1 with seed 77")), "{fault:?}");
    }
    let actions = play::play(policy, &world(Fault::None, 0, 0), 77).unwrap().actions;
    let recorded = place(record::write_episode(&world(Fault::Step, 1, 3), 77, &actions, &file).unwrap_err());
    assert_eq!(recorded, (0, 1, 3, 77, "in step 3 of episode 1 with seed 77".into()));
    record::write_episode(&world(Fault::None, 0, 0), 77, &actions, &file).unwrap();
    let replayed = trace::check_file(&world(Fault::Step, 1, 3), &file).unwrap_err().to_string();
    let expected = "line 1: failing: panicked at step 3 of episode 1 (environment 0, seed 77): in step 3 of episode 1 with seed 77";
    assert!(replayed.ends_with(expected), "{replayed}");
}

#[test]
fn an_environment_that_cannot_be_made_is_named() {
    let error = train(config("ppo", 1), world(Fault::Make, 0, 0)).unwrap_err().to_string();
    assert_eq!(error, "failing: panicked before the first episode: no licence");
    let error = train(config("ppo", 1), world(Fault::Spaces, 0, 0)).unwrap_err().to_string();
    assert_eq!(error, "failing: action space: expected 2 upper bounds, got 1");
}

#[test]
fn an_observation_of_the_wrong_length_is_found() {
    let trained = Trainer::in_world(config("ppo", 1), world(Fault::None, 0, 0)).unwrap();
    let short = |step, seed| {
        format!("failing: observation[2] of environment 0 is unwritten, expected 3 numbers (step {step} of the episode with seed {seed})")
    };
    let long = "source slice length (4) does not match destination slice length (3)";
    for (fault, at) in [(Fault::ShortReset, 0), (Fault::ShortRow, 1)] {
        let error = train(config("ppo", 1), world(fault, 1, at)).unwrap_err().to_string();
        assert_eq!(error, short(at, episode_seed(1, 0, 0)));
    }
    let error = play::play(trained.policy(), &world(Fault::ShortReset, 1, 0), 77).err().unwrap().to_string();
    assert_eq!(error, short(0, 77));
    let (_, _, step, _, message) = place(train(config("ppo", 1), world(Fault::LongRow, 1, 2)).unwrap_err());
    assert!(step == 2 && message.contains(long), "{message}");
}

#[test]
fn a_message_of_several_lines_becomes_one_line() {
    let (_, _, _, _, message) = place(train(config("ppo", 1), world(Fault::Lines, 1, 2)).unwrap_err());
    assert_eq!(message, "assertion `left == right` failed: steps; left: 2; right: 0");
}

/// Training on fixed numbers of steps goes on, because the value of the next state replaces the rest of the return.
#[test]
fn an_episode_without_an_end_is_an_error_where_its_end_is_awaited() {
    let endless = || world(Fault::Endless, 1, 0);
    train(config("ppo", 1), endless()).unwrap();
    let trained = Trainer::in_world(config("ppo", 1), endless()).unwrap();
    let advice = "give the environment a terminal state or a time limit";
    let error = evaluate(trained.policy(), &endless(), 1, 1, Mode::Greedy).unwrap_err();
    let Error::Env(EnvError::Endless { seed, .. }) = error else { panic!("expected an endless episode, got {error}") };
    let expected = format!("failing: episode 1 has not ended after {MAX_EPISODE_STEPS} steps (environment 0, seed {seed}); {advice}");
    assert_eq!(error.to_string(), expected);
    let error = play::play(trained.policy(), &endless(), 77).err().unwrap().to_string();
    assert_eq!(error, format!("failing: episode 1 has not ended after {} steps (environment 0, seed 77); {advice}", play::MAX_STEPS));
    let error = train(Config { envs: 1, ..config("reinforce", 1) }, endless()).unwrap_err();
    assert!(matches!(error, Error::Env(EnvError::Endless { env: 0, episode: 1, step: MAX_EPISODE_STEPS, .. })), "{error}");
    // a longer time limit is respected
    let one = endless();
    let long = EnvSpec::limited("failing", MAX_EPISODE_STEPS + 1, move || one.env());
    assert_eq!(evaluate(trained.policy(), &long, 1, 1, Mode::Greedy).unwrap().lengths, [MAX_EPISODE_STEPS + 1]);
}

/// After the environment is mended, the run continues from its last checkpoint, bit for bit as if nothing had failed.
#[test]
fn a_run_resumes_from_its_last_checkpoint_in_a_mended_environment() {
    let dir = gradus_testing::tempdir().unwrap();
    let [whole, failed] = ["whole", "failed"].map(|name| dir.path().join(name));
    Run::create_in_world(config("ppo", 3), world(Fault::None, 0, 0), &whole).unwrap().train(Show::Nothing).unwrap();
    for (fault, from, at) in [(Fault::Step, 12, 5), (Fault::Reset, 13, 0), (Fault::NotANumber, 14, 2), (Fault::Save, 14, 5)] {
        let mut run = Run::create_in_world(config("ppo", 3), world(fault, from, at), &failed).unwrap();
        run.checkpoint_every(Duration::ZERO);
        run.train(Show::Nothing).unwrap_err();
        assert!(run.trainer().steps() < 512);
        drop(run);
        let mut run = Run::resume_in_world(&failed, world(Fault::None, 0, 0)).unwrap();
        assert!((1..512).contains(&run.trainer().steps()), "{fault:?}: expected a checkpoint within the run");
        run.train(Show::Nothing).unwrap();
        drop(run);
        for name in ["policy.safetensors", "metrics.csv", "episodes.csv"] {
            let [expected, got] = [&whole, &failed].map(|dir| fs::read(dir.join(name)).unwrap());
            assert!(expected == got, "{fault:?}: {name} differs");
        }
        fs::remove_dir_all(&failed).unwrap();
    }
}

/// A finished run in an environment that is not registered is trained further there, and its policy is evaluated there.
#[test]
fn a_run_in_a_custom_environment_is_trained_further() {
    let dir = gradus_testing::tempdir().unwrap();
    let dir = dir.path().join("run");
    let world = || world(Fault::None, 0, 0);
    Run::create_in_world(config("ppo", 3), world(), &dir).unwrap().train(Show::Nothing).unwrap();
    assert!(gradus::Policy::load(&dir).is_err() && Run::resume_until(&dir, 1024).is_err(), "the environment has no name that is known");
    let mut run = Run::resume_in_world_until(&dir, world(), 1024).unwrap();
    run.train(Show::Nothing).unwrap();
    assert_eq!(run.trainer().steps(), 1024);
    let policy = gradus::Policy::load_in_world(&dir, world()).unwrap();
    assert_eq!(policy.evaluate(3, Mode::Greedy).unwrap().lengths, run.into_policy().evaluate(3, Mode::Greedy).unwrap().lengths);
}

/// A task whose verifier panics.
struct Careless(Vocabulary);

impl Task for Careless {
    fn vocabulary(&self) -> &Vocabulary {
        &self.0
    }
    fn max_new_tokens(&self) -> usize {
        2
    }
    fn division(&self) -> Division {
        Division::OneSet { problems: 1 }
    }
    fn problem(&self, _: Split, _: &mut Stream) -> Problem {
        Problem::of(&self.0, "ab", "b")
    }
    fn verify(&self, _: &[u32], completion: &[u32], _: Finish) -> Result<Verdict, String> {
        panic!("no rule for {} tokens", completion.len())
    }
}

#[test]
fn a_verifier_that_panics_is_named_with_prompt_and_completion() {
    let world = EnvSpec::text("careless", Careless(Vocabulary::of_characters("ab").unwrap())).unwrap();
    let config = Config { environment: "careless".into(), ..Config::preset("grpo", "target-sum", None).unwrap() };
    let trained = Trainer::in_world(config.clone(), world.clone()).unwrap();
    let evaluated = evaluate(trained.policy(), &world, 1, 1, Mode::Greedy).unwrap_err();
    for error in [train(config, world).unwrap_err(), evaluated] {
        let error = error.to_string();
        let parts = [
            "careless, environment ",
            ": task `careless`: prompt `ab`, completion `",
            "`: the verifier panicked: no rule for ",
            " tokens (step ",
        ];
        assert!(error.starts_with(parts[0]) && parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

settings! {
    /// The settings of an agent that panics.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DivisionConfig {
        /// Number of the update that panics.
        pub at: u64 = 2,
    }
}

impl AgentConfig for DivisionConfig {
    const NAME: &'static str = "division";
    const ABOUT: &'static str = "an agent that panics";

    fn build(&self, _: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(DivisionAgent(self.at).into())
    }
}

struct DivisionAgent(u64);

impl Agent for DivisionAgent {
    fn collection(&self) -> Collection {
        Collection::Steps(4)
    }
    fn update(&mut self, _: &mut dyn Policy, _: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        assert!(context.iteration < self.0, "no advantage");
        Ok(Vec::new())
    }
}

#[test]
fn an_agent_that_panics_is_named_with_its_update() {
    register::<DivisionConfig>().unwrap();
    let error = train(
        Config { seed: 5, environment: "failing".into(), ..Config::preset("division", "cartpole", None).unwrap() },
        world(Fault::None, 0, 0),
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "division: panicked in iteration 3 of the run with seed 5: no advantage");
}

settings! {
    /// The settings of an agent that moves a parameter to NaN.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LostConfig {
        /// Number of the update that does so.
        pub at: u64 = 3,
    }
}

impl AgentConfig for LostConfig {
    const NAME: &'static str = "lost";
    const ABOUT: &'static str = "an agent whose parameters become NaN";

    fn build(&self, _: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(LostAgent(self.at).into())
    }
}

struct LostAgent(u64);

impl Agent for LostAgent {
    fn collection(&self) -> Collection {
        Collection::Steps(4)
    }
    fn update(&mut self, policy: &mut dyn Policy, _: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        if context.iteration >= self.0 {
            let mut parameters = policy.parameters().to_vec();
            parameters[0] = f32::NAN;
            policy.set_parameters(&parameters);
        }
        Ok(Vec::new())
    }
}

#[test]
fn parameters_that_are_not_finite_are_not_saved() {
    register::<LostConfig>().unwrap();
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    let config = Config { steps: 4 * 8 * 3, ..Config::preset("lost", "cartpole", None).unwrap() };
    let mut run = Run::create(config.with_setting("lost.at=2").unwrap(), &dir).unwrap();
    run.checkpoint_every(Duration::ZERO);
    let error = run.train(Show::Nothing).unwrap_err().to_string();
    assert_eq!(error, "lost, at step 96: expected finite parameters, got NaN in actor.0.weight");
    drop(run);
    assert_eq!(gradus::Policy::load(&dir).map(|_| ()).map_err(|error| error.to_string()), Ok(()), "the checkpoint before it is kept");

    // an optimiser that is out of range is refused before anything is written, also for an agent that does not check it
    let wrong = Config::preset("lost", "cartpole", None).unwrap().with_setting("optimiser.learning_rate=nan").unwrap();
    let error = Run::create(wrong, folder.path().join("other")).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "optimiser.learning_rate: expected a number above 0, got NaN");
    assert!(!folder.path().join("other").exists());
}

settings! {
    /// The settings of an agent that says strange things about itself.
    #[derive(Clone, Debug, PartialEq)]
    pub struct StrangeConfig {
        /// Steps of a rollout.
        pub steps: usize = 8,
        /// Workers.
        pub workers: usize = 1,
        /// What the second update reports: 0: nothing special, 1: a new metric, 2: one less, 3: another order, 4: a name with a comma in every update.
        pub reports: usize = 0,
    }
}

impl AgentConfig for StrangeConfig {
    const NAME: &'static str = "strange";
    const ABOUT: &'static str = "an agent that says strange things about itself";

    fn build(&self, _: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(Strange(self.clone()).into())
    }
}

struct Strange(StrangeConfig);

impl Agent for Strange {
    fn collection(&self) -> Collection {
        Collection::Steps(self.0.steps)
    }
    fn workers(&self) -> usize {
        self.0.workers
    }
    fn update(&mut self, _: &mut dyn Policy, _: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let report = match (self.0.reports, context.iteration) {
            (1, 1) => vec![("train/a", 1.0), ("train/b", 2.0), ("train/late", 3.0)],
            (2, 1) => vec![("train/a", 1.0)],
            (3, 1) => vec![("train/b", 2.0), ("train/a", 1.0)],
            (4, _) => vec![("train/a,b", 1.0)],
            _ => vec![("train/a", 1.0), ("train/b", 2.0)],
        };
        Ok(report)
    }
}

/// The columns of a table are those of its first row: a cell never stands below another name.
#[test]
fn what_an_agent_says_about_itself_is_checked() {
    register::<StrangeConfig>().unwrap();
    let folder = gradus_testing::tempdir().unwrap();
    let config = |settings: &[&str]| {
        let config = Config { steps: 256, ..Config::preset("strange", "cartpole", None).unwrap() };
        settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap())
    };
    let error = |name: &str, settings: &[&str]| {
        let run = Run::create(config(settings), folder.path().join(name)).and_then(|mut run| run.train(Show::Nothing));
        run.unwrap_err().to_string()
    };
    assert!(Run::create(config(&[]), folder.path().join("right")).unwrap().train(Show::Nothing).is_ok());
    for (reports, expected) in
        [("1", "got the new one train/late"), ("2", "got none called train/b"), ("3", "got another order"), ("4", "got \"train/a,b\"")]
    {
        let error = error(reports, &[&format!("strange.reports={reports}")]);
        assert!(error.contains("metrics.csv: expected") && error.ends_with(expected), "{error}");
    }
    assert_eq!(error("steps", &["strange.steps=0"]), "collection of the agent: expected at least one step, got Steps(0)");
    assert_eq!(error("none", &["strange.workers=0"]), "workers of the agent: expected a number that divides 8 environments, got 0");
    assert_eq!(error("three", &["strange.workers=3"]), "workers of the agent: expected a number that divides 8 environments, got 3");
    let other = Config { agent: "a2c".into(), ..config(&[]) };
    let error = Trainer::new(other).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "agent: expected strange, whose settings these are; Config::preset has those of another one, got a2c");
    let long = Config { steps: u64::MAX, ..config(&[]) };
    let error = Trainer::new(long).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "steps: expected at most 9223372036854775807, got 18446744073709551615");
}

#[test]
fn a_policy_is_evaluated_in_environments_that_it_can_read() {
    let policy = gradus::Policy::train(Config { steps: 256, ..Config::preset("ppo", "cartpole", None).unwrap() }).unwrap();
    let pendulum = gradus::envs::registry::find("pendulum").unwrap();
    let error = evaluate(policy.behaviour(), &pendulum, 1, 1, Mode::Greedy).unwrap_err().to_string();
    assert_eq!(error, "pendulum: expected an environment with observations of 4 numbers, which the policy reads, got one with 3");
    assert_eq!(
        evaluate(policy.behaviour(), policy.world(), 0, 1, Mode::Greedy).unwrap_err().to_string(),
        "episodes: expected at least 1, got 0"
    );
}

#[test]
fn names_that_mean_something_else_are_not_registered() {
    for name in ["", "x\ny", "any", "text", "file:mine", "a b", "../up", "a,b"] {
        let mut world = world(Fault::None, 0, 0);
        world.name = name.into();
        let error = gradus::envs::registry::register(world).unwrap_err().to_string();
        assert!(error.contains("expected a name of letters"), "{name:?}: {error}");
    }
}
