//! Measures the speed of many simultaneous single-threaded trainings in one process, as in `gradus_compare::compare`, and with a process
//! for each training. The ratio shows the cost of the resources that the threads of a process share: the allocator, locks and caches.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use gradus::nets::threads;

use super::measure::{median, slice};
use gradus::{Config, Error, Trainer};

/// Seconds of one measurement.
const SLICE: f64 = 0.5;

/// Environment steps per second in one measurement.
pub(super) type Rate = Result<f64, Error>;

/// Medians over the rounds.
pub struct Throughput {
    /// Environment steps per second of all trainings in one process.
    pub together: f64,
    /// Environment steps per second of all trainings in separate processes.
    pub apart: f64,
    /// The ratio of the rate in one process to the rate in separate processes.
    pub ratio: f64,
}

/// Measures `count` simultaneous trainings in one process and in separate processes, alternating `rounds` times. `command(seed)` starts a
/// process that [serves](serve) the training with this seed.
pub fn throughput(config: &Config, count: usize, rounds: usize, command: impl Fn(u64) -> Command) -> Result<Throughput, Error> {
    Trainer::new(config.clone())?; // reports invalid settings once, before any worker starts
    let seeds = || 1..=count as u64;
    thread::scope(|scope| {
        let worker = |seed| {
            let ((go, wait), (tell, hear)) = (channel(), channel());
            let work = move || threads::with(1, || train(config, seed, &wait, &tell));
            thread::Builder::new().spawn_scoped(scope, work).map_err(Error::io("start", Path::new("a thread")))?;
            Ok((go, hear))
        };
        let workers = seeds().map(worker).collect::<Result<Vec<(Sender<()>, Receiver<Rate>)>, Error>>()?;
        let mut processes = seeds().map(|seed| Process::start(command(seed))).collect::<Result<Vec<_>, _>>()?;
        let together = || {
            for (go, _) in &workers {
                let _ = go.send(()); // a worker that has ended has sent its error
            }
            workers.iter().map(|(_, hear)| hear.recv().unwrap_or_else(|_| Err(gone("thread")))).sum::<Rate>()
        };
        let mut apart = || {
            processes.iter_mut().try_for_each(Process::go)?;
            processes.iter_mut().map(Process::rate).sum::<Rate>()
        };
        let mut measured = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..rounds + 1 {
            // the order of the two measurements alternates
            let (one, many) = if round % 2 == 0 {
                let one = together()?;
                (one, apart()?)
            } else {
                let many = apart()?;
                (together()?, many)
            };
            // the first round warms up
            if round > 0 {
                measured.iter_mut().zip([one, many, one / many]).for_each(|(all, x)| all.push(x));
            }
        }
        let [together, apart, ratio] = measured.map(median);
        Ok(Throughput { together, apart, ratio })
    })
}

/// Runs a training. After each message from `wait`, trains for half a second and sends the speed to `tell`.
fn train(config: &Config, seed: u64, wait: &Receiver<()>, tell: &Sender<Rate>) {
    let trainer = Trainer::new(Config { seed, steps: 1 << 50, ..config.clone() });
    let mut trainer = match trainer {
        Ok(trainer) => trainer,
        Err(error) => return drop(tell.send(Err(error))),
    };
    while wait.recv().is_ok() && tell.send(slice(&mut trainer, SLICE)).is_ok() {}
}

/// Runs a training in its own process, on `count` threads: for every line of `input`, trains for half a second and calls `say` with the steps
/// per second.
pub fn serve(config: &Config, seed: u64, count: usize, input: impl BufRead, mut say: impl FnMut(f64)) -> Result<(), Error> {
    threads::with(count, || {
        let mut trainer = Trainer::new(Config { seed, steps: 1 << 50, ..config.clone() })?;
        for _ in input.lines() {
            say(slice(&mut trainer, SLICE)?);
        }
        Ok(())
    })
}

/// A process that [serves](serve) a training. It ends when its input ends, and it is killed on drop.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(super) fn start(mut command: Command) -> Result<Self, Error> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| {
            let program = command.get_program().to_owned();
            Error::io("start", program.as_ref())(error)
        })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { return Err(gone("process")) };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Starts a measurement.
    pub(super) fn go(&mut self) -> Result<(), Error> {
        self.input.write_all(b"\n").map_err(|_| gone("process"))
    }

    /// Waits for the end of the measurement and returns the steps per second.
    pub(super) fn rate(&mut self) -> Rate {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|_| gone("process"))?;
        line.trim().parse().map_err(|_| gone("process"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gone(what: &str) -> Error {
    Error::Parse { what: format!("training in a separate {what}"), expected: "its speed".into(), got: "none, because it has ended".into() }
}
