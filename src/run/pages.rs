//! The replay buffer of a run: pages of fixed size in the folder `replay`, one file each.
//!
//! A checkpoint first writes the names of its pages, and of those of the last checkpoint, to `replay/pages`. It writes the pages that have changed since the last checkpoint, each as a
//! new file `PAGE-VERSION.safetensors`. Then it replaces `state.safetensors`, which lists the files with their hashes, and removes those of the
//! earlier checkpoint that the new list does not name. A killed run therefore finds the files of its checkpoint, and perhaps others, which are
//! removed when the run is resumed. Only files that one of these lists names are ever removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gradus_agents::replay::{Page, Replay};
use gradus_base::tensors::{self, Tensor, Tensors, TensorsError, get_u64};
use hmac_sha256::Hash;

use super::bytes_of;
use crate::Error;
use crate::files::{Sha256, exists, expect_file, read, read_to_string, remove_leftovers, replace, sync_folder};

/// The folder.
pub(super) const REPLAY: &str = "replay";
/// The file in the folder with the names of the pages of the last two checkpoints; the later one may not have been written.
const WRITTEN: &str = "pages";
/// The tensor of the checkpoint that lists the pages: number, version and hash of each.
const PAGES: &str = "replay_pages";

/// The pages of the last checkpoint, and the hashes of their files.
#[derive(Default)]
pub(super) struct Pages(BTreeMap<(usize, u64), Sha256>);

fn name(page: Page) -> String {
    format!("{}-{}.safetensors", page.number, page.version)
}

fn path(dir: &Path, page: Page) -> PathBuf {
    dir.join(REPLAY).join(name(page))
}

impl Pages {
    /// Writes the pages that are not files of the last checkpoint. Returns all pages.
    pub fn write(&self, dir: &Path, replay: &Replay, note: &str) -> Result<Self, Error> {
        let all = replay.pages();
        if all.iter().any(|page| !self.0.contains_key(&(page.number, page.version))) {
            // those of the last checkpoint, too: they are removed after this one is written
            let last = self.0.keys().map(|(number, version)| Page { number: *number, version: *version });
            let names: BTreeSet<String> = last.chain(all.iter().copied()).map(|page| name(page) + "\n").collect();
            let (list, names) = (dir.join(REPLAY).join(WRITTEN), names.into_iter().collect::<String>());
            replace(&list, names.as_bytes()).map_err(Error::io("write", &list))?;
        }
        let mut pages = BTreeMap::new();
        for page in all {
            let key = (page.number, page.version);
            let hash = match self.0.get(&key) {
                Some(hash) => *hash,
                None => {
                    let (path, bytes) = (path(dir, page), tensors::encode(&replay.page(page), note));
                    replace(&path, &bytes).map_err(Error::io("write", &path))?;
                    Hash::hash(&bytes)
                }
            };
            pages.insert(key, hash);
        }
        Ok(Self(pages))
    }

    /// Adds the list of pages to a checkpoint.
    pub fn list(&self, state: &mut Tensors) {
        let words = |hash: &Sha256| hash.as_chunks().0.iter().copied().map(u64::from_be_bytes).collect::<Vec<_>>();
        let row = |((number, version), hash): (&(usize, u64), &Sha256)| [vec![*number as u64, *version], words(hash)].concat();
        state.insert(PAGES.into(), Tensor::u64(self.0.iter().flat_map(row).collect()));
    }

    /// Reads the list of pages of a checkpoint; empty if the agent has no replay buffer.
    pub fn listed(state: &Tensors) -> Result<Self, TensorsError> {
        if !state.contains_key(PAGES) {
            return Ok(Self::default());
        }
        let (rows, rest) = get_u64(state, PAGES)?.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(TensorsError::State(format!("{PAGES}: expected six numbers for each page, got {} more", rest.len())));
        }
        Ok(Self(rows.iter().map(|[number, version, a, b, c, d]| ((*number as usize, *version), bytes_of(&[*a, *b, *c, *d]))).collect()))
    }

    /// Loads the pages into a replay buffer whose state is loaded.
    pub fn load(&self, dir: &Path, replay: &mut Replay) -> Result<(), Error> {
        let expected: Vec<(usize, u64)> = replay.pages().iter().map(|page| (page.number, page.version)).collect();
        if !expected.iter().eq(self.0.keys()) {
            let problem = format!("expected the pages of {} decisions, got a list of {} pages", replay.len(), self.0.len());
            return Err(Error::folder(&dir.join(super::STATE), problem));
        }
        for (page, path, hash) in self.files(dir) {
            let contents = read_page(&path, hash)?;
            replay.load_page(page, &contents).map_err(|source| Error::Tensors { path, source })?;
        }
        replay.finish_loading().map_err(|source| Error::Tensors { path: dir.join(REPLAY), source })
    }

    /// Returns the pages with their files and hashes.
    pub fn files<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (Page, PathBuf, &'a Sha256)> {
        let file = move |((number, version), hash): (&(usize, u64), &'a Sha256)| {
            let page = Page { number: *number, version: *version };
            (page, path(dir, page), hash)
        };
        self.0.iter().map(file)
    }

    /// Removes the pages of an earlier checkpoint that are not in this list. A file that cannot be removed stays.
    pub fn remove_replaced(&self, earlier: &Self, dir: &Path) {
        let replaced = earlier.0.keys().filter(|key| !self.0.contains_key(*key));
        replaced.for_each(|(number, version)| _ = fs::remove_file(path(dir, Page { number: *number, version: *version })));
    }

    /// Removes the pages that a killed process was about to commit, and its temporary files. A file that cannot be removed stays.
    pub fn remove_uncommitted(&self, dir: &Path) {
        let folder = dir.join(REPLAY);
        let known: Vec<String> = self.files(dir).map(|(page, ..)| name(page)).collect();
        let names = read_to_string(&folder.join(WRITTEN)).unwrap_or_default();
        remove_leftovers(&folder, |name| name == WRITTEN || names.lines().any(|own| own == name));
        let is_page = |name: &&str| !name.contains(['/', '\\']) && name.ends_with(".safetensors");
        names
            .lines()
            .filter(is_page)
            .filter(|name| !known.iter().any(|own| own == name))
            .for_each(|name| _ = fs::remove_file(folder.join(name)));
    }
}

/// Creates the folder of the pages, if it is missing.
pub(super) fn create(dir: &Path) -> Result<(), Error> {
    let folder = dir.join(REPLAY);
    if folder.is_dir() {
        return expect_file(&folder.join(WRITTEN));
    }
    fs::create_dir(&folder).and_then(|()| sync_folder(dir)).map_err(Error::io("create", &folder))
}

/// Reads a page.
pub(super) fn read_page(path: &Path, hash: &Sha256) -> Result<Tensors, Error> {
    let advice = "the training cannot be resumed without it; the policy of the checkpoint is intact";
    if !exists(path)? {
        return Err(Error::folder(path, format!("a page of the replay buffer is missing; {advice}")));
    }
    let bytes = read(path)?;
    if Hash::hash(&bytes) != *hash {
        return Err(Error::folder(
            path,
            format!("damaged: it is not the page of the replay buffer that the checkpoint was written with; {advice}"),
        ));
    }
    tensors::decode(&bytes).map(|(tensors, _)| tensors).map_err(|source| Error::Tensors { path: path.into(), source })
}
