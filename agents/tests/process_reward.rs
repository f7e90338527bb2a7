//! Process reward models: the loss of a labelled step, training on labelled steps, and measures of the labels that a model finds.

mod common;

use common::texts::{CONTEXT, VOCABULARY, transformer};
use common::{context, metric, near, optimiser};
use gradus_agents::OptimiserConfig;
use gradus_agents::process_reward::{LabelledSteps, StepLabel, StepQuality, evaluate, sigmoid, train};
use gradus_agents::reward_model::RewardModelConfig;
use gradus_base::random::{Purpose, Stream};
use gradus_nets::loss::Value;
use gradus_nets::{Behaviour, Network, Of};

#[test]
fn the_cross_entropy_and_its_derivative_are_right() {
    let cross_entropy = |score: f32, label: f32| {
        let loss = Of::<Value>::variable(score).cross_entropy(label);
        (loss.value(), loss.slope())
    };
    // - y log p - (1 - y) log(1 - p), computed in double precision
    for score in [-3.0_f32, -0.4, 0.0, 0.7, 2.5] {
        let p = 1.0 / (1.0 + f64::from(-score).exp());
        near(&[sigmoid(score).into()], &[p], "sigmoid");
        for label in [0.0_f32, 0.25, 0.5, 1.0] {
            let y = f64::from(label);
            let (loss, slope) = cross_entropy(score, label);
            near(&[loss.into()], &[-y * p.ln() - (1.0 - y) * (1.0 - p).ln()], "loss");
            let by_hand = (cross_entropy(score + 1e-2, label).0 - cross_entropy(score - 1e-2, label).0) / 2e-2;
            assert!((slope - by_hand).abs() < 1e-4, "{score}, {label}: expected {by_hand}, got {slope}");
        }
    }
    for (score, label, loss, slope) in
        [(0.0, 1.0, std::f64::consts::LN_2, -0.5), (2.0, 1.0, 0.126_928, -0.119_203), (2.0, 0.25, 1.626_928, 0.630_797)]
    {
        let (l, s) = cross_entropy(score, label);
        near(&[l.into(), s.into()], &[loss, slope], "by hand");
    }
    for (score, label, loss, slope) in [(1e4, 0.0, 1e4, 1.0), (1e4, 1.0, 0.0, 0.0), (-1e4, 1.0, 1e4, -1.0), (-1e4, 0.0, 0.0, 0.0)] {
        assert_eq!(cross_entropy(score, label), (loss, slope), "{score}, {label}");
    }
}

/// Solutions of three steps of two tokens each. A step is right until the token 3 appears.
fn solutions(seed: u64, n: usize) -> Vec<(Vec<u32>, Vec<StepLabel>)> {
    let mut stream = Stream::new(seed, Purpose::Environment, 0);
    let solution = |_| {
        let text: Vec<u32> = [4, 0].into_iter().chain((0..6).map(|_| stream.below(VOCABULARY))).collect();
        let label = |tokens: usize| f32::from(u8::from(!text[2..tokens].contains(&3)));
        let steps = [4, 6, 8].map(|tokens| StepLabel { tokens, label: label(tokens) }).to_vec();
        (text, steps)
    };
    (0..n).map(solution).collect()
}

fn labelled(solutions: &[(Vec<u32>, Vec<StepLabel>)]) -> LabelledSteps {
    LabelledSteps::new(CONTEXT, solutions.iter().map(|(text, steps)| (&text[..], &steps[..])))
}

#[test]
fn a_process_reward_model_finds_the_first_wrong_step() {
    let (shown, held_out) = (labelled(&solutions(1, 400)), labelled(&solutions(2, 200)));
    assert_eq!((shown.solutions(), shown.steps()), (400, 1200));
    let mut model = transformer(1);
    let before = evaluate(&mut model, &held_out);
    assert!(before.first_error() < 0.6, "{before:?}");
    let config = RewardModelConfig { epochs: 12, minibatch_size: 16, ..RewardModelConfig::default() };
    let report = train(&mut model, &shown, &config, &optimiser(), context(0)).unwrap();
    let after = evaluate(&mut model, &held_out);
    assert!(after.first_error() > 0.95 && after.accuracy() > 0.95 && after.accepted() > 0.9, "{after:?}, {report:?}");
    assert!(after.calibration_error() < 0.05 && after.brier() < before.brier(), "{after:?}");
    assert!(metric(&report, "reward_model/accuracy") > 0.8 && metric(&report, "reward_model/loss") < 0.5, "{report:?}");
    let mut other = transformer(9);
    other.load(&model.save()).unwrap();
    assert_eq!(evaluate(&mut other, &held_out), after);
}

/// Compares the gradient used in training with central differences of the reported loss. The solutions have different numbers of steps, one
/// of them none, and labels that are not 0 or 1.
#[test]
fn the_gradient_matches_central_differences_of_the_loss() {
    let step = |tokens, label| StepLabel { tokens, label };
    let solutions = [
        (vec![4, 0, 1, 2, 3], vec![step(3, 1.0), step(5, 0.25)]),
        (vec![4, 1, 3], vec![step(3, 0.0)]),
        (vec![4, 2], vec![]),
        (vec![4, 3, 0, 0, 1, 2, 2, 1], vec![step(4, 0.875), step(5, 0.5), step(8, 0.0)]),
    ];
    let steps = labelled(&solutions);
    let mut model = transformer(5);
    let parameters = model.parameters().to_vec();
    let config = RewardModelConfig { epochs: 1, minibatch_size: 4, ..RewardModelConfig::default() };
    // the learning rate is so small that the parameters do not change
    let still = OptimiserConfig { learning_rate: 1e-30, ..optimiser() };
    let mut loss_and_gradient = |parameters: &[f32]| {
        model.set_parameters(parameters);
        let report = train(&mut model, &steps, &config, &still, context(0)).unwrap();
        (metric(&report, "reward_model/loss"), model.last_gradient().to_vec())
    };
    let (loss, gradient) = loss_and_gradient(&parameters);
    assert!(loss > 0.0 && loss.is_finite());
    let largest = gradient.iter().fold(0.0, |most: f32, g| most.max(g.abs()));
    let mut seen = 0;
    for i in (0..parameters.len()).filter(|i| gradient[*i].abs() > 0.1 * largest) {
        seen += 1;
        let mut at = |by: f32| {
            let mut moved = parameters.clone();
            moved[i] += by;
            loss_and_gradient(&moved).0
        };
        let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
        assert!(
            (slope - f64::from(gradient[i])).abs() < 2e-3 * (1.0 + slope.abs()),
            "parameter {i}: expected {slope}, got {}",
            gradient[i]
        );
    }
    assert!(seen >= 10, "only {seen} parameters have a large gradient");
}

/// The table by hand. A step is accepted from probability 1/2 on. Only the steps up to the first wrong one count.
///
/// | labels | probabilities | counted | right | first wrong step | found |
/// |---|---|---|---|---|---|
/// | 1 1 1 | .95 .65 .5 | 3 | 3 | none | all accepted |
/// | 1 0 1 | .85 .35 .15 | 2 | 2 | 2 | 2: yes |
/// | 1 0 0 | .45 .25 .95 | 2 | 1 | 2 | 1: no |
/// | 0 | .75 | 1 | 0 | 1 | none: no |
/// | 1 1 | .95 .45 | 2 | 1 | none | a right step rejected |
#[test]
fn the_quality_of_probabilities_is_measured() {
    let mut quality = StepQuality::default();
    for (labels, probabilities) in [
        (&[1.0, 1.0, 1.0][..], &[0.95, 0.65, 0.5][..]),
        (&[1.0, 0.0, 1.0], &[0.85, 0.35, 0.15]),
        (&[1.0, 0.0, 0.0], &[0.45, 0.25, 0.95]),
        (&[0.0], &[0.75]),
        (&[1.0, 1.0], &[0.95, 0.45]),
    ] {
        quality.add(probabilities, labels);
    }
    assert_eq!((quality.steps, quality.wrong_solutions, quality.right_solutions), (10, 3, 2));
    near(&[quality.accuracy(), quality.first_error(), quality.accepted()], &[0.7, 1.0 / 3.0, 0.5], "shares");
    let squares = 0.0025 + 0.1225 + 0.25 + 0.0225 + 0.1225 + 0.3025 + 0.0625 + 0.5625 + 0.0025 + 0.3025;
    near(&[quality.brier()], &[squares / 10.0], "Brier score");
    // intervals: .95 .95 (labels 1 1), .65 (1), .5 (1), .85 (1), .35 (0), .45 .45 (1 1), .25 (0), .75 (0)
    let calibration = 0.1 + 0.35 + 0.5 + 0.15 + 0.35 + 1.1 + 0.25 + 0.75;
    near(&[quality.calibration_error()], &[calibration / 10.0], "calibration error");
    let none = StepQuality::default();
    assert!(none.accuracy().is_nan() && none.first_error().is_nan() && none.accepted().is_nan() && none.brier().is_nan());
}
