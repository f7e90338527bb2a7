//! Reward models: losses of preferences, and training on preferences.

mod common;

use common::texts::{CONTEXT, VOCABULARY, transformer};
use common::{context, metric, near, optimiser};
use gradus_agents::OptimiserConfig;
use gradus_agents::reward_model::{self, Preferences, Ranked, Ranking, RewardModelConfig, bradley_terry, plackett_luce};
use gradus_base::random::{Purpose, Stream};
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{Behaviour, Network, NetworkConfig, Observations};

#[test]
fn bradley_terry_and_plackett_luce_have_the_right_losses_and_derivatives() {
    for (margin, expected) in [(0.0, std::f64::consts::LN_2), (1.0, 0.313_262), (2.0, 0.126_928), (-1.0, 1.313_262)] {
        near(&[bradley_terry(0.3 + margin, 0.3, 0.0, 0.0).0.into()], &[expected], "margin between the scores");
        near(&[bradley_terry(0.3, 0.3, -margin, 0.0).0.into()], &[expected], "`margin` argument");
        let (loss, derivatives) = plackett_luce(&[margin, 0.0]);
        let (same, slopes) = bradley_terry(margin, 0.0, 0.0, 0.0);
        near(&[loss.into(), derivatives[0].into(), derivatives[1].into()], &[same, slopes[0], slopes[1]].map(f64::from), "ranking of two");
    }
    // large score differences do not overflow
    for margin in [-1e4_f32, -100.0, 100.0, 1e4] {
        let (loss, slopes) = bradley_terry(margin, 0.0, 0.0, 0.0);
        assert_eq!((loss, slopes[0]), (if margin < 0.0 { -margin } else { 0.0 }, if margin < 0.0 { -1.0 } else { 0.0 }), "{margin}");
    }
    // compares the derivatives with central differences
    let slope = |f: &dyn Fn(f32) -> f32, x: f32| f64::from((f(x + 1e-2) - f(x - 1e-2)) / 2e-2);
    let (c, r) = (0.4_f32, -0.3_f32);
    let (_, d) = bradley_terry(c, r, 0.2, 0.1);
    let by_hand = [slope(&|c| bradley_terry(c, r, 0.2, 0.1).0, c), slope(&|r| bradley_terry(c, r, 0.2, 0.1).0, r)];
    assert!(d.iter().zip(by_hand).all(|(d, e)| (f64::from(*d) - e).abs() < 1e-4), "expected {by_hand:?}, got {d:?}");
    let scores = [0.4, -0.3, 1.2, 0.1];
    let (_, derivatives) = plackett_luce(&scores);
    for i in 0..4 {
        let at = |x: f32| {
            let mut moved = scores;
            moved[i] = x;
            plackett_luce(&moved).0
        };
        assert!((f64::from(derivatives[i]) - slope(&at, scores[i])).abs() < 1e-4, "{i}: {derivatives:?}");
    }
}

/// Ranks texts by a hidden score: the number of 3s minus the number of 1s.
fn preferences(seed: u64, n: u32, of: usize) -> Preferences {
    let mut stream = Stream::new(seed, Purpose::Environment, 0);
    let (mut texts, mut rankings) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let first = texts.len() as u32;
        let mut scored: Vec<(i32, Vec<u32>)> = (0..of)
            .map(|_| {
                let completion: Vec<u32> = (0..4).map(|_| stream.below(VOCABULARY)).collect();
                let score = completion.iter().map(|t| i32::from(*t == 3) - i32::from(*t == 1)).sum();
                (score, [vec![4, 0], completion].concat())
            })
            .collect();
        scored.sort_by_key(|(score, _)| -score);
        if scored.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            continue; // texts with equal scores cannot be ranked
        }
        rankings.push(Ranking { rows: (first..first + of as u32).collect(), margin: 0.0 });
        texts.extend(scored.into_iter().map(|(_, text)| text));
    }
    Preferences::of_texts(CONTEXT, texts.iter().map(Vec::as_slice), rankings)
}

#[test]
fn a_reward_model_learns_a_hidden_scorer() {
    for (of, ranked) in [(2, Ranked::Pairs), (3, Ranked::Pairs), (3, Ranked::PlackettLuce)] {
        let (shown, held_out) = (preferences(1, 300, of), preferences(2, 200, 2));
        assert!(shown.rankings.len() > 60 && held_out.rankings.len() > 60);
        let mut model = transformer(1);
        let before = reward_model::evaluate(&mut model, &held_out);
        assert!(before.accuracy() < 0.8 || before.margin().abs() < 0.2, "{before:?}");
        let config = RewardModelConfig { epochs: 15, minibatch_size: 16, ranked, centring: 0.01, ..RewardModelConfig::default() };
        let report = reward_model::train(&mut model, &shown, &config, &optimiser(), context(0)).unwrap();
        let after = reward_model::evaluate(&mut model, &held_out);
        assert!(after.accuracy() > 0.95 && after.margin() > 1.0, "{of}, {ranked:?}: {after:?}, {report:?}");
        // the model can be saved and loaded like any policy
        let mut other = transformer(9);
        other.load(&model.save()).unwrap();
        assert_eq!(reward_model::evaluate(&mut other, &held_out), after);
    }
}

/// Compares the gradient used in training with central differences of the reported loss.
#[test]
fn the_gradient_of_preferences_matches_central_differences_of_their_loss() {
    let space = Space::Box { low: vec![-1.0], high: vec![1.0] };
    let network = NetworkConfig { hidden: vec![3], ..NetworkConfig::default() };
    let mut model = ActorCritic::new(&network, &space, &Space::Discrete(2), 5).unwrap();
    let parameters = model.parameters().to_vec();
    let observations = Observations::Rows { rows: vec![-0.8, 0.1, 0.5, 0.9, -0.2], width: 1 };
    let rankings = vec![
        Ranking { rows: vec![0, 3], margin: 0.3 },
        Ranking { rows: vec![2, 3, 1], margin: 0.1 },
        Ranking { rows: vec![4, 0], margin: 0.0 },
    ];
    let preferences = Preferences::new(observations, rankings);
    for ranked in [Ranked::Pairs, Ranked::PlackettLuce] {
        let config = RewardModelConfig { epochs: 1, minibatch_size: 3, ranked, centring: 0.2, ..RewardModelConfig::default() };
        // the learning rate is so small that the parameters do not change
        let still = OptimiserConfig { learning_rate: 1e-30, ..optimiser() };
        let mut loss_and_gradient = |parameters: &[f32]| {
            model.set_parameters(parameters);
            let report = reward_model::train(&mut model, &preferences, &config, &still, context(0)).unwrap();
            (metric(&report, "reward_model/loss"), model.last_gradient().to_vec())
        };
        let (_, gradient) = loss_and_gradient(&parameters);
        let mut seen = 0;
        // skips padding and the actor's parameters, which have no gradient
        for i in (0..parameters.len()).filter(|i| gradient[*i] != 0.0) {
            seen += 1;
            let mut at = |by: f32| {
                let mut moved = parameters.clone();
                moved[i] += by;
                loss_and_gradient(&moved).0
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((slope - f64::from(gradient[i])).abs() < 2e-4, "{ranked:?}, parameter {i}: expected {slope}, got {}", gradient[i]);
        }
        assert!(seen >= 10, "only {seen} parameters have a gradient");
    }
}

#[test]
fn old_preferences_are_replayed() {
    let (old, new) = (preferences(1, 240, 2), preferences(2, 60, 2));
    let mut stream = Stream::new(1, Purpose::Shuffle, 0);
    let both = new.with_replay(&old, 0.1, &mut stream);
    let added = (0.1 * old.rankings.len() as f64).round() as usize;
    assert_eq!(both.rankings.len(), new.rankings.len() + added);
    assert_eq!(both.rankings[..new.rankings.len()], new.rankings[..]);
    let text = |of: &Preferences, row: u32| of.store.texts().prefix(row as usize).to_vec();
    for ranking in &both.rankings[new.rankings.len()..] {
        let said: Vec<Vec<u32>> = ranking.rows.iter().map(|row| text(&both, *row)).collect();
        let is_old = old.rankings.iter().any(|known| known.rows.iter().map(|row| text(&old, *row)).collect::<Vec<_>>() == said);
        assert!(is_old, "{said:?}");
    }
    assert_eq!(new.with_replay(&old, 0.0, &mut stream), new);
    assert_eq!(new.with_replay(&old, 1e6, &mut stream).rankings.len(), new.rankings.len() + old.rankings.len(), "all old rankings");
    let mut joined = old.clone();
    joined.extend(&new);
    assert_eq!(joined.rankings.len(), old.rankings.len() + new.rankings.len());
    let last = (&joined.rankings[joined.rankings.len() - 1], &new.rankings[new.rankings.len() - 1]);
    assert_eq!(text(&joined, last.0.rows[0]), text(&new, last.1.rows[0]));
}
