//! A thread pool for work that is repeatedly split into small pieces.
//!
//! A minibatch takes about fifty microseconds. General thread pools put idle workers to sleep within a few microseconds, and waking them
//! costs as much as the minibatch: with rayon, a second core gained only 8 %. The workers of this pool spin for a while before they sleep.
//!
//! [`with`] sets the number of threads for everything called inside it. The number affects only the running time.
//!
//! On a busy machine, a thread that waits for a core delays all others. The pool therefore measures how long its threads wait, and gives way:
//! it uses fewer workers while other programs need the cores. See `threads/worker_limit.rs`.
#![allow(unsafe_code)]

mod worker_limit;

use std::cell::{RefCell, UnsafeCell};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use worker_limit::WorkerLimit;

use crate::panics::{self, Panic};

/// How long a worker spins before it sleeps.
const AWAKE: Duration = Duration::from_micros(200);
/// How long a worker spins if there are more threads than cores.
const AWAKE_CROWDED: Duration = Duration::from_micros(2);

/// The work on one item, given its number.
type Job = dyn Fn(usize) + Sync;

/// Gives a value its own cache lines. If one core writes to a line that another core reads repeatedly, every write costs a transfer between
/// the cores, up to 300 nanoseconds on some machines.
#[repr(align(128))]
struct Apart<T>(T);

/// The states of a share: without a job, with a job on offer, and with a job that its worker has taken.
const IDLE: usize = 0;
const POSTED: usize = 1;
const TAKEN: usize = 2;

/// A thread's share of a piece of work. Caller and worker communicate only through the share, so a single cache line moves between their
/// cores.
struct Share {
    state: AtomicUsize,
    /// The next item of the share; idle threads steal items by advancing it.
    next: AtomicUsize,
    /// The end of the share.
    end: AtomicUsize,
    is_asleep: AtomicBool,
    /// The job on offer. The caller writes it while the state is idle; the worker reads it while the state is taken.
    job: UnsafeCell<Option<&'static Job>>,
}

// SAFETY: only `job` is not `Sync` by itself. Only the caller turns idle into posted, after writing `job`, and posted back into idle. Only
// the worker turns posted into taken, before reading `job`, and taken into idle, after its last use of `job`. A job may be called by all
// threads.
unsafe impl Sync for Share {}

impl Share {
    fn new() -> Apart<Self> {
        Apart(Self {
            state: AtomicUsize::new(IDLE),
            next: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_asleep: AtomicBool::new(false),
            job: UnsafeCell::new(None),
        })
    }

    fn set(&self, items: Range<usize>) {
        self.next.store(items.start, Ordering::Relaxed);
        self.end.store(items.end, Ordering::Relaxed);
    }

    /// Processes the remaining items of the share.
    fn work(&self, job: &(dyn Fn(usize) + Sync)) {
        let end = self.end.load(Ordering::Relaxed);
        while self.next.load(Ordering::Relaxed) < end {
            let item = self.next.fetch_add(1, Ordering::Relaxed);
            if item < end {
                job(item);
            }
        }
    }
}

struct Shared {
    /// The caller's share, then the workers'.
    shares: Vec<Apart<Share>>,
    worker_limit: Apart<WorkerLimit>,
    stop: AtomicBool,
    has_panicked: AtomicBool,
    panic: Mutex<Option<Panic>>,
    awake: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // a panic cannot leave the values behind these locks inconsistent
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spins until the condition holds; returns false if `time` runs out first. It does not yield, because on some systems yielding takes 20
/// microseconds.
fn wait_awake(time: Duration, condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    loop {
        for _ in 0..64 {
            if condition() {
                return true;
            }
            std::hint::spin_loop();
        }
        if began.elapsed() > time {
            return false;
        }
    }
}

impl Shared {
    fn new(threads: usize) -> Self {
        Self {
            shares: (0..threads).map(|_| Share::new()).collect(),
            worker_limit: Apart(WorkerLimit::new()),
            stop: AtomicBool::new(false),
            has_panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
            awake: if threads <= cores() { AWAKE } else { AWAKE_CROWDED },
        }
    }

    /// Processes the remaining items of all shares except `own`. Those of resting workers are empty.
    fn help(&self, own: usize, job: &(dyn Fn(usize) + Sync)) {
        let n = self.shares.len();
        (1..n).for_each(|other| self.shares[(own + other) % n].0.work(job));
    }

    fn take_panic(&self) -> Option<Panic> {
        if !self.has_panicked.load(Ordering::Relaxed) {
            return None;
        }
        self.has_panicked.store(false, Ordering::Relaxed);
        lock(&self.panic).take()
    }

    fn serve(&self, worker: usize) {
        let _alone = Scoped::new(Pool::alone());
        self.worker_limit.0.watch_this_thread();
        let own = &self.shares[worker].0;
        loop {
            let is_called = || own.state.load(Ordering::Acquire) == POSTED || self.stop.load(Ordering::Acquire);
            if !wait_awake(self.awake, is_called) {
                // the caller first writes `state` and then reads `is_asleep`, so at least one of the two threads sees the other's write
                own.is_asleep.store(true, Ordering::SeqCst);
                while own.state.load(Ordering::SeqCst) != POSTED && !self.stop.load(Ordering::SeqCst) {
                    thread::park();
                }
                own.is_asleep.store(false, Ordering::Relaxed);
            }
            if own.state.compare_exchange(POSTED, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                // SAFETY: the state is taken, see `Share`.
                let job = unsafe { *own.job.get() };
                let work = |job| {
                    let is_one = own.end.load(Ordering::Relaxed) <= own.next.load(Ordering::Relaxed) + 1;
                    own.work(job);
                    // with one item per share, stealing gains nothing: each worker has taken its own item, and the caller takes the rest
                    if !is_one {
                        self.help(worker, job);
                    }
                };
                if let Err(panic) = panics::catch(|| job.map_or((), work)) {
                    lock(&self.panic).get_or_insert(panic);
                    self.has_panicked.store(true, Ordering::Relaxed);
                }
                own.state.store(IDLE, Ordering::Release);
            } else if self.stop.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Calls `job` once for each number below `items`, on the calling thread and on all workers that notice the job in time. Returns when
    /// all calls have finished. Only the thread that created the pool calls `run`.
    fn run(&self, workers: &[Thread], items: usize, job: &(dyn Fn(usize) + Sync)) {
        let workers = &workers[..self.worker_limit.0.active(workers.len())];
        if workers.is_empty() {
            return (0..items).for_each(job);
        }
        // SAFETY: only the lifetime changes. A worker gets the job only from a share that it has taken. `Withdraw` removes the job from
        // every share on offer and waits until no share is taken, before this function returns or unwinds.
        let job_for_all: &'static Job = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static Job>(job) };

        struct Withdraw<'a>(&'a Shared, usize);
        impl Drop for Withdraw<'_> {
            fn drop(&mut self) {
                for share in &self.0.shares[1..self.1] {
                    let state = &share.0.state;
                    let is_posted = state.load(Ordering::Relaxed) == POSTED;
                    if is_posted && state.compare_exchange(POSTED, IDLE, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                        continue;
                    }
                    while !wait_awake(self.0.awake, || state.load(Ordering::Acquire) == IDLE) {
                        thread::yield_now();
                    }
                }
            }
        }

        // discard a worker's panic that is left from earlier work: if the caller also panicked, only the caller's panic was raised
        self.take_panic();
        let threads = workers.len() + 1;
        // a thread gets the same share every time, so that the share's data stay in its cache
        (0..threads).for_each(|i| self.shares[i].0.set(i * items / threads..(i + 1) * items / threads));
        // what a panic of the caller may have left to a worker that rests now
        self.shares[threads..].iter().for_each(|share| share.0.set(0..0));
        let withdraw = Withdraw(self, threads);
        for (share, worker) in self.shares[1..].iter().zip(workers) {
            // SAFETY: the state is idle, see `Share`: the previous work has been withdrawn.
            unsafe { *share.0.job.get() = Some(job_for_all) };
            share.0.state.store(POSTED, Ordering::SeqCst);
            if share.0.is_asleep.load(Ordering::SeqCst) {
                worker.unpark();
            }
        }
        self.shares[0].0.work(job);
        self.help(0, job);
        drop(withdraw);
        if let Some(panic) = self.take_panic() {
            panic.resume();
        }
    }
}

struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Thread>,
}

impl Pool {
    /// Returns the pool for work that is nested inside a piece of work. Nested work runs on the calling thread.
    fn alone() -> Arc<Self> {
        static ALONE: OnceLock<Arc<Pool>> = OnceLock::new();
        ALONE.get_or_init(|| Arc::new(Self { shared: Arc::new(Shared::new(1)), workers: Vec::new() })).clone()
    }
}

/// Sets this thread's pool, and restores the previous one when dropped.
struct Scoped(Option<Arc<Pool>>);

impl Scoped {
    fn new(pool: Arc<Pool>) -> Self {
        Self(POOL.with(|current| current.replace(Some(pool))))
    }
}

impl Drop for Scoped {
    fn drop(&mut self) {
        POOL.with(|current| current.replace(self.0.take()));
    }
}

thread_local! {
    static POOL: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
}

/// Runs `work` on this thread. Inside it, [`for_each`] and [`map`] use `n` threads, including this one.
///
/// ```
/// use gradus_base::threads;
///
/// let mut squares = vec![0; 100];
/// threads::with(2, || threads::for_each(&mut squares, |i, square| *square = i * i));
/// assert_eq!(squares[9], 81);
/// ```
///
/// # Panics
/// If `n` is 0.
pub fn with<T>(n: usize, work: impl FnOnce() -> T) -> T {
    assert!(n > 0, "threads: expected at least 1, got 0");
    let (mut work, mut result) = (Some(work), None);
    scope(n, &mut || result = work.take().map(|work| work()));
    result.expect("the scope calls its work once")
}

/// Does the work of [`with`]. It is not generic, so that it is compiled once.
fn scope(n: usize, work: &mut dyn FnMut()) {
    let shared = Arc::new(Shared::new(n));

    /// Stops the workers when dropped, also on a panic, because the scope waits for them.
    struct End<'a>(&'a Shared, Vec<Thread>);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.stop.store(true, Ordering::SeqCst);
            self.1.iter().for_each(Thread::unpark);
        }
    }

    thread::scope(|scope| {
        let mut end = End(&shared, Vec::new());
        for number in 1..n {
            // if the system refuses a thread, fewer threads do the same work
            let shared = &shared;
            let Ok(worker) = thread::Builder::new().spawn_scoped(scope, move || shared.serve(number)) else { break };
            end.1.push(worker.thread().clone());
        }
        if n > 1 {
            shared.worker_limit.0.watch_this_thread();
        }
        let _pool = Scoped::new(Arc::new(Pool { shared: shared.clone(), workers: end.1.clone() }));
        work();
    });
}

/// Returns the number of cores that this process may use.
pub fn cores() -> usize {
    // cached, because the system call takes longer than a minibatch
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Runs `work` with the number of threads set by [`with`], or with one thread per core if no number was set.
pub fn with_default<T>(work: impl FnOnce() -> T) -> T {
    let is_set = POOL.with(|pool| pool.borrow().is_some());
    if is_set { work() } else { with(cores(), work) }
}

/// Returns the number of threads that [`with_default`] would use on this thread.
pub fn count() -> usize {
    POOL.with(|pool| pool.borrow().as_ref().map_or_else(cores, |pool| pool.workers.len() + 1))
}

/// A slice. Each of its items is accessed by one thread only.
struct Items<T>(*mut T);

// SAFETY: each value of `T` is accessed by one thread at a time, as if it were sent to that thread.
unsafe impl<T: Send> Sync for Items<T> {}

impl<T> Items<T> {
    /// Returns the address of item `i`.
    ///
    /// # Safety
    /// The slice has more than `i` items.
    unsafe fn at(&self, i: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(i) }
    }
}

/// Calls `f` once for every item, on the threads set by [`with`], or on the calling thread if no number was set. Any thread may handle any
/// item. If there is more than one item, nested calls inside `f` use one thread.
pub fn for_each<T: Send>(items: &mut [T], f: impl Fn(usize, &mut T) + Sync) {
    let pool = POOL.with(|pool| pool.borrow().clone());
    match pool {
        Some(pool) if items.len() > 1 && !pool.workers.is_empty() => {
            let _alone = Scoped::new(Pool::alone());
            let n = items.len();
            let items = Items(items.as_mut_ptr());
            // SAFETY: the pool calls this closure once for each i in 0..n, so no other thread has item i. The slice stays borrowed until
            // the work has finished.
            pool.shared.run(&pool.workers, n, &|i| f(i, unsafe { &mut *items.at(i) }));
        }
        _ => items.iter_mut().enumerate().for_each(|(i, item)| f(i, item)),
    }
}

/// As [`for_each`], but returns the results of `f`, in the order of the items.
pub fn map<T: Send, R: Send>(items: &mut [T], f: impl Fn(usize, &mut T) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let mut pairs: Vec<(&mut T, &mut Option<R>)> = items.iter_mut().zip(&mut results).collect();
    for_each(&mut pairs, |i, (item, result)| **result = Some(f(i, item)));
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn every_item_is_handled_once() {
        for threads in [1, 2, 5] {
            with(threads, || {
                assert_eq!(count(), threads);
                for round in 0..2000 {
                    let mut items = vec![0_u32; 1 + round % 17];
                    for_each(&mut items, |i, item| *item += i as u32 + 1);
                    assert!(items.iter().enumerate().all(|(i, item)| *item == i as u32 + 1), "{threads} threads: {items:?}");
                    if round % 500 == 0 {
                        thread::sleep(Duration::from_millis(1)); // long enough for the workers to fall asleep
                    }
                }
                let squares = map(&mut [1, 2, 3], |_, item| *item * *item);
                assert_eq!(squares, [1, 4, 9]);
            });
            assert_eq!(count(), cores(), "no pool is set after `with`");
        }
    }

    #[test]
    fn pools_nest() {
        with(3, || {
            with(2, || assert_eq!(count(), 2));
            assert_eq!(count(), 3);
            with_default(|| assert_eq!(count(), 3));
        });
    }

    #[test]
    fn nested_work_runs_on_one_thread() {
        with(2, || {
            let counts = map(&mut [0; 8], |_, _| (count(), map(&mut [1, 2], |_, item| *item)));
            assert!(counts.iter().all(|(count, items)| *count == 1 && items == &[1, 2]), "{counts:?}");
            assert_eq!(count(), 2);
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_the_pool_intact() {
        with(2, || {
            for culprit in 0..8 {
                let mut items = [0; 8];
                let attempt = AssertUnwindSafe(|| for_each(&mut items, |i, _| assert_ne!(i, culprit)));
                assert!(catch_unwind(attempt).is_err(), "item {culprit}");
            }
            let mut items = [0; 8];
            for_each(&mut items, |_, item| *item += 1);
            assert_eq!(items, [1; 8]);
        });
    }
}
