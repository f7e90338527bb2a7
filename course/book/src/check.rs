//! Follows every link of a book.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Checks that links lead to files and sections that exist, and that nothing is loaded from another host. Returns the numbers of pages and
/// of links.
pub(crate) fn check(out: &Path) -> Result<(usize, usize)> {
    let out = &out.canonicalize()?;
    let mut pages = BTreeMap::new();
    read(out, &mut pages)?;
    let (mut followed, mut faults) = (0, Vec::new());
    for (path, text) in &pages {
        let name = path.strip_prefix(out).unwrap_or(path).display().to_string();
        if name == "toc.html" || name == "404.html" || name.starts_with("files/") {
            continue; // the table of contents is that of the sidebar, and links from other folders
        }
        for (attribute, target) in
            ["href=\"", "src=\""].iter().flat_map(|attribute| text.split(attribute).skip(1).map(move |rest| (attribute, rest)))
        {
            let target = target.split('"').next().unwrap_or_default();
            if target.starts_with("mailto:") || target.starts_with("data:") {
                continue; // nothing to follow
            }
            if target.contains("://") {
                if *attribute == "src=\"" {
                    faults.push(format!("{name}: loads {target}"));
                }
                continue;
            }
            followed += 1;
            let (file, section) = target.split_once('#').unwrap_or((target, ""));
            let to = if file.is_empty() { path.clone() } else { path.parent().unwrap_or(out).join(file) };
            let Ok(to) = to.canonicalize() else {
                faults.push(format!("{name}: {target}: no such file"));
                continue;
            };
            if !section.is_empty() && !pages.get(&to).is_some_and(|text| text.contains(&format!("id=\"{section}\""))) {
                faults.push(format!("{name}: {target}: no such section"));
            }
        }
    }
    if !faults.is_empty() {
        faults.dedup();
        bail!("{} links lead nowhere:\n{}", faults.len(), faults.join("\n"));
    }
    Ok((pages.len(), followed))
}

fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, pages)?;
        } else if path.extension().is_some_and(|ending| ending == "html") {
            pages.insert(path.canonicalize()?, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
