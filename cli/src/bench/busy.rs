//! Measures the speed of trainings on a busy machine: with all cores, relative to the speed with one thread.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::measure::median;
use super::seeds::{Process, Rate};
use gradus::Error;

/// What else the machine does while a training is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Number of simultaneous trainings.
    pub trainings: usize,
    /// Number of threads that only use up processor time.
    pub neighbours: usize,
}

/// The measured situations.
pub const SITUATIONS: [Situation; 4] = [
    Situation { trainings: 1, neighbours: 0 },
    Situation { trainings: 1, neighbours: 1 },
    Situation { trainings: 2, neighbours: 0 },
    Situation { trainings: 4, neighbours: 0 },
];

/// Medians over the rounds.
pub struct Busy {
    /// The situation.
    pub situation: Situation,
    /// Environment steps per second of all trainings together, with all cores each.
    pub all: f64,
    /// The same with one thread each.
    pub one: f64,
    /// The ratio of the two.
    pub ratio: f64,
}

/// Measures every situation `rounds` times, with all cores and with one thread in turn. `command(seed, threads)` starts a process that
/// [serves](super::seeds::serve) the training with this seed.
pub fn busy(cores: usize, rounds: usize, command: impl Fn(u64, usize) -> Command) -> Result<Vec<Busy>, Error> {
    let most = SITUATIONS.iter().map(|situation| situation.trainings).max().unwrap_or(0) as u64;
    let start = |threads| (1..=most).map(|seed| Process::start(command(seed, threads))).collect::<Result<Vec<_>, _>>();
    let (mut all, mut one) = (start(cores)?, start(1)?);
    let mut measured = vec![[Vec::new(), Vec::new(), Vec::new()]; SITUATIONS.len()];
    for round in 0..=rounds {
        for (situation, measured) in SITUATIONS.into_iter().zip(&mut measured) {
            // the order of the two measurements alternates
            let (with_all, with_one) = if round % 2 == 0 {
                let with_all = measure(situation, &mut all)?;
                (with_all, measure(situation, &mut one)?)
            } else {
                let with_one = measure(situation, &mut one)?;
                (measure(situation, &mut all)?, with_one)
            };
            // the first round warms up
            if round > 0 {
                measured.iter_mut().zip([with_all, with_one, with_all / with_one]).for_each(|(all, x)| all.push(x));
            }
        }
    }
    let result = |(situation, measured): (Situation, [Vec<f64>; 3])| {
        let [all, one, ratio] = measured.map(median);
        Busy { situation, all, one, ratio }
    };
    Ok(SITUATIONS.into_iter().zip(measured).map(result).collect())
}

/// Returns the steps per second of all trainings of the situation together.
fn measure(situation: Situation, processes: &mut [Process]) -> Rate {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..situation.neighbours {
            let spin = || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            if let Err(error) = thread::Builder::new().spawn_scoped(scope, spin) {
                ends.store(true, Ordering::Relaxed);
                return Err(Error::io("start", Path::new("a thread"))(error));
            }
        }
        let processes = &mut processes[..situation.trainings];
        let mut rates = || {
            processes.iter_mut().try_for_each(Process::go)?;
            processes.iter_mut().map(Process::rate).sum::<Rate>()
        };
        // the first half second is not counted: a pool of threads needs up to 0.3 s to notice that the situation has changed
        let rate = rates().and_then(|_| rates());
        ends.store(true, Ordering::Relaxed);
        rate
    })
}
