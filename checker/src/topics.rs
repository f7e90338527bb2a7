//! The checks, one function per topic.

use super::Outcome;
use super::episode::{Chosen, Player, StepRecord, difference, within};
use gradus_envs::{Env, Scene, Shape, Space};

/// The seeds of the played episodes.
const SEEDS: std::ops::Range<u64> = 0..8;
/// Maximum number of steps to wait for the end of an episode.
const PATIENCE: usize = 10_000;
/// Maximum number of steps in checks that do not need the end of the episode.
const STEPS: usize = 200;

/// Returns `message` as a fault unless `condition` is true.
fn unless(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}

pub(super) fn spaces(make: &dyn Fn() -> Box<dyn Env>) -> Outcome {
    let env = make();
    for (what, space) in [("observation space", env.observation_space()), ("action space", env.action_space())] {
        space.check(what)?;
        let is_action = what.starts_with("action");
        unless(!is_action || !matches!(space, Space::Image(_) | Space::Text { .. }), || {
            format!("{what}: expected a discrete space or a box, got {space}")
        })?;
        unless(is_action || !matches!(space, Space::MultiDiscrete(_)), || format!("{what}: expected numbers or one number, got {space}"))?;
        if let Space::Discrete(n) = space {
            let most = 1 << f32::MANTISSA_DIGITS; // observations are f32
            unless(is_action || n <= most, || format!("{what}: expected at most {most} elements, got {n}"))?;
        }
    }
    let again = make();
    let same = env.observation_space() == again.observation_space() && env.action_space() == again.action_space();
    unless(same, || "expected two instances to have the same spaces, got different ones".into())?;
    Ok(Vec::new())
}

/// Checks that every number of an observation is written and finite, and that the observation is in the space.
fn fits(space: &Space, row: &[f32]) -> Result<(), String> {
    let whole_below = |x: f32, n: f32| x.fract() == 0.0 && (0.0..n).contains(&x);
    for (i, x) in row.iter().enumerate() {
        unless(!x.is_nan(), || format!("observation[{i}]: expected a written number, got NaN or an unwritten element"))?;
        unless(x.is_finite(), || format!("observation[{i}]: expected a finite number, got {x:?}"))?;
        match space {
            Space::Discrete(n) => {
                unless(whole_below(*x, *n as f32), || format!("observation: expected a whole number from 0 to {}, got {x:?}", n - 1))?;
            }
            Space::MultiDiscrete(_) => {} // rejected by the check of spaces
            Space::Box { low, high } => {
                let inside = (low[i]..=high[i]).contains(x);
                unless(inside, || format!("observation[{i}]: expected {:?} to {:?}, got {x:?}", low[i], high[i]))?;
            }
            Space::Image(image) => {
                let most = image.largest;
                let expected = || format!("observation[{i}]: expected a whole number from 0 to {most}, got {x:?}");
                unless(whole_below(*x, f32::from(most) + 1.0), expected)?;
            }
            Space::Text { context, .. } if i == 0 => {
                let is_length = whole_below(*x, *context as f32 + 1.0);
                unless(is_length, || format!("observation[0]: expected a length of 0 to {context}, got {x:?}"))?;
            }
            Space::Text { vocabulary, .. } => {
                let most = if i as f32 <= row[0] { *vocabulary } else { 1 };
                let expected = || format!("observation[{i}]: expected a token of 0 to {}, got {x:?}", most - 1);
                unless(whole_below(*x, most as f32), expected)?;
            }
        }
    }
    Ok(())
}

/// Checks that the reward is finite as an f32, which is its type in [`gradus_envs::VecEnv`].
fn check_reward(record: &StepRecord) -> Result<(), String> {
    let reward = record.step.map_or(0.0, |step| step.reward);
    unless((reward as f32).is_finite(), || format!("reward: expected a finite f32, got {reward:?}"))
}

/// Calls `check` for every record of one episode per seed.
fn every_step(player: &Player<'_>, check: impl Fn(&StepRecord) -> Result<(), String>) -> Outcome {
    let mut env = player.env();
    for seed in SEEDS {
        for (t, record) in player.play(&mut *env, seed, STEPS).iter().enumerate() {
            check(record).map_err(|fault| format!("seed {seed}, step {t}: {fault}"))?;
        }
    }
    Ok(Vec::new())
}

pub(super) fn observations(player: &Player<'_>) -> Outcome {
    every_step(player, |record| fits(&player.observations, &record.row))
}

pub(super) fn rewards(player: &Player<'_>) -> Outcome {
    every_step(player, check_reward)
}

pub(super) fn seeding(player: &Player<'_>) -> Outcome {
    let (mut env, mut other) = (player.env(), player.env());
    let mut starts = Vec::new();
    for seed in SEEDS {
        let start = player.reset(&mut *env, seed);
        for (how, again) in [("again", player.reset(&mut *env, seed)), ("on a second instance", player.reset(&mut *other, seed))] {
            if let Some(difference) = difference(0, std::slice::from_ref(&start), &[again]) {
                return Err(format!("reset with seed {seed} {how}: {difference}"));
            }
        }
        starts.push(start);
    }
    let all_equal = starts.iter().all(|start| difference(0, &starts[..1], std::slice::from_ref(start)).is_none());
    let note = format!("expected starts that differ from seed to seed, got the same observation for seeds 0 to {}", SEEDS.end - 1);
    Ok(all_equal.then_some(note).into_iter().collect())
}

pub(super) fn determinism(player: &Player<'_>) -> Outcome {
    for seed in SEEDS {
        let mut env = player.env();
        let expected = player.play(&mut *env, seed, STEPS);
        let compare = |when: &str, got: Vec<StepRecord>| match difference(0, &expected, &got) {
            Some(difference) => Err(format!("seed {seed}, {when}: {difference}")),
            None => Ok(()),
        };
        compare("on a second instance", player.play(&mut *player.env(), seed, STEPS))?;
        compare("a second time", player.play(&mut *env, seed, STEPS))?;
        player.play(&mut *env, seed + 100, 7);
        compare("after an unfinished episode", player.play(&mut *env, seed, STEPS))?;
        player.play(&mut *env, seed + 200, PATIENCE);
        compare("after a finished episode", player.play(&mut *env, seed, STEPS))?;
    }
    Ok(Vec::new())
}

/// Checks that the episode of `env`, which has had `t` steps, continues identically in other instances that load its saved state.
fn continues(player: &Player<'_>, mut env: Box<dyn Env>, t: usize, seed: u64) -> Result<(), String> {
    let saved = env.save();
    unless(env.save() == saved, || format!("seed {seed}, saved twice after step {t}: expected the same words, got different ones"))?;
    let fresh = player.env();
    let mut used = player.env();
    player.play(&mut *used, seed + 100, 3);
    let mut loaded = Vec::new();
    for (instance, mut later) in [("a fresh instance", fresh), ("an instance in use", used)] {
        let load = later.load(&saved);
        load.map_err(|error| format!("seed {seed}, loaded after step {t} by {instance}: expected no error, got \"{error}\""))?;
        unless(later.save() == saved, || {
            format!("seed {seed}, loaded after step {t} by {instance} and saved again: expected the same words, got different ones")
        })?;
        loaded.push((instance, player.go_on(&mut *later, &mut Player::stream(seed + 300), STEPS)));
    }
    let expected = player.go_on(&mut *env, &mut Player::stream(seed + 300), STEPS);
    for (instance, got) in loaded {
        if let Some(difference) = difference(t + 1, &expected, &got) {
            return Err(format!("seed {seed}, loaded after step {t} by {instance}: {difference}"));
        }
    }
    Ok(())
}

pub(super) fn checkpoints(player: &Player<'_>) -> Outcome {
    for seed in SEEDS {
        for t in [0, 1, 2, 5, 17] {
            let mut env = player.env();
            let records = player.play(&mut *env, seed, t);
            if records.len() == t + 1 && !records[t].done() {
                continues(player, env, t, seed)?;
            }
        }
        // saving must not change the episode
        let mut env = player.env();
        player.reset(&mut *env, seed);
        let mut stream = Player::stream(seed);
        let mut got: Vec<StepRecord> = Vec::new();
        while got.len() < STEPS && !got.last().is_some_and(StepRecord::done) {
            env.save();
            got.extend(player.go_on(&mut *env, &mut stream, 1));
        }
        if let Some(difference) = difference(1, &player.play(&mut *player.env(), seed, STEPS)[1..], &got) {
            return Err(format!("seed {seed}, saved before every step: {difference}"));
        }
    }
    let mut env = player.env();
    player.reset(&mut *env, 0);
    let saved = env.save();
    if let Some(short) = saved.len().checked_sub(1) {
        let refused = player.env().load(&saved[..short]).is_err();
        unless(refused, || format!("a saved state cut from {} words to {short}: expected an error, got none", saved.len()))?;
    }
    Ok(Vec::new())
}

pub(super) fn ends(player: &Player<'_>) -> Outcome {
    let mut env = player.env();
    let episodes: Vec<Vec<StepRecord>> = SEEDS.map(|seed| player.play(&mut *env, seed, PATIENCE)).collect();
    let lasts: Vec<&StepRecord> = episodes.iter().filter_map(|episode| episode.last()).collect();
    let running = lasts.iter().filter(|last| !last.done()).count();
    let mut notes = Vec::new();
    if running > 0 {
        let all = lasts.len();
        notes.push(format!("expected every episode to end within {PATIENCE} random steps, got {running} of {all} that did not"));
    }
    // episodes of fewer than 50 steps may have a fixed length by design
    let length = episodes[0].len() - 1;
    let same = length >= 50 && episodes.iter().all(|episode| episode.len() - 1 == length);
    if same && lasts.iter().all(|last| last.step.is_some_and(|step| step.terminated && !step.truncated)) {
        notes.push(format!("expected a time limit to truncate, got `terminated` after exactly {length} steps in all episodes"));
    }
    Ok(notes)
}

/// Returns all actions of a discrete space, or all corners of a box. If there are more than 256, returns 256 of them, and also the last
/// action of a discrete space.
fn extremes(space: &Space) -> Vec<Chosen> {
    const MOST: u32 = 256;
    match space {
        Space::Discrete(_) | Space::MultiDiscrete(_) => {
            let n = space.elements().unwrap_or(1);
            (0..n.min(MOST)).chain((n > MOST).then(|| n - 1)).map(|number| Chosen { number, row: Vec::new() }).collect()
        }
        Space::Box { low, high } => {
            let sides: Vec<[f32; 2]> = low.iter().zip(high).map(|(low, high)| within(*low, *high)).collect();
            let corners = 1_u32.checked_shl(sides.len() as u32).unwrap_or(MOST).min(MOST);
            // bit i selects the bound of dimension i; after 8 dimensions the bits repeat
            let row = |corner: u32| sides.iter().enumerate().map(|(i, side)| side[(corner >> (i % 8)) as usize & 1]).collect();
            (0..corners).map(|corner| Chosen { number: 0, row: row(corner) }).collect()
        }
        Space::Image(_) | Space::Text { .. } => Vec::new(), // rejected by the check of spaces
    }
}

pub(super) fn actions(player: &Player<'_>) -> Outcome {
    let mut env = player.env();
    for action in extremes(&player.actions) {
        for seed in 0..2 {
            player.reset(&mut *env, seed);
            for t in 1..=STEPS {
                let record = player.step(&mut *env, &action);
                let fault = fits(&player.observations, &record.row).and_then(|()| check_reward(&record));
                fault.map_err(|fault| format!("seed {seed}, always {:?}, step {t}: {fault}", action.as_action()))?;
                if record.done() {
                    break;
                }
            }
        }
    }
    Ok(Vec::new())
}

/// Calls `check` at the start and after every step of one episode per seed.
fn along(player: &Player<'_>, mut check: impl FnMut(&dyn Env) -> Result<(), String>) -> Outcome {
    let mut env = player.env();
    for seed in SEEDS {
        let mut stream = Player::stream(seed);
        let mut record = player.reset(&mut *env, seed);
        for t in 0..=STEPS {
            check(&*env).map_err(|fault| format!("seed {seed}, step {t}: {fault}"))?;
            if record.done() {
                break;
            }
            record = player.step(&mut *env, &player.sample(&mut stream));
        }
    }
    Ok(Vec::new())
}

/// Returns the mask, if there is one. It is written twice, over elements that are `true` and over elements that are `false`, to detect
/// elements that are not written.
fn mask(env: &dyn Env, n: usize) -> Result<Option<Vec<bool>>, String> {
    let (mut a, mut b) = (vec![true; n], vec![false; n]);
    match (env.action_mask(&mut a), env.action_mask(&mut b)) {
        (false, false) => Ok(None),
        (true, true) => match a.iter().zip(&b).position(|(a, b)| a != b) {
            Some(i) => Err(format!("mask[{i}]: expected a written element, got its previous value")),
            None => Ok(Some(a)),
        },
        (first, second) => Err(format!("mask, read twice: expected the same result, got {first} and {second}")),
    }
}

pub(super) fn masks(player: &Player<'_>) -> Outcome {
    let n = player.actions.mask_width();
    if n == 0 {
        let mut env = player.env();
        player.reset(&mut *env, 0);
        unless(!env.action_mask(&mut []), || format!("expected no mask for {}, got one", player.actions))?;
        return Ok(Vec::new());
    }
    let has_mask = std::cell::Cell::new(None);
    along(player, |env| {
        let mask = mask(env, n)?;
        let before = has_mask.replace(Some(mask.is_some())).unwrap_or(mask.is_some());
        let words = |has: bool| if has { "one" } else { "none" };
        unless(before == mask.is_some(), || {
            format!(
                "expected a mask in every state or in none (all elements true where every action is allowed), got {} after {}",
                words(!before),
                words(before)
            )
        })?;
        mask.map_or(Ok(()), |mask| {
            unless(player.actions.is_possible(&mask), || format!("expected at least 1 of {n} actions to be marked, got none"))
        })
    })
}

/// Checks that a dynamics seed keeps the start. If `reseed` wrongly resets the environment, the episode equals the one that a reset with
/// the dynamics seed gives. A match for one seed proves nothing: a bandit's episode is a single reward, which is often the same for two
/// seeds. So the check reports a fault only if the episodes match for all seeds whose starts differ.
fn start_is_kept(player: &Player<'_>) -> Result<(), String> {
    let play = |seed: u64, dynamics_seed: Option<u64>| {
        let mut env = player.env();
        let start = player.reset(&mut *env, seed);
        dynamics_seed.into_iter().for_each(|dynamics_seed| env.reseed(dynamics_seed));
        (start, player.go_on(&mut *env, &mut Player::stream(0), STEPS))
    };
    let same = |a: &[StepRecord], b: &[StepRecord]| difference(1, a, b).is_none();
    let (mut different, mut follow, mut differ_without) = (0, 0, 0); // counts of seeds
    for seed in SEEDS {
        let (dynamics_seed, (start, plain)) = (seed + 1, play(seed, None));
        let (other_start, other) = play(dynamics_seed, None);
        if !same(&[start], &[other_start]) {
            let (_, got) = play(seed, Some(dynamics_seed));
            different += 1;
            follow += usize::from(same(&got, &other));
            differ_without += usize::from(!same(&plain, &other));
        }
    }
    let is_lost = different > 1 && follow == different && differ_without > 0;
    unless(!is_lost, || {
        format!("expected a dynamics seed to keep the start, got the episode of a reset with the dynamics seed for all {different} seeds")
    })
}

pub(super) fn dynamics_seed(player: &Player<'_>) -> Outcome {
    start_is_kept(player)?;
    let begin = |seed: u64, dynamics_seed: Option<u64>| {
        let mut env = player.env();
        player.reset(&mut *env, seed);
        dynamics_seed.into_iter().for_each(|dynamics_seed| env.reseed(dynamics_seed));
        env
    };
    let rest = |env: &mut dyn Env| player.go_on(env, &mut Player::stream(0), STEPS);
    for seed in SEEDS {
        let dynamics_seed = seed + 1;
        // a dynamics seed must not change the state, which the picture shows
        let (env, mut reseeded) = (begin(seed, None), begin(seed, Some(dynamics_seed)));
        unless(env.render() == reseeded.render(), || {
            format!("seed {seed}, dynamics seed {dynamics_seed}: expected the same picture of the start, got another")
        })?;
        let got = rest(&mut *reseeded);
        let again = rest(&mut *begin(seed, Some(dynamics_seed)));
        if let Some(difference) = difference(1, &got, &again) {
            return Err(format!("seed {seed}, dynamics seed {dynamics_seed}, a second time: {difference}"));
        }
        continues(player, begin(seed, Some(dynamics_seed)), 0, seed)
            .map_err(|fault| format!("with dynamics seed {dynamics_seed}, {fault}"))?;
        let plain = player.play(&mut *player.env(), seed, STEPS);
        if let Some(difference) = difference(0, &plain, &player.play(&mut *reseeded, seed, STEPS)) {
            return Err(format!("reset with seed {seed} after an episode with dynamics seed {dynamics_seed}: {difference}"));
        }
    }
    Ok(Vec::new())
}

fn picture_is_finite(scene: &Scene) -> Result<(), String> {
    for (what, [low, high]) in [("x", scene.x), ("y", scene.y)] {
        let ordered = low < high && low.is_finite() && high.is_finite();
        unless(ordered, || format!("picture, {what}: expected low < high, got {low:?} and {high:?}"))?;
    }
    for (i, shape) in scene.shapes.iter().enumerate() {
        let numbers = match shape {
            Shape::Line { from, to, width, .. } => [from.as_slice(), to.as_slice(), &[*width]].concat(),
            Shape::Polygon { corners, .. } => corners.concat(),
            Shape::Disc { centre, radius, .. } => [centre.as_slice(), &[*radius]].concat(),
            Shape::Picture(_) => Vec::new(),
        };
        if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
            return Err(format!("picture, shape {i}: expected finite numbers, got {number:?}"));
        }
    }
    Ok(())
}

pub(super) fn pictures(player: &Player<'_>) -> Outcome {
    along(player, |env| {
        let saved = env.save();
        let scene = env.render();
        scene.iter().try_for_each(picture_is_finite)?;
        unless(env.render() == scene, || "drawn twice: expected the same picture, got another".into())?;
        unless(env.save() == saved, || "after drawing: expected the same state, got another".into())
    })
}
