//! Links from pages of the book to files of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where files of the repository stand in the book.
const FILES: &str = "files";

/// The files to which pages link.
pub(crate) struct Linked<'a> {
    root: &'a Path,
    src: &'a Path,
    pages: &'a [&'a str],
    files: BTreeSet<PathBuf>,
}

impl<'a> Linked<'a> {
    pub(crate) fn new(root: &'a Path, src: &'a Path, pages: &'a [&'a str]) -> Self {
        Self { root, src, pages, files: BTreeSet::new() }
    }

    /// Returns the text of a page with its links as they must be in the book.
    pub(crate) fn rewritten(&mut self, text: &str, page: &str) -> Result<String> {
        // a link may have code as its text, so links are looked for in whole lines
        let mut out = String::new();
        let mut is_code = false;
        for line in text.split_inclusive('\n') {
            is_code ^= line.trim_start().starts_with("```");
            if is_code {
                out += line;
                continue;
            }
            let mut line = line.to_owned();
            for (begin, end) in [("](", ')'), (" href=\"", '"'), (" src=\"", '"')] {
                let mut parts = line.split(begin);
                let mut new = parts.next().unwrap_or_default().to_owned();
                for part in parts {
                    let (target, rest) = part.split_once(end).with_context(|| format!("{page}: a link without an end: {part}"))?;
                    let target = self.target(target, page)?;
                    // mdBook changes the endings of links in Markdown only
                    let target = if end == '"' { target.replace(".md", ".html") } else { target };
                    new += &format!("{begin}{target}{end}{rest}");
                }
                line = new;
            }
            out += &line;
        }
        Ok(out)
    }

    /// Returns the target of a link of `page` in the book.
    fn target(&mut self, target: &str, page: &str) -> Result<String> {
        let (file, section) = target.split_once('#').map_or((target, None), |(file, section)| (file, Some(section)));
        if file.is_empty() || file.contains(':') {
            return Ok(target.to_owned());
        }
        let folder = in_repository(page).parent().map(Path::to_path_buf).unwrap_or_default();
        let path = normal(&folder.join(file));
        if !self.root.join(&path).exists() {
            bail!("{page}: {target}: no such file");
        }
        let up = "../".repeat(page.matches('/').count());
        let section = section.map(|section| format!("#{section}")).unwrap_or_default();
        let own = path.strip_prefix("docs").unwrap_or(&path).to_string_lossy().replace('\\', "/");
        if self.pages.contains(&own.as_str()) {
            return Ok(format!("{up}{own}{section}"));
        }
        let name = path.to_string_lossy().replace('\\', "/");
        self.files.insert(path);
        Ok(format!("{up}{FILES}/{}", in_book(&name)))
    }

    /// Writes the files to which pages link: pictures as they are, everything else as a page that shows its text.
    pub(crate) fn write_files(&self) -> Result<()> {
        for path in &self.files {
            let (from, name) = (self.root.join(path), path.to_string_lossy().replace('\\', "/"));
            let to = self.src.join(FILES).join(in_book(&name));
            fs::create_dir_all(to.parent().context("a file has a folder")?)?;
            if is_picture(&name) {
                fs::copy(&from, &to)?;
                continue;
            }
            let text = if from.is_dir() {
                let mut entries: Vec<String> =
                    fs::read_dir(&from)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<Result<_>>()?;
                entries.sort();
                entries.join("\n")
            } else {
                String::from_utf8_lossy(&fs::read(&from)?).into_owned()
            };
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let page = include_str!("../file.html").replace("{name}", &name).replace("{text}", &text);
            fs::write(&to, page)?;
        }
        Ok(())
    }
}

/// Returns where a page of the book stands in the repository.
pub(crate) fn in_repository(page: &str) -> PathBuf {
    if page.starts_with("results/") { page.into() } else { Path::new("docs").join(page) }
}

/// Returns the name of a file in the book. Links that end in `.md` would be taken for pages.
fn in_book(name: &str) -> String {
    if is_picture(name) { name.to_owned() } else { format!("{}.html", name.replace(".md", "-md")) }
}

fn is_picture(name: &str) -> bool {
    [".svg", ".png", ".gif"].iter().any(|ending| name.ends_with(ending))
}

/// Returns a path without `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, part| {
        match part {
            Component::ParentDir => _ = whole.pop(),
            part => whole.push(part),
        }
        whole
    })
}
