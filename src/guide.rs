//! The pages of the folder `docs/`. `cargo test --doc` runs their code.

/// Where data flows, where things are, and where a NaN is caught.
#[doc = include_str!("../docs/architecture.md")]
///
#[doc = include_str!("../docs/images/flow.svg")]
#[doc = include_str!("../docs/images/crates.svg")]
#[doc = include_str!("../docs/images/token.svg")]
///
#[doc = include_str!("guide.html")]
pub mod architecture {}

/// An agent in under 60 lines, with settings, presets and a name.
#[doc = include_str!("../docs/your-own-agent.md")]
///
#[doc = include_str!("guide.html")]
pub mod your_own_agent {}

/// An environment in under 60 lines, checked, registered and trained; masks, continuous actions, text tasks.
#[doc = include_str!("../docs/your-own-environment.md")]
///
#[doc = include_str!("guide.html")]
pub mod your_own_environment {}

/// What repeats bit for bit, how it is done, and what breaks it.
#[doc = include_str!("../docs/determinism.md")]
///
#[doc = include_str!("guide.html")]
pub mod determinism {}

/// Every tensor of `policy.safetensors`, and a loader for Python.
#[doc = include_str!("../docs/policy-file.md")]
///
#[doc = include_str!("guide.html")]
pub mod policy_file {}

/// libtorch on a CPU, CUDA or MPS: building, devices, precision, troubles.
#[doc = include_str!("../docs/gpu.md")]
///
#[doc = include_str!("guide.html")]
pub mod gpu {}

/// An update, step by step, in gdb or VS Code.
#[doc = include_str!("../docs/debugger.md")]
///
#[doc = include_str!("guide.html")]
pub mod debugger {}
