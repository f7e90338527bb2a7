//! The checker: all environments pass, and each planted fault is found in its topic with a message that names the fault.

use std::sync::atomic::{AtomicU32, Ordering};

use gradus_base::random::{Purpose, Stream};
use gradus_checker::{Severity, Topic, check, check_world};
use gradus_envs::wrappers::{ActionMask, FrameStack, TimeAware};
use gradus_envs::{Action, CartPole, Env, EnvError, EnvSpec, Ink, Scene, Shape, Space, Step, TimeLimit, registry};

/// The fault of a [`Walk`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Nothing,
    BoundsReversed,
    BoundNaN,
    NoDimension,
    BoundMissing,
    NoAction,
    SpacesDiffer,
    ObservationUnwritten,
    ObservationInfinite,
    ObservationOutside,
    CellBetween,
    RewardNaN,
    RewardTooLarge,
    Breaks,
    ResetPanics,
    StartFromCounter,
    StartUnlikeSeed,
    SharedRng,
    ResetForgetsTime,
    UnfinishedLeavesMark,
    EndLeavesMark,
    SaveWithoutRng,
    LoadWithoutTime,
    LoadRefuses,
    LoadTakesAll,
    NoEnd,
    LimitTerminates,
    LastActionPanics,
    CornerPanics,
    PushedOutside,
    MaskLater,
    MaskEmpty,
    MaskUnwritten,
    MaskTooWide,
    MaskOfBox,
    ReseedIsAnotherStart,
    ReseedIgnored,
    ReseedUnsaved,
    ReseedStays,
    ReseedMovesPicture,
    PictureNaN,
}
use Fault::*;

static RESETS: AtomicU32 = AtomicU32::new(0);
static INSTANCES: AtomicU32 = AtomicU32::new(0);

/// A walk on a line. An action moves by -1, 0 or 1, and with probability 1/4 a step moves one more to the right. An episode terminates at
/// distance 10 and is truncated after 60 steps. If actions are a box, the first of an action's two numbers, rounded, is the move.
struct Walk {
    fault: Fault,
    at: i64,
    elapsed: u64,
    dynamics_seed: u64,
    rng: Stream,
    is_reseeded: bool,
    mark: f32,
    instance: u32,
}

impl Walk {
    fn new(fault: Fault) -> Self {
        let rng = Stream::new(0, Purpose::Environment, 0);
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
        Self { fault, at: 0, elapsed: 0, dynamics_seed: 0, rng, is_reseeded: false, mark: 0.0, instance }
    }

    fn has_box(&self) -> bool {
        matches!(self.fault, CornerPanics | MaskOfBox | PushedOutside)
    }

    fn draw_from(&mut self, seed: u64) {
        self.dynamics_seed = seed;
        self.rng = Stream::new(seed, Purpose::Environment, 1);
    }

    fn show(&self, row: &mut [f32]) {
        if self.fault == CellBetween {
            row[0] = self.at as f32 + 10.25;
            return;
        }
        row[0] = self.at as f32;
        match (self.fault, self.elapsed) {
            (ObservationUnwritten, 3..) => {}
            (ObservationInfinite, 5) => row[1] = f32::INFINITY,
            (ObservationOutside, 9) => row[1] = 61.0,
            _ => row[1] = self.elapsed as f32 + self.mark,
        }
    }
}

impl Env for Walk {
    fn observation_space(&self) -> Space {
        let (low, high) = (vec![-12.0, 0.0], vec![12.0, 60.0]);
        match self.fault {
            BoundsReversed => Space::Box { low: high, high: low },
            BoundNaN => Space::Box { low, high: vec![12.0, f32::NAN] },
            NoDimension => Space::Box { low: vec![], high: vec![] },
            BoundMissing => Space::Box { low, high: vec![12.0] },
            SpacesDiffer => Space::Box { low, high: vec![12.0, 60.0 + self.instance as f32] },
            CellBetween => Space::Discrete(25),
            NoEnd => Space::Box { low: vec![f32::NEG_INFINITY; 2], high: vec![f32::INFINITY; 2] },
            _ => Space::Box { low, high },
        }
    }
    fn action_space(&self) -> Space {
        match self.fault {
            NoAction => Space::Discrete(0),
            _ if self.has_box() => Space::Box { low: vec![-1.0, f32::NEG_INFINITY], high: vec![1.0, 0.0] },
            _ => Space::Discrete(3),
        }
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        let start = i64::from(Stream::new(seed, Purpose::Environment, 0).below(7)) - 3;
        if self.fault == UnfinishedLeavesMark {
            self.mark = if (1..60).contains(&self.elapsed) && self.at.abs() < 10 { 0.5 } else { 0.0 };
        }
        self.at = start;
        match self.fault {
            ResetPanics => panic!("no start"),
            StartFromCounter => self.at = i64::from(RESETS.fetch_add(1, Ordering::Relaxed) % 5),
            StartUnlikeSeed => self.at = 2,
            _ => {}
        }
        if self.fault != ResetForgetsTime {
            self.elapsed = 0;
        }
        if !(self.fault == ReseedStays && self.is_reseeded) {
            self.draw_from(seed);
        }
        self.show(observation);
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let rng = match self.fault {
            SharedRng => RESETS.fetch_add(1, Ordering::Relaxed) % 4,
            _ => self.rng.below(4),
        };
        self.at += i64::from(rng == 0);
        self.at += match action {
            Action::Discrete(action) => {
                assert!(!(self.fault == LastActionPanics && action == 2), "no way to the right");
                i64::from(action) - 1
            }
            Action::Continuous(push) => {
                assert!(!(self.fault == CornerPanics && push[0] == 1.0 && push[1] == -20.0), "a corner with {push:?}");
                let outside = self.fault == PushedOutside && push[0] == 1.0 && self.at >= 8; // random actions are not exactly 1
                push[0].round() as i64 + if outside { 5 } else { 0 }
            }
        };
        self.elapsed += 1;
        let terminated = self.at.abs() >= 10 && !matches!(self.fault, NoEnd | LimitTerminates);
        if self.fault == LimitTerminates {
            self.at = self.at.clamp(-9, 9);
        }
        let limit = self.elapsed == 60 && self.fault != NoEnd;
        if self.fault == EndLeavesMark && (terminated || limit) {
            self.mark = 0.5;
        }
        self.show(observation);
        let reward = match (self.fault, self.elapsed) {
            (RewardNaN, 6) => f64::NAN,
            (RewardTooLarge, 6) => 1e39,
            (Breaks, 6..) => f64::NAN,
            _ => self.at as f64 / 10.0,
        };
        match self.fault {
            LimitTerminates => Step { reward, terminated: limit, truncated: false },
            _ => Step { reward, terminated, truncated: limit },
        }
    }
    fn fault(&self) -> Option<String> {
        (self.fault == Breaks && self.elapsed >= 6).then(|| "the line broke".into())
    }
    fn save(&self) -> Vec<u64> {
        let position = if self.fault == SaveWithoutRng { 0 } else { self.rng.position() };
        let seed = if self.fault == ReseedUnsaved && self.is_reseeded { 0 } else { self.dynamics_seed };
        vec![self.at as u64, self.elapsed, seed, position]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (at, elapsed, seed, position) = match (self.fault, state) {
            (LoadRefuses, _) => return Err(EnvError::State("not today".into())),
            (_, [at, elapsed, seed, position]) => (*at, *elapsed, *seed, *position),
            (LoadTakesAll, _) => return Ok(()),
            _ => return Err(EnvError::State(format!("walk: expected 4 words, got {}", state.len()))),
        };
        self.at = at as i64;
        if self.fault != LoadWithoutTime {
            self.elapsed = elapsed;
        }
        self.draw_from(seed);
        self.rng.seek(position);
        Ok(())
    }
    fn reseed(&mut self, seed: u64) {
        self.is_reseeded = true;
        match self.fault {
            ReseedIsAnotherStart => self.reset(seed, &mut [0.0; 2]),
            ReseedIgnored => self.draw_from(u64::from(RESETS.fetch_add(1, Ordering::Relaxed))),
            ReseedMovesPicture => {
                self.at += 1;
                self.draw_from(seed);
            }
            _ => self.draw_from(seed),
        }
    }
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        match self.fault {
            MaskEmpty => mask.fill(self.elapsed < 4),
            MaskLater if self.elapsed < 2 => return false,
            MaskLater => mask.fill(true),
            MaskUnwritten => mask[1..].fill(true),
            MaskTooWide => mask[3] = false,
            MaskOfBox => {}
            _ if self.has_box() => return false,
            _ => mask.copy_from_slice(&[true, self.at > 0, true]),
        }
        true
    }
    fn render(&self) -> Option<Scene> {
        if !matches!(self.fault, ReseedMovesPicture | PictureNaN) {
            return None;
        }
        let x = self.at as f64 / if self.fault == PictureNaN { self.elapsed as f64 - 2.0 } else { 1.0 };
        Some(Scene { x: [-12.0, 12.0], y: [0.0, 1.0], shapes: vec![Shape::Disc { centre: [x, 0.0], radius: 0.1, ink: Ink::Body }] })
    }
}

/// Each fault with the beginning of a finding about it.
const PLANTED: [(Fault, &str); 39] = [
    (BoundsReversed, "spaces: observation space, dimension 0: expected low <= high, got low 12.0 and high -12.0"),
    (BoundNaN, "spaces: observation space, dimension 1: expected low <= high, got low 0.0 and high NaN"),
    (NoDimension, "spaces: observation space: expected at least 1 dimension, got 0"),
    (BoundMissing, "spaces: observation space: expected 2 upper bounds, got 1"),
    (NoAction, "spaces: action space: expected at least 1 element, got Discrete(0)"),
    (SpacesDiffer, "spaces: expected two instances to have the same spaces, got different ones"),
    (ObservationUnwritten, "observations: seed 0, step 3: observation[1]: expected a written number, got NaN or an unwritten element"),
    (ObservationInfinite, "observations: seed 0, step 5: observation[1]: expected a finite number, got inf"),
    (ObservationOutside, "observations: seed 0, step 9: observation[1]: expected 0.0 to 60.0, got 61.0"),
    (CellBetween, "observations: seed 0, step 0: observation: expected a whole number from 0 to 24, got 10.25"),
    (RewardNaN, "rewards: seed 0, step 6: reward: expected a finite f32, got NaN"),
    (RewardTooLarge, "rewards: seed 0, step 6: reward: expected a finite f32, got 1e39"),
    (Breaks, "observations: expected no error, got \"the line broke\" (last played: Discrete("),
    (StartFromCounter, "seeding: reset with seed 0 again: start: observation[0]: expected "),
    (StartUnlikeSeed, "seeding: expected starts that differ from seed to seed, got the same observation for seeds 0 to 7"),
    (SharedRng, "determinism: seed 0, on a second instance: step "),
    (ResetForgetsTime, "determinism: seed 0, a second time: start: observation[1]: expected 0.0, got 18.0"),
    (UnfinishedLeavesMark, "determinism: seed 0, after an unfinished episode: start: observation[1]: expected 0.0, got 0.5"),
    (EndLeavesMark, "determinism: seed 0, a second time: start: observation[1]: expected 0.0, got 0.5"),
    (SaveWithoutRng, "checkpoints: seed 0, loaded after step 1 by a fresh instance: step 6: observation[0]: expected 3.0, got 2.0"),
    (LoadWithoutTime, "checkpoints: seed 0, loaded after step 0 by an instance in use and saved again: expected the same words"),
    (
        LoadRefuses,
        "checkpoints: seed 0, loaded after step 0 by a fresh instance: expected no error, got \"state of the environment: not today",
    ),
    (LoadTakesAll, "checkpoints: a saved state cut from 4 words to 3: expected an error, got none"),
    (NoEnd, "ends: expected every episode to end within 10000 random steps, got 8 of 8 that did not"),
    (LimitTerminates, "ends: expected a time limit to truncate, got `terminated` after exactly 60 steps in all episodes"),
    (LastActionPanics, "observations: expected no panic, got \"no way to the right\" (last played: Discrete(2))"),
    (CornerPanics, "actions: expected no panic, got \"a corner with [1.0, -20.0]\" (last played: Continuous([1.0, -20.0]))"),
    (PushedOutside, "actions: seed 0, always Continuous([1.0, -20.0]), step "),
    (MaskEmpty, "masks: seed 0, step 4: expected at least 1 of 3 actions to be marked, got none"),
    (
        MaskLater,
        "masks: seed 0, step 2: expected a mask in every state or in none (all elements true where every action is allowed), got one after none",
    ),
    (MaskUnwritten, "masks: seed 0, step 0: mask[0]: expected a written element, got its previous value"),
    (
        MaskTooWide,
        "masks: expected no panic, got \"index out of bounds: the len is 3 but the index is 3\" (last played: reset with seed 0)",
    ),
    (MaskOfBox, "masks: expected no mask for Box(2 dimensions, low [-1.0, -inf], high [1.0, 0.0]), got one"),
    (
        ReseedIsAnotherStart,
        "dynamics: expected a dynamics seed to keep the start, got the episode of a reset with the dynamics seed for all 7 seeds",
    ),
    (ReseedIgnored, "dynamics: seed 0, dynamics seed 1, a second time: step "),
    (
        ReseedUnsaved,
        "dynamics: with dynamics seed 1, seed 0, loaded after step 0 by a fresh instance: step 6: observation[0]: expected 2.0, got 3.0",
    ),
    (ReseedStays, "dynamics: reset with seed 0 after an episode with dynamics seed 1: step 5: observation[0]: expected 2.0, got 3.0"),
    (ReseedMovesPicture, "dynamics: seed 0, dynamics seed 1: expected the same picture of the start, got another"),
    (PictureNaN, "pictures: seed 0, step 2: picture, shape 0: expected finite numbers, got inf"),
];

#[test]
fn every_planted_fault_is_found() {
    for (fault, expected) in PLANTED {
        let mut findings = check(move || Box::new(Walk::new(fault)));
        findings.retain(|finding| finding.severity != Severity::Skipped);
        let all: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(all.iter().any(|finding| finding.starts_with(expected)), "{fault:?}: expected {expected}, got {all:#?}");
        assert!(all.iter().all(|finding| finding.contains("expected ") && finding.contains(", got ")), "{all:#?}");
        let is_note = matches!(fault, StartUnlikeSeed | NoEnd | LimitTerminates);
        assert!(findings.iter().all(|finding| (finding.severity == Severity::Note) == is_note), "{fault:?}: {findings:?}");
        // one mistake is one fault
        assert_eq!(findings.len(), 1, "{fault:?}: {all:#?}");
    }
}

#[test]
fn a_broken_reset_is_reported_once() {
    let message = |world: &EnvSpec| check_world(world).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let counter = EnvSpec::new("counter", || Walk::new(StartFromCounter));
    let seeding = message(&counter);
    assert!(seeding.starts_with("seeding: reset with seed 0 again: start: ") && seeding.matches("expected").count() == 1, "{seeding}");
    assert!(seeding.ends_with("lockstep: not checked, because of the fault in seeding"), "{seeding}");
    let panics = EnvSpec::new("panics", || Walk::new(ResetPanics));
    let panic = message(&panics);
    assert_eq!(panic.matches("expected no panic").count(), 1, "{panic}");
    assert_eq!(panic.matches("not checked, because of the fault in observations").count(), 10, "{panic}");
}

#[test]
fn a_walk_without_fault_passes_with_and_without_wrappers() {
    let walk = || Walk::new(Nothing);
    assert_eq!(check(move || Box::new(walk())), []);
    assert_eq!(check(move || Box::new(FrameStack::new(TimeAware::new(walk(), 60), 3))), []);
    assert_eq!(check(move || Box::new(ActionMask::new(TimeLimit::new(walk(), 20), |_, mask| mask[0] = false))), []);
}

/// CartPole also passes without its time limit: random actions terminate it.
#[test]
fn cartpole_passes_with_and_without_a_limit() {
    assert_eq!(check(|| Box::new(CartPole::default())), []);
    assert_eq!(check_world(&registry::find("cartpole").unwrap()), []);
}

#[test]
fn all_registered_environments_pass() {
    for world in registry::all() {
        let faults: Vec<String> =
            check_world(&world).iter().filter(|finding| finding.severity == Severity::Fault).map(ToString::to_string).collect();
        assert!(faults.is_empty(), "{}: {faults:#?}", world.name);
    }
}

#[test]
fn topics_have_names() {
    assert_eq!(
        Topic::ALL.map(|topic| topic.to_string()).join(" "),
        "spaces observations rewards seeding determinism checkpoints ends actions masks dynamics pictures lockstep"
    );
    assert_eq!(format!("[{:<8}]", Topic::Ends), "[ends    ]");
}

#[test]
fn a_vector_that_differs_from_single_environments_is_found() {
    let cartpole = registry::find("cartpole").unwrap();
    let findings = check_world(&cartpole.clone().with_vectors_of(&EnvSpec::limited("short", 11, CartPole::default)));
    let step = "expected reward 1.0 and Terminated, got reward 1.0 and Both";
    assert_eq!(findings.iter().map(ToString::to_string).collect::<Vec<_>>(), [format!("lockstep: environment 0 of 5, step 11: {step}")]);
    let findings = check_world(&cartpole.clone().with_vectors_of(&cartpole.time_aware(500)));
    assert!(findings.len() == 1 && findings[0].message.starts_with("expected the spaces of one environment"), "{findings:?}");
}
