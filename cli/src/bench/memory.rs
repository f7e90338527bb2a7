//! Memory of this process, in bytes; `None` if the system does not report it.

/// Returns the peak resident memory.
pub fn peak() -> Option<u64> {
    status("VmHWM:")
}

/// Returns the current resident memory.
pub fn resident() -> Option<u64> {
    status("VmRSS:")
}

fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
