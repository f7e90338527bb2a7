//! The replay buffer, compared with lists of everything that was added to it.

use std::sync::Arc;

use gradus_agents::{End, GroupId, Kept, Replay, Rollout, Scaling, Segment};
use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::{Data, Tensor, Tensors};
use gradus_envs::wrappers::RunningStatistics;
use gradus_envs::{Image, Space};
use gradus_nets::{ActionRows, Observations, Store};

/// What followed a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    Terminated,
    /// The final observation.
    Truncated(f32),
    Continues,
}

/// Environments that count: an observation is the number of the environment x 10 000 + the number of its step, and the final observation of a
/// truncated episode is its negative. Episodes end at random.
#[derive(Clone)]
struct Counting {
    envs: usize,
    /// For each environment: observation, action, reward, and what follows.
    history: Vec<Vec<(f32, u32, f32, Next)>>,
    stream: Stream,
}

impl Counting {
    fn new(envs: usize) -> Self {
        Self { envs, history: vec![Vec::new(); envs], stream: Stream::new(5, Purpose::Environment, 0) }
    }

    fn observation(env: usize, t: usize) -> f32 {
        (env * 10_000 + t) as f32
    }

    /// Returns the next rollout. The masks allow action 1 only in observations of even steps.
    fn rollout(&mut self, steps: usize, is_masked: bool) -> Rollout {
        let (mut observations, mut successors, mut rewards, mut actions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut segments: Vec<Segment> = Vec::new();
        for env in 0..self.envs {
            let (first, mut begin) = (self.history[env].len(), rewards.len());
            for t in first..first + steps {
                let (action, reward) = (self.stream.below(3), self.stream.unit_f32());
                let next = match self.stream.below(8) {
                    0 => Next::Terminated,
                    1 => Next::Truncated(-Self::observation(env, t + 1)),
                    _ => Next::Continues,
                };
                self.history[env].push((Self::observation(env, t), action, reward, next));
                observations.push(Self::observation(env, t));
                rewards.push(reward);
                actions.push(action);
                let successor = successors.len();
                let end = match next {
                    Next::Terminated => End::Terminated,
                    Next::Truncated(last) => {
                        successors.push(last);
                        End::Truncated { successor }
                    }
                    Next::Continues if t + 1 == first + steps => {
                        successors.push(Self::observation(env, t + 1));
                        End::Cut { successor }
                    }
                    Next::Continues => continue,
                };
                segments.push(Segment { range: begin..rewards.len(), end, group: GroupId(env as u32) });
                begin = rewards.len();
            }
        }
        let n = rewards.len();
        segments.iter_mut().for_each(|segment| *segment = segment.moved(0, n));
        let mask = |row: &f32| [true, (row.abs() as u32).is_multiple_of(2), true];
        let (masks, next_masks) = (observations.iter().flat_map(mask).collect(), successors.iter().flat_map(mask).collect());
        let mut store = Store::new(1, [observations, successors].concat(), ActionRows::Discrete(actions));
        if is_masked {
            store = store.with_masks(masks);
            store.next_masks = Some(next_masks);
        }
        Rollout::new(store, rewards, vec![0.0; n], segments)
    }

    /// Checks that the segments of a sample are parts of the last `kept` steps of an environment. Returns the observations they begin with.
    fn check(&self, replay: &Replay, kept: usize, horizon: usize, is_masked: bool) -> Vec<f32> {
        let sample = replay.sample(300, horizon, &mut Stream::new(1, Purpose::Replay, self.history[0].len() as u64));
        let (rollout, mut starts, mut next) = (&sample.rollout, Vec::new(), 0);
        let ActionRows::Discrete(actions) = &rollout.store.actions else { panic!("expected discrete actions") };
        assert_eq!((rollout.segments.len(), sample.first.len(), &sample.weights[..]), (300, 300, &[1.0; 300][..]));
        for (segment, first) in rollout.segments.iter().zip(&sample.first) {
            assert_eq!(segment.range.start, *first as usize);
            let start = rollout.store.observation(segment.range.start)[0];
            let (env, mut t) = (start as usize / 10_000, start as usize % 10_000);
            let history = &self.history[env];
            assert!(t + kept >= history.len(), "decision {t} of {} is too old", history.len());
            for i in segment.range.clone() {
                let (observation, action, reward, _) = history[t];
                assert_eq!((rollout.store.observation(i)[0], actions[i], rollout.rewards[i]), (observation, action, reward));
                t += 1;
            }
            assert!(
                history[..t - 1][t - segment.range.len()..].iter().all(|(.., next)| *next == Next::Continues),
                "an episode ended before"
            );
            let successor = match (segment.end, history[t - 1].3) {
                (End::Terminated, Next::Terminated) => None,
                (End::Truncated { successor }, Next::Truncated(last)) => Some((successor, last)),
                (End::Cut { successor }, Next::Continues) => {
                    assert!(segment.range.len() == horizon || t == history.len(), "cut before its horizon");
                    Some((successor, Self::observation(env, t)))
                }
                (end, next) => panic!("got {end:?}, but {next:?}"),
            };
            if let Some((row, expected)) = successor {
                assert_eq!((row, rollout.store.observation(row)[0]), (rollout.len() + next, expected));
                if is_masked {
                    let mask = &rollout.store.next_masks.as_ref().unwrap()[next * 3..next * 3 + 3];
                    assert_eq!(mask, [true, (expected.abs() as u32).is_multiple_of(2), true]);
                }
                next += 1;
            }
            starts.push(start);
        }
        assert_eq!(rollout.store.rows(), rollout.len() + next);
        starts
    }
}

#[test]
fn a_sample_has_the_decisions_that_were_added() {
    for (envs, capacity, steps, is_masked) in
        [(1, 50, 1, false), (1, 64, 7, true), (3, 100, 4, true), (4, 1000, 10, false), (2, 9, 5, false)]
    {
        let (mut world, mut replay) = (Counting::new(envs), Replay::new(capacity, envs));
        for _ in 0..60 {
            replay.extend(&world.rollout(steps, is_masked));
            let kept = world.history[0].len().min(capacity / envs);
            assert_eq!(replay.len(), envs * kept);
            for horizon in [1, 2, 3, 5] {
                world.check(&replay, kept, horizon, is_masked);
            }
        }
        // every decision is drawn, the oldest and the latest too
        let kept = world.history[0].len().min(capacity / envs);
        let mut starts: Vec<f32> = (0..40)
            .flat_map(|_| {
                replay.extend(&world.rollout(steps, is_masked));
                world.check(&replay, kept, 1, is_masked)
            })
            .collect();
        starts.sort_by(f32::total_cmp);
        starts.dedup();
        assert!(starts.len() > envs * kept.min(40 * steps) / 2, "{envs} environments: {} of {} decisions", starts.len(), envs * kept);
    }
}

/// Episodes that are interrupted end as if they had been truncated, and nothing joins them to what follows.
#[test]
fn an_interrupted_episode_is_truncated() {
    for (envs, capacity, is_masked) in [(1, 50, false), (3, 60, true)] {
        let (mut world, mut replay) = (Counting::new(envs), Replay::new(capacity, envs));
        replay.interrupt(); // nothing is going on yet
        for _ in 0..20 {
            replay.extend(&world.rollout(4, is_masked));
            replay.interrupt();
            replay.interrupt();
            for (env, history) in world.history.iter_mut().enumerate() {
                let t = history.len();
                let next = &mut history[t - 1].3;
                if *next == Next::Continues {
                    *next = Next::Truncated(Counting::observation(env, t));
                }
            }
            world.check(&replay, world.history[0].len().min(capacity / envs), 3, is_masked);
        }
    }
}

/// A page that was saved before an interruption is another one after it, also if it was full, and a buffer that was saved has the same pages when it is loaded.
#[test]
fn an_interruption_changes_the_page() {
    let (mut world, mut replay) = (Counting::new(2), Replay::new(8, 2));
    replay.extend(&world.rollout(4, false)); // full
    let before = replay.pages();
    replay.interrupt();
    let after = replay.pages();
    assert!(before.len() == after.len() && before != after, "{before:?} {after:?}");
    replay.interrupt();
    assert_eq!(replay.pages(), after, "nothing was going on");
    let mut loaded = Replay::new(8, 2);
    loaded.load(&replay.save()).unwrap();
    after.iter().try_for_each(|page| loaded.load_page(*page, &replay.page(*page))).unwrap();
    loaded.finish_loading().unwrap();
    assert_eq!(loaded.pages(), after);
    replay.extend(&world.rollout(4, false));
    assert!(replay.pages().iter().all(|page| page.version == 8), "what was interrupted is forgotten: {:?}", replay.pages());
}

/// P(i) = p_i^alpha / sum p^alpha, and w_i = (N P(i))^-beta / max w.
#[test]
fn priorities_decide_how_often_a_decision_is_drawn() {
    let (mut world, mut replay) = (Counting::new(2), Replay::new(8, 2).with_priorities(0.5));
    replay.extend(&world.rollout(4, false));
    // all new decisions have the same priority
    let mut sample = replay.sample(8, 1, &mut Stream::new(1, Purpose::Replay, 0));
    replay.weigh(&mut sample, 0.7);
    let mut slots = sample.slots.clone();
    slots.sort_unstable();
    assert_eq!((slots, sample.weights.clone()), ((0..8).collect(), vec![1.0; 8]));

    let priorities = [4.0, 1.0, 0.25, 9.0, 16.0, 1.0, 0.0, 4.0];
    let of_slots: Vec<f32> = sample.slots.iter().map(|slot| priorities[*slot]).collect();
    replay.set_priorities(&sample, &of_slots);
    let roots = priorities.map(f32::sqrt);
    let total: f32 = roots.iter().sum();
    let (mut counts, n) = ([0.0_f32; 8], 4000);
    for update in 0..n / 16 {
        let mut sample = replay.sample(16, 1, &mut Stream::new(2, Purpose::Replay, update as u64));
        replay.weigh(&mut sample, 0.5);
        let weight = |slot: usize| (8.0 * roots[slot] / total).powf(-0.5);
        let greatest = sample.slots.iter().map(|slot| weight(*slot)).fold(0.0, f32::max);
        for (slot, got) in sample.slots.iter().zip(&sample.weights) {
            assert!((got - weight(*slot) / greatest).abs() < 1e-6, "slot {slot}: expected {}, got {got}", weight(*slot) / greatest);
            counts[*slot] += 1.0;
        }
    }
    for (slot, count) in counts.into_iter().enumerate() {
        let expected = n as f32 * roots[slot] / total;
        // stratified draws vary less than independent ones
        assert!((count - expected).abs() <= 3.0 * expected.sqrt(), "slot {slot}: expected {expected}, got {count}");
    }
    assert_eq!(counts[6], 0.0);

    // a new decision gets the greatest priority so far, 16, and replaces the oldest one
    replay.extend(&world.rollout(1, false));
    let probability = |replay: &Replay, slot: usize| {
        let drawn = (0..500).flat_map(|i| replay.sample(8, 1, &mut Stream::new(3, Purpose::Replay, i)).slots);
        drawn.filter(|other| *other == slot).count() as f32 / 4000.0
    };
    let total = total - roots[0] - roots[4] + 4.0 + 4.0;
    assert!((probability(&replay, 0) - 4.0 / total).abs() < 0.02);
}

/// A buffer that is saved by pages, of which only the changed ones are saved again, gives the same samples.
#[test]
fn a_saved_buffer_gives_the_same_samples() {
    // after 5 rounds of 3277 decisions, the second page has a single decision
    let cases = [(1, 40_000, 700, true, 15), (3, 60_000, 500, false, 15), (1, 40_000, 3277, false, 1)];
    for (envs, capacity, steps, is_masked, every) in cases {
        let make = || Replay::new(capacity, envs).with_priorities(0.6);
        let (mut world, mut replay) = (Counting::new(envs), make());
        let mut files = std::collections::BTreeMap::new();
        for round in 0..if every == 1 { 30 } else { 90 } {
            replay.extend(&world.rollout(steps, is_masked));
            let sample = replay.sample(64, 3, &mut Stream::new(1, Purpose::Replay, round));
            let priorities: Vec<f32> = sample.slots.iter().map(|slot| (slot % 7) as f32).collect();
            replay.set_priorities(&sample, &priorities);
            if round % every != every / 4 {
                continue;
            }
            let (before, pages) = (files.len(), replay.pages());
            for page in &pages {
                files.entry((page.number, page.version)).or_insert_with(|| replay.page(*page));
            }
            let written = files.len() - before;
            assert!(written <= 2 + every as usize * steps * envs / 16_384, "round {round}: {written} of {} pages written", pages.len());
            let mut loaded = make();
            loaded.load(&replay.save()).unwrap();
            for page in pages {
                loaded.load_page(page, &files[&(page.number, page.version)]).unwrap();
            }
            loaded.finish_loading().unwrap();
            // with many draws, every decision is drawn
            let n = if every == 1 { 5000 } else { 50 };
            for i in 0..20 {
                let sample = |replay: &Replay| replay.sample(n, 4, &mut Stream::new(9, Purpose::Replay, i));
                let (ours, theirs) = (sample(&replay), sample(&loaded));
                assert_eq!((ours.rollout, ours.slots), (theirs.rollout, theirs.slots), "round {round}");
            }
        }
    }
}

/// The buffer keeps raw numbers; a sample is normalised with the statistics of the latest rollout, next observations included.
#[test]
fn samples_are_normalised_with_the_latest_statistics() {
    let (mut world, mut replay) = (Counting::new(2), Replay::new(100, 2));
    // population mean 20 and variance 100; mean 5 and variance 25
    for (observations, mean, std, reward_scale) in [([10.0, 30.0], 20.0, 10.0, 0.25), ([0.0, 10.0], 5.0, 5.0, 4.0)] {
        let statistics = RunningStatistics::of(&observations, 1);
        let scaling = Scaling { observations: Some(Arc::new(statistics)), reward_scale: Some(reward_scale), clip: 3.0 };
        replay.extend(&Rollout { scaling, ..world.rollout(20, false) });
        let sample = replay.sample(200, 2, &mut Stream::new(2, Purpose::Replay, 0));
        let mut raw = replay.clone();
        raw.extend(&Rollout { scaling: Scaling::default(), ..world.clone().rollout(0, false) });
        let expected = raw.sample(200, 2, &mut Stream::new(2, Purpose::Replay, 0)).rollout;
        assert!(sample.rollout.store.rows() > sample.rollout.len(), "no next observations");
        for row in 0..sample.rollout.store.rows() {
            let (got, raw) = (sample.rollout.store.observation(row)[0], expected.store.observation(row)[0]);
            assert!((got - ((raw - mean) / std).clamp(-3.0, 3.0)).abs() < 1e-4, "row {row}: {got} of {raw}");
        }
        for (got, raw) in sample.rollout.rewards.iter().zip(&expected.rewards) {
            assert!((got - (raw / reward_scale as f32).clamp(-3.0, 3.0)).abs() < 1e-5, "reward {raw}: {got}");
        }
    }
}

/// Frames of an observation.
const FRAMES: usize = 3;
/// One frame: the bytes of the number that a counting environment shows.
const FRAME: usize = 4;

impl Counting {
    /// The numbers of the last frames when an environment shows `number`, which is its observation of step t or the final one of step t: those before
    /// it in its episode, or the first one again.
    fn stacked(&self, env: usize, t: usize, number: f32) -> [f32; FRAMES] {
        // a final observation stands in place of the first one of the next episode
        let last = if number < 0.0 { t - 1 } else { t };
        let begin = (0..last).rev().find(|before| self.history[env][*before].3 != Next::Continues).map_or(0, |before| before + 1);
        std::array::from_fn(|i| match FRAMES - 1 - i {
            0 => number,
            back => Self::observation(env, t.saturating_sub(back).max(begin)),
        })
    }

    /// The same rollout, seen as stacked images, or as one-hot codes of the step.
    fn seen_as(&self, rollout: &Rollout, kept: Kept) -> Rollout {
        let mut observations = match kept {
            Kept::Frames(frames) => Observations::empty(&Space::Image(Image { frames, height: 2, width: 2, channels: 1, largest: 255 })),
            _ => Observations::Rows { rows: Vec::new(), width: CODES },
        };
        for row in 0..rollout.store.rows() {
            let number = rollout.store.observation(row)[0];
            observations.push(&self.shown(number, kept));
        }
        Rollout { store: Store::of(observations, rollout.store.actions.clone()), ..rollout.clone() }
    }

    /// The row that is seen when an environment shows `number`.
    fn shown(&self, number: f32, kept: Kept) -> Vec<f32> {
        let (env, t) = (number.abs() as usize / 10_000, number.abs() as usize % 10_000);
        match kept {
            Kept::Frames(_) => self.stacked(env, t, number).iter().flat_map(|number| number.to_le_bytes().map(f32::from)).collect(),
            _ => (0..CODES).map(|i| f32::from(u8::from(i == t % CODES))).collect(),
        }
    }
}

/// States of the one-hot codes.
const CODES: usize = 11;

/// A buffer that keeps frames or numbers gives the samples of one that keeps rows, also after a checkpoint, and it keeps a frame once.
#[test]
fn frames_and_numbers_give_the_samples_of_rows() {
    for kept in [Kept::Frames(FRAMES), Kept::Numbers] {
        for (envs, capacity, steps) in [(1, 60, 1), (2, 100, 7)] {
            let make = || Replay::new(capacity, envs).keeping(kept);
            let (mut world, mut rows, mut own) = (Counting::new(envs), Replay::new(capacity, envs), make());
            for round in 0..60 {
                let rollout = world.rollout(steps, false);
                own.extend(&world.seen_as(&rollout, kept));
                rows.extend(&rollout);
                let mut loaded = make();
                loaded.load(&own.save()).unwrap();
                let pages = own.pages();
                let saved: Vec<_> = pages.iter().map(|page| own.page(*page)).collect();
                pages.iter().zip(&saved).for_each(|(page, tensors)| loaded.load_page(*page, tensors).unwrap());
                loaded.finish_loading().unwrap();
                if let Kept::Numbers = kept {
                    check_earlier_checkpoint(&own, &saved);
                }
                let sample = |replay: &Replay| replay.sample(100, 3, &mut Stream::new(3, Purpose::Replay, round)).rollout;
                let (expected, got) = (sample(&rows), sample(&own));
                assert_eq!(got, sample(&loaded), "round {round}");
                assert_eq!((&expected.segments, &expected.rewards), (&got.segments, &got.rewards));
                let width = world.shown(0.0, kept).len();
                let numbers: Vec<f32> = match got.store.observations() {
                    Observations::Bytes { rows, .. } => rows.iter().map(|byte| f32::from(*byte)).collect(),
                    Observations::Rows { rows, .. } => rows.clone(),
                    _ => unreachable!(),
                };
                for (row, seen) in numbers.chunks(width).enumerate() {
                    let number = expected.store.observation(row)[0];
                    assert_eq!(seen, world.shown(number, kept), "round {round}, row {row}: {number}");
                }
                if let (Kept::Frames(_), [page]) = (kept, &saved[..]) {
                    let frames = 8 * page["observations_frames"].shape[0] / FRAME;
                    assert!(frames <= own.len() + FRAMES * envs, "{frames} frames of {} observations", own.len());
                }
            }
        }
    }
}

/// A checkpoint of earlier versions, in which numbers are one-hot codes, and the latest of them one list, gives the same buffer.
fn check_earlier_checkpoint(replay: &Replay, pages: &[Tensors]) {
    let codes = |tensor: &Tensor| -> Vec<f32> {
        let Data::U64(numbers) = &tensor.data else { panic!("numbers are saved as such") };
        numbers.iter().flat_map(|number| (0..CODES as u64).map(move |i| f32::from(u8::from(i == *number)))).collect()
    };
    let mut state = replay.save();
    let latest = codes(&state["latest"]);
    state.insert("latest".into(), Tensor::f32(&[latest.len()], latest));
    let mut loaded = replay.clone();
    loaded.load(&state).unwrap();
    for (page, tensors) in replay.pages().into_iter().zip(pages) {
        let mut tensors = tensors.clone();
        for name in ["observations", "final_observations"] {
            let rows = codes(&tensors[name]);
            tensors.insert(name.into(), Tensor::f32(&[rows.len() / CODES, CODES], rows));
        }
        loaded.load_page(page, &tensors).unwrap();
    }
    loaded.finish_loading().unwrap();
    let sample = |replay: &Replay| replay.sample(100, 3, &mut Stream::new(3, Purpose::Replay, 0)).rollout;
    assert_eq!(sample(replay), sample(&loaded));
}
