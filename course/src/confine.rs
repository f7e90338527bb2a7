//! Confines the process of a submission, before any of its code runs.

/// Most memory of a submission, in bytes.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 1 << 30;

/// Takes the right to open, write or run any file and to reach any address from this process, and limits its memory, its files and its time.
/// Returns whether that was done.
#[cfg(target_os = "linux")]
pub(crate) fn confine() -> bool {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus};
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limits = [(Resource::As, MEMORY), (Resource::Cpu, 30), (Resource::Fsize, 0), (Resource::Core, 0)];
    let is_limited =
        limits.into_iter().all(|(resource, most)| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).is_ok());
    // a later ABI would only name rights that this one has under other names
    let abi = ABI::V4;
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    is_limited && restricted.is_ok_and(|status| status.ruleset != RulesetStatus::NotEnforced)
}

/// Other systems have no way that needs no rights of an administrator.
#[cfg(not(target_os = "linux"))]
pub(crate) fn confine() -> bool {
    false
}
