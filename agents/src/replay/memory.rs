//! Observations as a replay buffer keeps them: as little as tells them apart.

use std::sync::Arc;

use gradus_base::tensors::{Data, Tensor, Tensors, TensorsError, get_f32, get_u64};
use gradus_envs::{EnvSpec, Space};
use gradus_nets::{Observations, Store};

/// How a replay buffer keeps the observations of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// As rows of numbers.
    #[default]
    Rows,
    /// One-hot codes, as the number of the entry that is 1.
    Numbers,
    /// Images: each frame once, as bytes, although several observations show it.
    Frames(usize),
}

impl Kept {
    /// Returns how the observations of `world`, wrappers included, are kept.
    pub fn of(world: &EnvSpec) -> Self {
        match world.env().observation_space() {
            Space::Image(image) => Kept::Frames(image.frames),
            _ if world.one_hot_states().is_some() => Kept::Numbers,
            _ => Kept::Rows,
        }
    }

    /// Returns the bytes of an observation of this width; a frame that several observations show is counted once.
    pub fn bytes(self, width: usize) -> f64 {
        match self {
            Kept::Rows => 4.0 * width as f64,
            Kept::Numbers => 4.0,
            // the counters of a shared frame, and its address and length
            Kept::Frames(frames) => (width / frames + 16 + 16 * frames) as f64,
        }
    }
}

/// A list of observations.
#[derive(Clone, Debug)]
pub(super) enum Memory {
    Rows {
        rows: Vec<f32>,
        width: usize,
    },
    Numbers {
        numbers: Vec<u32>,
        width: usize,
    },
    /// Of each observation its frames, which it may share with others.
    Frames {
        frames: Vec<Arc<[u8]>>,
        each: usize,
        width: usize,
    },
}

impl Memory {
    /// Creates a list of `n` observations that are not set yet.
    pub fn new(kept: Kept, width: usize, n: usize) -> Self {
        match kept {
            // the system provides the memory of these zeros when they are first written
            Kept::Rows => Memory::Rows { rows: vec![0.0; n * width], width },
            Kept::Numbers => Memory::Numbers { numbers: vec![0; n], width },
            Kept::Frames(each) => Memory::Frames { frames: vec![Arc::from(vec![0; width / each]); n * each], each, width },
        }
    }

    fn kept(&self) -> Kept {
        match self {
            Memory::Rows { .. } => Kept::Rows,
            Memory::Numbers { .. } => Kept::Numbers,
            Memory::Frames { each, .. } => Kept::Frames(*each),
        }
    }

    /// Numbers of an observation.
    pub fn width(&self) -> usize {
        match self {
            Memory::Rows { width, .. } | Memory::Numbers { width, .. } | Memory::Frames { width, .. } => *width,
        }
    }

    /// A list of `n` observations of the same kind.
    pub fn like(&self, n: usize) -> Self {
        Self::new(self.kept(), self.width(), n)
    }

    /// Sets observation `i` to number `row` of a store. It may show frames of observation `before`.
    ///
    /// # Panics
    /// If the store has observations of another kind.
    pub fn put(&mut self, i: usize, store: &Store, row: usize, before: Option<(&Memory, usize)>) {
        match (self, store.observations()) {
            (Memory::Rows { rows, width }, Observations::Rows { .. }) => {
                rows[i * *width..(i + 1) * *width].copy_from_slice(store.observation(row));
            }
            (Memory::Numbers { numbers, .. }, Observations::Rows { .. }) => {
                numbers[i] = store.observation(row).iter().position(|number| *number != 0.0).unwrap_or(0) as u32;
            }
            (Memory::Frames { frames, each, width }, Observations::Bytes { rows, width: same }) if *width == *same => {
                let known = before.map_or(&[][..], |(memory, i)| memory.frames_of(i));
                let seen: Vec<Arc<[u8]>> = shared(&rows[row * *width..(row + 1) * *width], *each, known);
                frames[i * *each..(i + 1) * *each].clone_from_slice(&seen);
            }
            (own, other) => panic!("replay: expected observations as they are kept, {:?}, got {} of them", own.kept(), other.len()),
        }
    }

    fn frames_of(&self, i: usize) -> &[Arc<[u8]>] {
        match self {
            Memory::Frames { frames, each, .. } => &frames[i * each..(i + 1) * each],
            _ => &[],
        }
    }

    /// Returns observation `i` alone, if others can share its frames.
    pub fn of_one(&self, i: usize) -> Option<Self> {
        let frames = self.frames_of(i).to_vec();
        (!frames.is_empty()).then(|| Memory::Frames { each: frames.len(), frames, width: self.width() })
    }

    /// Sets observation `i` to number `j` of another list of the same kind.
    pub fn set(&mut self, i: usize, from: &Memory, j: usize) {
        match (self, from) {
            (Memory::Rows { rows, width }, Memory::Rows { rows: from, .. }) => {
                rows[i * *width..(i + 1) * *width].copy_from_slice(&from[j * *width..(j + 1) * *width]);
            }
            (Memory::Numbers { numbers, .. }, Memory::Numbers { numbers: from, .. }) => numbers[i] = from[j],
            (Memory::Frames { frames, each, .. }, Memory::Frames { frames: from, .. }) => {
                frames[i * *each..(i + 1) * *each].clone_from_slice(&from[j * *each..(j + 1) * *each]);
            }
            _ => unreachable!("all lists of a buffer are of one kind"),
        }
    }

    /// An empty list of observations as networks read them.
    pub fn empty(&self) -> Observations {
        match self {
            Memory::Frames { width, .. } => Observations::Bytes { rows: Vec::new(), width: *width },
            _ => Observations::Rows { rows: Vec::new(), width: self.width() },
        }
    }

    /// Appends observation `i` to a list of the kind of [`empty`](Memory::empty).
    pub fn read(&self, i: usize, to: &mut Observations) {
        match (self, to) {
            (Memory::Rows { rows, width }, Observations::Rows { rows: to, .. }) => to.extend_from_slice(&rows[i * width..(i + 1) * width]),
            (Memory::Numbers { numbers, width }, Observations::Rows { rows: to, .. }) => {
                let begin = to.len();
                to.resize(begin + width, 0.0);
                to[begin + numbers[i] as usize] = 1.0;
            }
            (Memory::Frames { .. }, Observations::Bytes { rows: to, .. }) => {
                self.frames_of(i).iter().for_each(|frame| to.extend_from_slice(frame))
            }
            _ => unreachable!("the list is of the memory's kind"),
        }
    }

    /// Returns observations `places` as tensors of a checkpoint, whose names begin with `name`.
    pub fn save(&self, name: &str, places: &[usize]) -> Vec<(String, Tensor)> {
        match self {
            Memory::Rows { rows, width } => {
                let mut numbers = Vec::with_capacity(places.len() * width);
                places.iter().for_each(|i| numbers.extend_from_slice(&rows[i * width..(i + 1) * width]));
                vec![(name.into(), Tensor::f32(&[places.len(), *width], numbers))]
            }
            Memory::Numbers { numbers, .. } => {
                vec![(name.into(), Tensor::u64(places.iter().map(|i| u64::from(numbers[*i])).collect()))]
            }
            Memory::Frames { .. } => {
                let (mut known, mut bytes, mut order) = (std::collections::HashMap::new(), Vec::new(), Vec::new());
                for frame in places.iter().flat_map(|i| self.frames_of(*i)) {
                    let next = known.len() as u64;
                    let number = *known.entry(Arc::as_ptr(frame)).or_insert_with(|| {
                        bytes.extend_from_slice(frame);
                        next
                    });
                    order.push(number);
                }
                let words = bytes.chunks(8).map(|eight| eight.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))).collect();
                vec![(name.into(), Tensor::u64(order)), (format!("{name}_frames"), Tensor::u64(words))]
            }
        }
    }

    /// Reads what [`save`](Memory::save) returned, for `n` observations.
    pub fn load(&self, name: &str, n: usize, tensors: &Tensors) -> Result<Self, TensorsError> {
        let wrong = |problem: String| TensorsError::State(format!("replay, {name}: {problem}"));
        let mut own = self.like(n);
        match &mut own {
            Memory::Rows { rows, width } => rows.copy_from_slice(rows_of(name, n, *width, tensors)?),
            // earlier versions saved one-hot codes
            Memory::Numbers { numbers, width } if matches!(tensors.get(name), Some(Tensor { data: Data::F32(_), .. })) => {
                let codes = rows_of(name, n, *width, tensors)?.chunks_exact((*width).max(1));
                let number = |code: &[f32]| code.iter().position(|number| *number != 0.0).unwrap_or(0) as u32;
                numbers.iter_mut().zip(codes).for_each(|(to, code)| *to = number(code));
            }
            Memory::Numbers { numbers, width } => {
                let saved = get_u64(tensors, name)?;
                if saved.len() != n || saved.iter().any(|number| *number >= *width as u64) {
                    return Err(wrong(format!("expected {n} numbers below {width}")));
                }
                numbers.iter_mut().zip(saved).for_each(|(to, number)| *to = *number as u32);
            }
            Memory::Frames { frames, each, width } => {
                let (order, words) = (get_u64(tensors, name)?, get_u64(tensors, &format!("{name}_frames"))?);
                let (length, bytes) = (*width / (*each).max(1), words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
                let known: Vec<Arc<[u8]>> = bytes.chunks_exact(length.max(1)).map(Arc::from).collect();
                if order.len() != frames.len() || order.iter().any(|number| *number >= known.len() as u64) {
                    return Err(wrong(format!("expected {} of the {} frames", frames.len(), known.len())));
                }
                frames.iter_mut().zip(order).for_each(|(to, number)| *to = known[*number as usize].clone());
            }
        }
        Ok(own)
    }

    /// Number of the observations that [`save`](Memory::save) wrote.
    pub fn saved_len(&self, name: &str, tensors: &Tensors) -> usize {
        let rows = tensors.get(name).and_then(|tensor| tensor.shape.first()).copied().unwrap_or_default();
        if let Memory::Frames { each, .. } = self { rows / each } else { rows }
    }
}

/// Returns `n` saved rows of numbers. Earlier versions saved some of them as one list.
fn rows_of<'a>(name: &str, n: usize, width: usize, tensors: &'a Tensors) -> Result<&'a [f32], TensorsError> {
    let is_flat = tensors.get(name).is_some_and(|tensor| tensor.shape.len() == 1);
    let shape = if is_flat { vec![n * width] } else { vec![n, width] };
    get_f32(tensors, name, &shape)
}

/// Returns the `each` frames of an image. One that is the next frame of the observation before, whose frames are `known`, or its own frame before, is
/// shared.
fn shared(image: &[u8], each: usize, known: &[Arc<[u8]>]) -> Vec<Arc<[u8]>> {
    let mut frames: Vec<Arc<[u8]>> = Vec::with_capacity(each);
    for (i, frame) in image.chunks_exact(image.len() / each).enumerate() {
        let same = [known.get(i + 1), frames.last()].into_iter().flatten().find(|other| ***other == *frame);
        let same = same.cloned().unwrap_or_else(|| Arc::from(frame));
        frames.push(same);
    }
    frames
}
