//! Trainings on a device learn, resume to the same bits, match those on the host, and are refused if they are not supported.

use gradus::agents::Collection;
use gradus::envs::bandits::ContextualBandit;
use gradus::envs::{EnvSpec, TensorEnvSpec, registry};
use gradus::rollouts::{Collector, NotThere};
use gradus::{Config, Trainer};

use super::{device, policy, transformer};

/// Compares the same training with texts on the device and on the host.
#[test]
fn a_training_on_target_sums_matches_the_host() {
    let grpo = ["agent=grpo", "grpo.group_size=4", "grpo.epochs=2", "grpo.minibatches=2", "reference.coefficient=0.05"];
    let sequences = ["agent=grpo", "grpo.group_size=4", "grpo.ratio=sequence", "text.length_penalty=0.01"];
    let remax = ["agent=reinforce", "reinforce.baseline=greedy", "max_concurrent=9"];
    let critic = ["agent=reinforce", "reinforce.baseline=value", "text.max_new_tokens=2", "text.length_bootstraps=true"];
    for settings in [&grpo[..], &sequences, &remax, &critic] {
        let train = |place: &str| {
            let place = format!("torch.worlds={place}");
            let settings = [&["environment=target-sum", "envs=48"], settings, &[&*place]].concat();
            let mut trainer = Trainer::new(on_device(&settings).unwrap()).unwrap();
            for _ in 0..6 {
                trainer.iterate().unwrap();
            }
            (trainer.actor_critic().unwrap().parameters().to_vec(), trainer.recent_return())
        };
        let ((host, host_return), (device, device_return)) = (train("host"), train("device"));
        let norm = |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let apart = norm(&mut host.iter().zip(&device).map(|(a, b)| a - b)) / norm(&mut host.iter().copied());
        assert!(apart < 1e-4, "{settings:?}: the parameters are {apart} apart");
        assert!((host_return - device_return).abs() < 1e-5, "expected a return of {host_return}, got {device_return}");
    }
}

fn on_device(settings: &[&str]) -> Result<Config, gradus::Error> {
    let device = format!("device={}", device());
    let settings = [&[&*device, "torch.worlds=device"], settings].concat();
    settings.into_iter().try_fold(Config::preset("ppo", "cartpole", None)?, |config, setting| config.with_setting(setting))
}

#[test]
fn ppo_learns_cartpole_on_the_device() {
    let settings =
        ["envs=32", "steps=40000", "ppo.rollout_steps=64", "ppo.minibatch_size=512", "ppo.epochs=8", "optimiser.learning_rate=0.002"];
    let mut trainer = Trainer::new(on_device(&settings).unwrap()).unwrap();
    trainer.finish().unwrap();
    assert!(trainer.recent_return() > 120.0, "{}", trainer.recent_return());
}

#[test]
fn a_training_resumes_to_the_same_bits() {
    let on_text = ["environment=target-sum", "agent=grpo", "envs=16", "grpo.group_size=4", "max_concurrent=5"];
    let verified_on_the_host = [&on_text[..], &["environment=addition"]].concat();
    for settings in [&["envs=8", "ppo.rollout_steps=19", "ppo.minibatch_size=64"][..], &on_text, &verified_on_the_host] {
        resumes(|| on_device(settings).unwrap());
    }
}

fn resumes(config: impl Fn() -> Config) {
    let mut whole = Trainer::new(config()).unwrap();
    let mut resumed = Trainer::new(config()).unwrap();
    for _ in 0..4 {
        whole.iterate().unwrap();
        resumed.load(&whole.save()).unwrap();
        let (a, b) = (whole.iterate().unwrap(), resumed.iterate().unwrap());
        assert_eq!(a.episodes, b.episodes);
        assert!(whole.save() == resumed.save());
        // the next iteration resumes in a new trainer
        resumed = Trainer::new(config()).unwrap();
    }
}

/// Several trainings are supported on the device. The error for an unsupported training names the reason.
#[test]
fn unsupported_trainings_on_the_device_are_refused() {
    for (agent, setting) in [("a2c", "envs=4"), ("trpo", "trpo.rollout_steps=30"), ("ppo", "wrappers.normalise_rewards=true")] {
        let config = Config::preset(agent, "cartpole", None).unwrap().with_setting(setting).unwrap().with_setting("torch.worlds=device");
        let config = config.unwrap().with_setting(&format!("device={}", device())).unwrap();
        let mut trainer = Trainer::new(config).unwrap();
        trainer.iterate().unwrap();
        trainer.iterate().unwrap();
    }
    let refused = |settings: &[&str]| match Trainer::new(on_device(settings).unwrap()) {
        Ok(_) => panic!("{settings:?} is accepted"),
        Err(error) => error.to_string(),
    };
    let cases: [(&[&str], &str); 7] = [
        (&["environment=target-sum"], "this agent collects parts of texts"),
        (&["environment=addition"], "this agent collects parts of texts"),
        (&["agent=reinforce"], "this agent collects whole episodes"),
        (&["wrappers.normalise_observations=true"], "observations are normalised on the host"),
        (&["wrappers.frame_stack=2"], "this environment with its wrappers has no tensor program"),
        (&["environment=acrobot"], "this environment with its wrappers has no tensor program"),
        (&["device=cpu"], "the policy is not a perceptron on libtorch"),
    ];
    for (settings, reason) in cases {
        assert_eq!(refused(settings), format!("torch.worlds: expected auto or host, because {reason}, got device"));
    }
    // trainings that read texts on the host, or have a fixed prompt, still write texts on the device
    for setting in ["grpo.sampling_rounds=3", "reward_model.pairs=64"] {
        let settings = ["environment=target-sum", "agent=grpo", "envs=16", "grpo.group_size=4", setting];
        let mut trainer = Trainer::new(on_device(&settings).unwrap()).unwrap();
        trainer.iterate().unwrap();
    }
    let world = registry::find("target-sum").unwrap();
    let world = world.with_prompt(&[7, 8]).unwrap();
    let (text_policy, collection) = (transformer(&world), Collection::Episodes { per_env: 1, group: 1, greedy: false });
    let mut written = Collector::on_device(&world, 4, 1, (collection, &Config::default().wrappers), &text_policy).unwrap();
    let (rollout, _) = written.collect(&text_policy).unwrap();
    assert!(written.is_on_device() && rollout.segments.iter().all(|s| rollout.store.texts().prefix(s.range.start) == [7, 8]));
    // `auto` uses the host without an error
    let auto = [&*format!("device={}", device()), "environment=acrobot"];
    Trainer::new(auto.into_iter().try_fold(Config::default(), |config, setting| config.with_setting(setting)).unwrap()).unwrap();
    // this environment is unsupported, because its noise would begin within a block of its stream
    let narrow = || ContextualBandit::new(5, 3, 0);
    let mut world = EnvSpec::new("narrow", narrow);
    world.tensor_spec = Some(TensorEnvSpec::ContextualBandit(narrow()));
    let policy = policy(&world, 1);
    let wrappers = Config::default().wrappers;
    let got = Collector::on_device(&world, 2, 1, (Collection::Steps(4), &wrappers), &policy);
    assert!(matches!(got.map(|_| ()), Err(NotThere::Unsuited(_))));
}
