//! The pages of the folder `docs/`. `cargo test --doc` runs the code in these pages.

/// The pages: their names and their texts in Markdown, for `gradus guide`. `build.rs` lists the files of `docs/`, `docs/agents/` and
/// `docs/course/`.
pub const PAGES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// How data flows, where to find each part, and where a NaN is caught.
#[doc = include_str!("../docs/architecture.md")]
///
#[doc = include_str!("../docs/images/flow.svg")]
#[doc = include_str!("../docs/images/crates.svg")]
#[doc = include_str!("../docs/images/token.svg")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod architecture {}

/// The commands of `gradus`, and the files of a run folder.
#[doc = include_str!("../docs/commands.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod commands {}

/// How to write an agent in under 60 lines and add settings, presets and a name.
#[doc = include_str!("../docs/your-own-agent.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod your_own_agent {}

/// One page for each agent: equations and the code that computes them, settings, metrics, presets.
#[doc = include_str!("../docs/agents/README.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod agents {
    include!(concat!(env!("OUT_DIR"), "/agents.rs"));
}

/// The course: a lesson a page, with exercises that check themselves.
#[cfg(doc)]
pub mod course {
    include!(concat!(env!("OUT_DIR"), "/course.rs"));
}

/// How to write an environment in under 60 lines, check it and register it; masks, continuous actions, text tasks.
#[doc = include_str!("../docs/your-own-environment.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod your_own_environment {}

/// Which results repeat bit for bit, how Gradus achieves this, and what breaks it.
#[doc = include_str!("../docs/determinism.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod determinism {}

/// Every tensor of `policy.safetensors`, and a loader for Python.
#[doc = include_str!("../docs/policy-file.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod policy_file {}

/// Partial observability: recurrent cells, what an update does with sequences, acting with a memory.
#[doc = include_str!("../docs/memory.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod memory {}

/// libtorch on a CPU, CUDA or MPS: building, devices, precision, troubleshooting.
#[doc = include_str!("../docs/gpu.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod gpu {}

/// How to step through an update in gdb or VS Code.
#[doc = include_str!("../docs/debugger.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod debugger {}

/// The terms of these pages, each in a sentence.
#[doc = include_str!("../docs/glossary.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod glossary {}

/// Where a run's numbers are, which to look at first, and the columns of control tasks and of all tasks: formulas, healthy and sick values.
#[doc = include_str!("../docs/metrics.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod metrics {}

/// The columns of text tasks: formulas, healthy and sick values.
#[doc = include_str!("../docs/metrics-text.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod metrics_text {}

/// What healthy and sick curves look like, and what to change.
#[doc = include_str!("../docs/troubleshooting.md")]
///
/// <div id="gradus-metrics-learning-rate" class="gradus-plot">
#[doc = include_str!("../docs/images/metrics-learning-rate.svg")]
/// </div>
/// <div id="gradus-metrics-clip" class="gradus-plot">
#[doc = include_str!("../docs/images/metrics-clip.svg")]
/// </div>
/// <div id="gradus-metrics-critic" class="gradus-plot">
#[doc = include_str!("../docs/images/metrics-critic.svg")]
/// </div>
/// <div id="gradus-metrics-text" class="gradus-plot">
#[doc = include_str!("../docs/images/metrics-text.svg")]
/// </div>
///
/// <style>.gradus-plot svg { max-width: 100%; height: auto; }</style>
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod troubleshooting {}

/// Calls, settings and metrics of Stable-Baselines3 and CleanRL, and their counterparts in Gradus.
#[doc = include_str!("../docs/coming-from-sb3.md")]
///
#[doc = include_str!("guide.html")]
#[cfg(doc)]
pub mod coming_from_sb3 {}
