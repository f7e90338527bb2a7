//! The memory that is available, and estimates of the memory that is needed.

mod estimate;

use std::fs;
use std::path::Path;

pub use estimate::{check_jobs, check_training, expect};
pub(crate) use estimate::{check_network, of_completion, of_episodes, of_evaluation, of_sample};

/// Returns the bytes of memory that this process can have: what it has now, because it may free and use it again, and what the system can
/// give it, swap space included. `None` if the system does not tell; only Linux does. The number is the least of what the kernel and the
/// control groups of this process leave, and of the limit of its address space.
pub(crate) fn available() -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let proc = |name: &str| read(&Path::new("/proc").join(name));
    let meminfo = proc("meminfo")?;
    let swap = kilobytes(&meminfo, "SwapFree:").unwrap_or(0);
    let of_kernel = kilobytes(&meminfo, "MemAvailable:");
    let of_group = proc("self/cgroup").and_then(|groups| left_in_groups(&groups, read));
    let status = proc("self/status")?;
    let limit = proc("self/limits").and_then(|limits| {
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
        limit.split_whitespace().next()?.parse::<u64>().ok()
    });
    let resident = kilobytes(&status, "VmRSS:").unwrap_or(0);
    let with_own = [of_kernel, of_group].into_iter().flatten().map(|bytes| bytes.saturating_add(swap).saturating_add(resident));
    with_own.chain(limit).min()
}

/// Returns the bytes in the line `name` of a table of kilobytes.
fn kilobytes(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the bytes that the control groups of this process leave, or `None` without a limit. `groups` is the text of
/// `/proc/self/cgroup`. Pages that cache files do not count as used, because the kernel frees them first.
fn left_in_groups(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let of_line = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        // version 2 has one hierarchy without a name; version 1 has one for each controller
        let (root, names) = match controllers {
            "" => ("/sys/fs/cgroup", ["memory.max", "memory.current", "file "]),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache "])
            }
            _ => return None,
        };
        let path = Path::new(root).join(path.trim_start_matches('/'));
        // a group is also limited by the groups above it; in a container only the root may be visible
        let left = |folder: &Path| {
            let number = |name| read(&folder.join(name))?.trim().parse::<u64>().ok();
            let (limit, used) = (number(names[0])?, number(names[1])?);
            let stat = read(&folder.join("memory.stat")).unwrap_or_default();
            let cached = stat.lines().find_map(|line| line.strip_prefix(names[2])?.trim().parse::<u64>().ok()).unwrap_or(0);
            Some(limit.saturating_sub(used.saturating_sub(cached)))
        };
        path.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(left).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// Formats a number of bytes, such as `1.5 GiB`.
pub(crate) fn shown(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes} bytes"), |(size, unit)| format!("{:.1} {unit}", bytes as f64 / size as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads from a list of paths and texts.
    fn files<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&Path) -> Option<String> + 'a {
        |path| files.iter().find(|(name, _)| path == Path::new(name)).map(|(_, text)| text.to_string())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_memory() {
        let bytes = available().expect("Linux tells it");
        assert!((1 << 20..1 << 50).contains(&bytes), "{bytes}");
    }

    #[test]
    fn the_tightest_group_counts_without_its_cached_files() {
        // version 2: 1000 of 3000 bytes are used, 400 of them by cached files; the group above leaves more
        let version_2 = [
            ("/sys/fs/cgroup/a/b/memory.max", "3000\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "1000\n"),
            ("/sys/fs/cgroup/a/b/memory.stat", "anon 600\nfile 400\nfile_mapped 7\n"),
            ("/sys/fs/cgroup/a/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.current", "9000\n"),
            ("/sys/fs/cgroup/memory.max", "8000\n"),
            ("/sys/fs/cgroup/memory.current", "5000\n"),
        ];
        assert_eq!(left_in_groups("0::/a/b\n", files(&version_2)), Some(2400));
        assert_eq!(left_in_groups("0::/a\n", files(&version_2)), Some(3000));
        assert_eq!(left_in_groups("0::/\n", files(&[])), None);
        // version 1, in a container that sees only the root of the hierarchy
        let version_1 = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "6000\n"),
            ("/sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_cache 1500\n"),
        ];
        assert_eq!(left_in_groups("5:cpu,memory:/docker/1\n3:cpuset:/\n", files(&version_1)), Some(500));
        assert_eq!(left_in_groups("3:cpuset:/\n", files(&version_1)), None);
    }

    #[test]
    fn tables_of_kilobytes_are_read_and_bytes_are_shown() {
        assert_eq!(kilobytes("MemFree:  7 kB\nMemAvailable:   12 kB\n", "MemAvailable:"), Some(12 * 1024));
        assert_eq!(kilobytes("MemFree:  7 kB\n", "MemAvailable:"), None);
        assert_eq!([3, 1 << 10, 3 << 19, 25 << 30].map(shown), ["3 bytes", "1.0 KiB", "1.5 MiB", "25.0 GiB"]);
    }
}
