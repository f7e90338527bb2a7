//! Threads for work that is cut into small pieces again and again.
//!
//! A minibatch takes some fifty microseconds. General thread pools put idle workers to sleep within a few, and waking them costs as much
//! as the minibatch: rayon's second core gained 8 % here. These workers wait awake for a while before they sleep.
//!
//! The number of threads is set for a piece of work by [`with`]; everything called inside uses them. It changes nothing but the time.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a worker waits awake, and how long where there are more workers than cores.
const AWAKE: Duration = Duration::from_micros(200);
const AWAKE_CROWDED: Duration = Duration::from_micros(2);

/// What each thread does, given its number: 0 is the caller.
type Job = dyn Fn(usize) + Sync;

/// The job that is on offer, if any, and how many jobs there have been.
struct Offer {
    job: Option<&'static Job>,
    number: usize,
}

/// Something that has its cache lines to itself: where one core writes what another watches, every write costs a trip between them, and
/// some machines need 300 nanoseconds for one.
#[repr(align(128))]
struct Apart<T>(T);

struct Shared {
    offer: Apart<Mutex<Offer>>,
    /// Follows `Offer::number`, to be watched without the lock.
    number: Apart<AtomicUsize>,
    /// Workers that are inside the job.
    inside: Apart<AtomicUsize>,
    asleep: AtomicUsize,
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    awake: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // nothing that holds these locks can leave them in disorder
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a condition, awake; false when the time is over first. It does not yield: on some systems that alone takes 20 microseconds.
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
            offer: Apart(Mutex::new(Offer { job: None, number: 0 })),
            number: Apart(AtomicUsize::new(0)),
            inside: Apart(AtomicUsize::new(0)),
            asleep: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            panic: Mutex::new(None),
            awake: if threads <= cores() { AWAKE } else { AWAKE_CROWDED },
        }
    }

    fn work(&self, worker: usize) {
        let _alone = Scoped::new(Pool::alone());
        let mut seen = 0;
        loop {
            let is_new = || self.number.0.load(Ordering::Acquire) != seen || self.stop.load(Ordering::Acquire);
            if !wait_awake(self.awake, is_new) {
                self.asleep.fetch_add(1, Ordering::SeqCst);
                while self.number.0.load(Ordering::SeqCst) == seen && !self.stop.load(Ordering::SeqCst) {
                    thread::park();
                }
                self.asleep.fetch_sub(1, Ordering::SeqCst);
            }
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let job = {
                let offer = lock(&self.offer.0);
                seen = offer.number;
                if offer.job.is_some() {
                    self.inside.0.fetch_add(1, Ordering::Relaxed);
                }
                offer.job
            };
            if let Some(job) = job {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(worker))) {
                    lock(&self.panic).get_or_insert(panic);
                }
                self.inside.0.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Runs `job` on the calling thread and, as soon as they notice, on the workers; returns when nobody is inside any more.
    fn run(&self, workers: &[Thread], job: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes. `Withdraw` takes the job off the offer and waits until no worker is inside it, before this
        // function returns or unwinds; a worker gets hold of it only from the offer and while counted as inside, under the offer's lock.
        let job_for_all: &'static Job = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static Job>(job) };

        struct Withdraw<'a>(&'a Shared);
        impl Drop for Withdraw<'_> {
            fn drop(&mut self) {
                lock(&self.0.offer.0).job = None;
                while !wait_awake(self.0.awake, || self.0.inside.0.load(Ordering::Acquire) == 0) {
                    thread::yield_now();
                }
            }
        }

        // one that came with a panic of the caller's own belongs to that job
        lock(&self.panic).take();
        let number = {
            let mut offer = lock(&self.offer.0);
            offer.job = Some(job_for_all);
            offer.number += 1;
            offer.number
        };
        let withdraw = Withdraw(self);
        self.number.0.store(number, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) > 0 {
            workers.iter().for_each(Thread::unpark);
        }
        job(0);
        drop(withdraw);
        if let Some(panic) = lock(&self.panic).take() {
            resume_unwind(panic);
        }
    }
}

struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Thread>,
}

impl Pool {
    /// For what runs inside a piece of work: that has one thread, its own.
    fn alone() -> Arc<Self> {
        static ALONE: OnceLock<Arc<Pool>> = OnceLock::new();
        ALONE.get_or_init(|| Arc::new(Self { shared: Arc::new(Shared::new(1)), workers: Vec::new() })).clone()
    }
}

/// Sets this thread's pool; brings back the one from before when dropped, whatever happens.
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

/// Does `work` with `n` threads, this one included, for all that is called inside.
///
/// ```
/// use gradus_nets::threads;
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
    let shared = Arc::new(Shared::new(n));

    /// Ends the workers, whatever happens: the scope waits for them.
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
            // where the system grants no more threads, fewer do the same work
            let shared = &shared;
            let Ok(worker) = thread::Builder::new().spawn_scoped(scope, move || shared.work(number)) else { break };
            end.1.push(worker.thread().clone());
        }
        let _pool = Scoped::new(Arc::new(Pool { shared: shared.clone(), workers: end.1.clone() }));
        work()
    })
}

/// The processor's cores that this process may use.
pub fn cores() -> usize {
    // asking the system takes longer than a minibatch
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Does `work` with the threads set by [`with`], or with one per core where none were set.
pub fn with_default<T>(work: impl FnOnce() -> T) -> T {
    let is_set = POOL.with(|pool| pool.borrow().is_some());
    if is_set { work() } else { with(cores(), work) }
}

/// How many threads [`with_default`] would work with here.
pub fn count() -> usize {
    POOL.with(|pool| pool.borrow().as_ref().map_or_else(cores, |pool| pool.workers.len() + 1))
}

/// A slice of which every thread may take items that no other takes.
struct Items<T>(*mut T);

// SAFETY: it gives access to values of `T`, each to one thread at a time, as if they were sent there.
unsafe impl<T: Send> Sync for Items<T> {}

impl<T> Items<T> {
    /// Where item `i` is.
    ///
    /// # Safety
    /// The slice has more than `i` items.
    unsafe fn at(&self, i: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(i) }
    }
}

/// Calls `f` once for every item, on all threads set by [`with`]; an item may be handled by any of them. What `f` calls has one thread.
pub fn for_each<T: Send>(items: &mut [T], f: impl Fn(usize, &mut T) + Sync) {
    let pool = POOL.with(|pool| pool.borrow().clone());
    match pool {
        Some(pool) if items.len() > 1 && !pool.workers.is_empty() => {
            let (n, threads) = (items.len(), pool.workers.len() + 1);
            // each thread has a share of its own, the same every time, so that what it works on stays in its cache; who is done helps
            let shares: Vec<(Apart<AtomicUsize>, usize)> =
                (0..threads).map(|i| (Apart(AtomicUsize::new(i * n / threads)), (i + 1) * n / threads)).collect();
            let _alone = Scoped::new(Pool::alone());
            let items = Items(items.as_mut_ptr());
            pool.shared.run(&pool.workers, &|own| {
                for share in 0..threads {
                    let (next, end) = &shares[(own + share) % threads];
                    loop {
                        let i = next.0.fetch_add(1, Ordering::Relaxed);
                        if i >= *end {
                            break;
                        }
                        // SAFETY: the shares are disjoint parts of 0..n, and each counter gives each number once: nobody else has item i.
                        // The slice is borrowed for this call, which outlives the job.
                        f(i, unsafe { &mut *items.at(i) });
                    }
                }
            });
        }
        _ => items.iter_mut().enumerate().for_each(|(i, item)| f(i, item)),
    }
}

/// As [`for_each`], but returns what `f` returned, in the order of the items.
pub fn map<T: Send, R: Send>(items: &mut [T], f: impl Fn(usize, &mut T) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let mut pairs: Vec<(&mut T, &mut Option<R>)> = items.iter_mut().zip(&mut results).collect();
    for_each(&mut pairs, |i, (item, result)| **result = Some(f(i, item)));
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
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
            assert_eq!(count(), cores(), "the pool is gone");
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
    fn work_inside_work_has_one_thread() {
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
