//! The replay buffer of a run: pages of fixed size in the folder `replay`, one file each.
//!
//! A checkpoint writes the pages that have changed since the last one, each as a new file `PAGE-VERSION.safetensors`. Then it replaces
//! `state.safetensors`, which lists the files with their hashes, and removes the files that the new list does not name. A killed run
//! therefore finds the files of its checkpoint, and perhaps others, which are removed when the run is resumed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gradus_agents::replay::{Page, Replay};
use gradus_nets::tensors::{self, Tensor, Tensors, TensorsError, get_u64};
use hmac_sha256::Hash;

use super::bytes_of;
use crate::Error;
use crate::files::{Sha256, read, remove_leftovers, replace, sync_folder};

/// The folder.
pub(super) const REPLAY: &str = "replay";
/// The tensor of the checkpoint that lists the pages: number, version and hash of each.
const PAGES: &str = "replay_pages";

/// The pages of the last checkpoint, and the hashes of their files.
#[derive(Default)]
pub(super) struct Pages(BTreeMap<(usize, u64), Sha256>);

fn path(dir: &Path, page: Page) -> PathBuf {
    dir.join(REPLAY).join(format!("{}-{}.safetensors", page.number, page.version))
}

impl Pages {
    /// Writes the pages that are not files of the last checkpoint. Returns all pages.
    pub fn write(&self, dir: &Path, replay: &Replay, note: &str) -> Result<Self, Error> {
        let mut pages = BTreeMap::new();
        for page in replay.pages() {
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

    /// Removes the files that are not pages of this list. A file that cannot be removed stays.
    pub fn remove_others(&self, dir: &Path) {
        let folder = dir.join(REPLAY);
        remove_leftovers(&folder, |name| name.ends_with(".safetensors"));
        let known: Vec<PathBuf> = self.files(dir).map(|(_, path, _)| path).collect();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_page = path.extension().is_some_and(|extension| extension == "safetensors") && path.is_file();
            if is_page && !known.contains(&path) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Creates the folder of the pages, if it is missing.
pub(super) fn create(dir: &Path) -> Result<(), Error> {
    let folder = dir.join(REPLAY);
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir(&folder).and_then(|()| sync_folder(dir)).map_err(Error::io("create", &folder))
}

/// Reads a page.
pub(super) fn read_page(path: &Path, hash: &Sha256) -> Result<Tensors, Error> {
    let advice = "the training cannot be resumed without it; the policy of the checkpoint is intact";
    if !path.exists() {
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
