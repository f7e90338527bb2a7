//! The libtorch that this program has loaded: its folder and its version.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The version of libtorch that `tch` supports.
pub const EXPECTED: &str = "2.11.0";

/// The libtorch that this program has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The folder from which it was loaded, if the system reports it.
    pub folder: Option<PathBuf>,
    /// Its version, such as `2.11.0+cu130`, if a file of the installation contains it.
    pub version: Option<String>,
    /// The version of CUDA for which it was built, if `version` includes it.
    pub cuda: Option<(u32, u32)>,
}

/// Returns the folder and the version of the loaded libtorch.
pub fn find() -> &'static Finding {
    static FOUND: OnceLock<Finding> = OnceLock::new();
    FOUND.get_or_init(|| {
        let loaded = libraries().into_iter().find(|path| name_of(path).starts_with("libtorch_cpu."));
        let folder = loaded.and_then(|path| Some(path.parent()?.to_path_buf()));
        let version = folder.as_deref().and_then(version_of);
        let cuda = version.as_deref().and_then(cuda_of);
        Finding { folder, version, cuda }
    })
}

/// Returns the loaded libraries of libtorch and CUDA; empty if the system does not list loaded libraries.
pub fn libraries() -> Vec<PathBuf> {
    libraries_in(&fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// Returns the libraries of libtorch and CUDA in a list of all mapped files.
fn libraries_in(maps: &str) -> Vec<PathBuf> {
    const CUDA: [&str; 11] = ["cuda", "cudnn", "cupti", "cublas", "cufft", "cufile", "curand", "cusolver", "cusparse", "nccl", "nv"];
    let is_ours = |name: &str| {
        let Some(name) = name.strip_prefix("lib") else { return false };
        ["torch", "c10", "gomp"].iter().chain(&CUDA).any(|begin| name.starts_with(begin))
    };
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let mut found: Vec<_> = paths.filter(|path| is_ours(name_of(path))).map(Path::to_path_buf).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the name of a file.
fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Reads the version from a file of PyTorch's wheel or of libtorch's archive. The file is in the parent folder of the libraries' folder.
fn version_of(folder: &Path) -> Option<String> {
    let parent = folder.parent()?;
    let of_archive = fs::read_to_string(parent.join("build-version")).ok().map(|text| text.trim().to_string());
    let of_wheel = || {
        let text = fs::read_to_string(parent.join("version.py")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("__version__ = "))?;
        Some(line.trim().trim_matches(['\'', '"']).to_string())
    };
    of_archive.or_else(of_wheel)
}

/// Returns the version of CUDA in libtorch's version: 13.0 in `2.11.0+cu130`.
fn cuda_of(version: &str) -> Option<(u32, u32)> {
    let digits = version.split_once("+cu")?.1;
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cuda_version_is_read_from_libtorchs_version() {
        assert_eq!(cuda_of("2.11.0+cu130"), Some((13, 0)));
        assert_eq!(cuda_of("2.11.0+cu126"), Some((12, 6)));
        for without in ["2.11.0", "2.11.0+cpu", "2.11.0+cu", "2.11.0+cux", "2.11.0+rocm6.3"] {
            assert_eq!(cuda_of(without), None, "{without}");
        }
    }

    #[test]
    fn every_mapped_library_is_listed_once() {
        let maps = "\
7f00-7f01 r--p 00000000 fe:00 11 /a b/torch/lib/libtorch_cpu.so
7f01-7f02 r-xp 00001000 fe:00 11 /a b/torch/lib/libtorch_cpu.so
7f02-7f03 r--p 00000000 fe:00 12 /usr/lib/libcuda.so.580.82.07
7f03-7f04 r--p 00000000 fe:00 13 /usr/lib/libcurl.so.4
7f04-7f05 rw-p 00000000 00:00 0 [heap]
7f05-7f06 r-xp 00000000 fe:00 14 /usr/lib/libc.so.6
7f06-7f07 rw-p 00000000 00:00 0
";
        assert_eq!(libraries_in(maps), ["/a b/torch/lib/libtorch_cpu.so", "/usr/lib/libcuda.so.580.82.07"].map(PathBuf::from));
    }

    #[test]
    fn a_version_is_read_from_a_wheel_or_an_archive() {
        let root = std::env::temp_dir().join(format!("gradus-libtorch-{}", std::process::id()));
        let lib = root.join("lib");
        fs::create_dir_all(&lib).unwrap();
        assert_eq!(version_of(&lib), None);
        fs::write(root.join("version.py"), "from typing import Optional\n\n__version__ = '2.11.0+cu130'\ndebug = False\n").unwrap();
        assert_eq!(version_of(&lib).as_deref(), Some("2.11.0+cu130"));
        fs::write(root.join("build-version"), "2.10.0+cpu\n").unwrap();
        assert_eq!(version_of(&lib).as_deref(), Some("2.10.0+cpu"));
        fs::remove_dir_all(&root).unwrap();
    }
}
