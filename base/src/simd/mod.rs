//! Vector instructions, chosen at run time.
//!
//! The compiler turns loops without branches into vector instructions of the width that the function's target features allow. It never
//! fuses or reorders floating-point operations, so every instruction set gives the same bits. A kernel that needs fused operations, or
//! other orders of them, uses the vectors of [`Simd`].
#![allow(unsafe_code)]

mod vectors;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::atomic::{AtomicU8, Ordering};

pub use vectors::{Portable, Simd, Square, max16, of_lane, sum16};

/// The instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The instructions of the compilation target. This level is slow if the target has no fused multiply-add.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512.
    Avx512,
}

/// The environment variable that limits [`Level::best`].
pub const LIMIT: &str = "GRADUS_SIMD";

/// The best level and 1, once it is known.
static BEST: AtomicU8 = AtomicU8::new(0);

impl Level {
    /// All levels, from the lowest.
    const ALL: [Self; 3] = [Level::Portable, Level::Avx2, Level::Avx512];

    /// Returns the best level of this processor, or that in the environment variable [`LIMIT`] if it is lower. The results are the same at every level.
    #[inline(always)]
    pub fn best() -> Self {
        // cached, because functions such as `exp` call this for every number
        match BEST.load(Ordering::Relaxed) {
            1 => Level::Portable,
            2 => Level::Avx2,
            3 => Level::Avx512,
            _ => Self::found(),
        }
    }

    /// Looks for the best level and stores it.
    #[cold]
    #[inline(never)] // otherwise every caller of `best` has a copy
    fn found() -> Self {
        let best = Self::wanted().unwrap_or(Level::Avx512).min(Self::detected());
        BEST.store(best as u8 + 1, Ordering::Relaxed);
        best
    }

    /// Returns the level in the environment variable [`LIMIT`]; without a variable, that of this processor.
    ///
    /// # Errors
    /// If the variable names no level, or one that this processor does not have: what was expected, and what was got.
    pub fn wanted() -> Result<Self, (String, String)> {
        let Some(name) = std::env::var_os(LIMIT) else { return Ok(Self::detected()) };
        let known = Self::ALL.into_iter().filter(|level| *level <= Self::detected());
        let names: Vec<&str> = known.clone().map(Self::name).collect();
        let found = known.into_iter().find(|level| name == level.name());
        found.ok_or_else(|| (format!("one of the levels of this processor, {}", names.join(", ")), format!("`{}`", name.display())))
    }

    /// The level's name in the environment variable [`LIMIT`].
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    #[cold]
    fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") && has!("avx512dq") && has!("avx512vl") && has!("avx512bw") && has!("avx2") && has!("fma") {
                return Level::Avx512;
            }
            if has!("avx2") && has!("fma") {
                return Level::Avx2;
            }
        }
        Level::Portable
    }

    /// Returns all levels that this process may use.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|level| *level <= Level::best()).collect()
    }
}

/// A computation that is compiled once for each instruction set.
pub trait Kernel {
    /// Its result.
    type Output;
    /// Computes the result. Every implementation of this method, and all functions that it calls, must be `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `kernel` with the instruction set `level`, or with the best one available if the processor lacks it.
#[inline]
pub fn dispatch<K: Kernel>(level: Level, kernel: K) -> K::Output {
    match level.min(Level::best()) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `best` has checked that the processor has all features that the function is compiled for.
        Level::Avx512 => unsafe { x86::with_avx512(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86::with_avx2(kernel) },
        _ => Portable.call(kernel), // a function that calls of parts share
    }
}
