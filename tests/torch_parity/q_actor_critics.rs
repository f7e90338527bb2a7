//! Networks of continuous actions: ten updates of actor and critics give the same parameters with libtorch as with the engine `cpu`.

use gradus::envs::Space;
use gradus::envs::random::{Purpose, Stream};
use gradus::nets::loss::LogProb;
use gradus::nets::{
    ActionRows, Activation, ActorObjective, Batch, Behaviour, Choice, Evaluated, Evaluation, LogStdBounds, Network, NetworkConfig, Of,
    OptimiserStep, QActor, QActorCritic, QActorHead, QValues, Rule, Store, TorchConfig, ValueObjective, cpu, torch,
};

use crate::device;
use crate::q_networks::{near, saved};

struct Squared;

impl ValueObjective for Squared {
    fn decision(&self, index: usize, q: QValues<'_>) -> Evaluation {
        let first = q.values()[0];
        let loss = 0.5 * q.sum(|k, q| (q - ((index * 7 + k * 3) % 5) as f32).squared());
        Evaluation::from(loss).with_error(first - index as f32)
    }
}

/// alpha log pi(a|s) - min Q_k(s, a) of the critics that it reads.
struct Soft {
    critics: usize,
}

impl ActorObjective for Soft {
    fn critics(&self, _: usize) -> usize {
        self.critics
    }

    fn decision(&self, index: usize, log_prob: Of<LogProb>, q: QValues<'_>) -> Evaluation {
        let alpha = 0.1 + 0.05 * (index % 3) as f32;
        (alpha * log_prob - q.min()).into()
    }
}

fn noise(number: u64) -> Stream {
    Stream::new(5, Purpose::Action, number)
}

#[test]
fn ten_updates_agree() {
    let bounds = Space::Box { low: vec![-2.0, -1.0], high: vec![2.0, 3.0] };
    let (observations, actions) = (Space::Box { low: vec![-3.0; 5], high: vec![3.0; 5] }, bounds);
    let (clamp, tanh) = (QActor::Squashed(LogStdBounds::Clamp), QActor::Squashed(LogStdBounds::Tanh));
    for (hidden, layer_norm, gsde, actor, critics, read) in [
        (vec![40, 17], false, false, clamp, 2, 2),
        (vec![20, 33], true, false, tanh, 3, 2),
        (vec![24, 18], false, true, clamp, 2, 2),
        (vec![18], false, false, QActor::Deterministic, 2, 1),
        (vec![], false, true, tanh, 1, 1),
    ] {
        let head = QActorHead { actor, critics };
        let what = format!("{hidden:?}, {head:?}");
        let activation = Activation::Tanh;
        let config =
            NetworkConfig { hidden, layer_norm, activation, gsde, log_std_init: -1.0, gsde_sample_every: 2, ..NetworkConfig::default() };
        let ours = cpu::QActorCritic::new(&config, head, &observations, &actions, 3).unwrap();
        let torch = TorchConfig::default();
        let theirs = torch::QActorCritic::new((&config, &torch), head, (&observations, &actions), 3, device()).unwrap();
        let mut networks: [Box<dyn QActorCritic>; 2] = [Box::new(ours), Box::new(theirs)];
        let mut targets = networks.each_ref().map(|network| network.snapshot());
        let mut stream = Stream::new(8, Purpose::Environment, 0);
        let rows = (0..73 * 5).map(|_| stream.uniform(-3.0, 3.0) as f32).collect();
        let taken = ActionRows::Continuous { rows: (0..140).map(|_| stream.uniform(-1.0, 2.0) as f32).collect(), width: 2 };
        let store = Store::new(5, rows, taken);
        let (indices, weights): (Vec<u32>, Vec<f32>) = (0..70).map(|i| (69 - i, if i % 9 == 4 { 0.0 } else { 0.01 })).unzip();
        let batch = Batch::new(&indices, &weights);
        let step = OptimiserStep {
            rule: Rule::Adam,
            epsilon: 1e-5,
            learning_rate: 0.003,
            critic_learning_rate: 0.01,
            weight_decay: 0.001,
            max_grad_norm: 0.5,
            clip_per_group: true,
        };
        for update in 0..10 {
            let losses = networks.each_mut().map(|network| {
                let Evaluated { sums: of_critics, errors } = network.critic_gradient(&store, batch, &Squared);
                let norm = network.gradient_norm();
                network.apply(&step);
                // every third update without noise
                let mut noise = (update % 3 < 2).then(|| noise(update));
                let of_actor = network.actor_gradient(&store, batch, noise.as_mut(), &Soft { critics: read }).loss as f32;
                let of_both = [&[of_critics.loss as f32, norm, of_actor, network.gradient_norm()], &errors[..]].concat();
                network.apply(&step);
                of_both
            });
            near(&losses[0], &losses[1], &format!("{what}, losses, norms and errors of update {update}"));
            targets.iter_mut().zip(&networks).for_each(|(target, network)| target.track(network.as_ref(), 0.25));
        }
        near(&saved(networks[0].as_ref()), &saved(networks[1].as_ref()), &format!("{what}, parameters"));
        near(&saved(targets[0].as_ref()), &saved(targets[1].as_ref()), &format!("{what}, target"));
        for is_sampled in [true, false] {
            let outputs = networks.each_mut().map(|network| {
                let (mut actions, mut log_probs, mut q) = (Vec::new(), Vec::new(), Vec::new());
                network.actions(&store, 1..73, is_sampled.then(|| noise(77)).as_mut(), &mut actions, &mut log_probs);
                network.q_values(&store, 1..73, &actions, &mut q);
                [actions, log_probs, q]
            });
            let chosen = networks.each_ref().map(|network| {
                let rows: Vec<f32> = (0..40).flat_map(|row| store.observation(row).to_vec()).collect();
                let mut streams: Vec<Stream> = (0..40).map(noise).collect();
                let (mut chosen, mut log_probs, mut actor) = (ActionRows::empty(&actions), vec![0.0; 40], network.actor());
                let mut all = Vec::new();
                for _ in 0..3 {
                    let choice = if is_sampled { Choice::Sample(&mut streams) } else { Choice::Greedy };
                    actor.act(&rows, None, choice, &mut chosen, &mut log_probs);
                    let ActionRows::Continuous { rows, .. } = &chosen else { panic!("expected rows") };
                    all.extend(rows.iter().chain(&log_probs));
                }
                all
            });
            outputs[0].iter().zip(&outputs[1]).for_each(|(ours, theirs)| near(ours, theirs, &format!("{what}, outputs")));
            near(&chosen[0], &chosen[1], &format!("{what}, actor"));
        }
        // a checkpoint of one engine can be loaded by the other
        let [ours, theirs] = &mut networks;
        theirs.load(&ours.save()).unwrap();
        theirs.load_optimiser(&ours.save_optimiser()).unwrap();
        ours.load_optimiser(&theirs.save_optimiser()).unwrap();
        assert!(theirs.fault().is_none() && saved(ours.as_ref()) == saved(theirs.as_ref()), "{what}");
    }
}

/// After a fault of the device all results are 0 or NaN, and every decision still has an error.
#[test]
fn decisions_have_errors_after_a_fault() {
    let a_box = |n: usize| Space::Box { low: vec![-3.0; n], high: vec![3.0; n] };
    let (config, torch) = (NetworkConfig::default(), TorchConfig::default());
    let head = QActorHead { actor: QActor::Deterministic, critics: 2 };
    let mut network = torch::QActorCritic::new((&config, &torch), head, (&a_box(5), &a_box(1)), 3, device()).unwrap();
    let store = Store::new(5, vec![0.5; 40], ActionRows::Continuous { rows: vec![0.0; 8], width: 1 });
    let (indices, weights): (Vec<u32>, Vec<f32>) = (0..8).map(|i| (i, 0.125)).unzip();
    let mut values = Vec::new();
    network.q_values(&store, 4..12, &[0.0; 8], &mut values); // there are 8 rows
    assert!(network.fault().is_some() && values.len() == 16 && values.iter().all(|value| value.is_nan()));
    let evaluated = network.critic_gradient(&store, Batch::new(&indices, &weights), &Squared);
    assert_eq!(evaluated, Evaluated { errors: vec![0.0; 8], ..Evaluated::default() });
    assert_eq!(network.gradient_norm(), 0.0);
}
