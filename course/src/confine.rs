//! Confines the process of a submission, before any of its code runs.

/// Most memory of a submission, in bytes.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 1 << 30;

/// Takes the right to open, write or run any file and to reach any address by TCP from this process, and what else this kernel can take: UDP, sockets without a name in the file
/// system, and signals. Limits its memory, its files and its time. Returns whether files and TCP were taken. (A submission that names a socket is refused before.)
#[cfg(target_os = "linux")]
pub(crate) fn confine() -> bool {
    use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limits = [(Resource::As, MEMORY), (Resource::Cpu, 30), (Resource::Fsize, 0), (Resource::Core, 0)];
    let is_limited =
        limits.into_iter().all(|(resource, most)| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).is_ok());
    // what must be there, and what newer kernels have
    let (needed, newest) = (ABI::V4, ABI::V10);
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(needed))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(needed)))
        .and_then(|ruleset| ruleset.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(newest)))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(newest)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(newest)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    is_limited && restricted.is_ok_and(|status| status.ruleset != RulesetStatus::NotEnforced)
}

/// Other systems have no way that needs no rights of an administrator.
#[cfg(not(target_os = "linux"))]
pub(crate) fn confine() -> bool {
    false
}
