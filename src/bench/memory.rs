//! The memory of this process, in bytes, where the system says so.

/// The most that it has had.
pub fn peak() -> Option<u64> {
    status("VmHWM:")
}

/// What it has now.
pub fn resident() -> Option<u64> {
    status("VmRSS:")
}

fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
