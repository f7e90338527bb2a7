//! Storage for the observations and actions of a rollout.

use gradus_envs::{Actions, Space};

use crate::{Prefix, Sequence, Sequences, Texts};

/// The actions of many decisions.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionRows {
    /// One number per decision.
    Discrete(Vec<u32>),
    /// One row of `width` numbers per decision, as the policy sampled them: not clipped to any bounds.
    Continuous {
        /// The rows, concatenated.
        rows: Vec<f32>,
        /// Numbers per row.
        width: usize,
    },
    /// This many actions, stored only on the device that computed them. Only a policy on that device can read them.
    OnDevice(usize),
}

impl ActionRows {
    /// Returns an empty list of actions of this space.
    ///
    /// # Panics
    /// If `space` is a space of texts.
    pub fn empty(space: &Space) -> Self {
        match space {
            Space::Discrete(_) | Space::MultiDiscrete(_) => ActionRows::Discrete(Vec::new()),
            Space::Box { low, .. } => ActionRows::Continuous { rows: Vec::new(), width: low.len() },
            Space::Image(_) | Space::Text { .. } => panic!("actions: expected a discrete space or a box, got {space}"),
        }
    }

    /// Returns the actions in the form that environments take.
    ///
    /// # Panics
    /// If they are on a device.
    pub fn view(&self) -> Actions<'_> {
        match self {
            ActionRows::Discrete(actions) => Actions::Discrete(actions),
            ActionRows::Continuous { rows, width } => Actions::Continuous { rows, width: *width },
            ActionRows::OnDevice(_) => self.not_here(),
        }
    }

    /// Number of actions.
    pub fn len(&self) -> usize {
        match self {
            ActionRows::OnDevice(n) => *n,
            _ => self.view().len(),
        }
    }

    /// Whether there are no actions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Resizes to `n` actions; new actions are 0.
    ///
    /// # Panics
    /// If they are on a device.
    pub fn resize(&mut self, n: usize) {
        match self {
            ActionRows::Discrete(actions) => actions.resize(n, 0),
            ActionRows::Continuous { rows, width } => rows.resize(n * *width, 0.0),
            ActionRows::OnDevice(_) => self.not_here(),
        }
    }

    /// Copies action number `from_row` of `from` to position `row`.
    ///
    /// # Panics
    /// If the two lists differ in kind or width, or if they are on a device.
    pub fn set(&mut self, row: usize, from: &ActionRows, from_row: usize) {
        match (self, from) {
            (ActionRows::Discrete(to), ActionRows::Discrete(from)) => to[row] = from[from_row],
            (ActionRows::Continuous { rows: to, width }, ActionRows::Continuous { rows: from, width: same }) if *width == *same => {
                to[row * *width..(row + 1) * *width].copy_from_slice(&from[from_row * *width..(from_row + 1) * *width]);
            }
            (to, from) => panic!("actions: expected {}, got {}", to.kind(), from.kind()),
        }
    }

    /// Appends action number `row` of `from`.
    ///
    /// # Panics
    /// If the two lists differ in kind or width, or if they are on a device.
    #[inline]
    pub fn push(&mut self, from: &ActionRows, row: usize) {
        match (self, from) {
            (ActionRows::Discrete(to), ActionRows::Discrete(from)) => to.push(from[row]),
            (ActionRows::Continuous { rows: to, width }, ActionRows::Continuous { rows: from, width: same }) if *width == *same => {
                to.extend_from_slice(&from[row * *width..(row + 1) * *width]);
            }
            (to, from) => panic!("actions: expected {}, got {}", to.kind(), from.kind()),
        }
    }

    /// Appends the actions of `other`.
    ///
    /// # Panics
    /// If the two lists differ in kind or width, or if they are on a device.
    pub fn extend(&mut self, other: &ActionRows) {
        match (self, other) {
            (ActionRows::Discrete(to), ActionRows::Discrete(from)) => to.extend_from_slice(from),
            (ActionRows::Continuous { rows: to, width }, ActionRows::Continuous { rows: from, width: same }) if *width == *same => {
                to.extend_from_slice(from);
            }
            (to, from) => panic!("actions: expected {}, got {}", to.kind(), from.kind()),
        }
    }

    /// Describes the kind of actions, for an error.
    pub(crate) fn kind(&self) -> String {
        match self {
            ActionRows::Discrete(_) => "discrete actions".into(),
            ActionRows::Continuous { width, .. } => format!("rows of {width} numbers"),
            ActionRows::OnDevice(_) => "actions on a device".into(),
        }
    }

    /// Panics because the actions are on a device and cannot be read here.
    #[cold]
    pub(crate) fn not_here(&self) -> ! {
        panic!("actions: expected actions on the host, got {}", self.kind())
    }
}

/// Many observations.
#[derive(Clone, Debug, PartialEq)]
pub enum Observations {
    /// One row of `width` numbers per observation.
    Rows {
        /// The rows, concatenated.
        rows: Vec<f32>,
        /// Numbers per row.
        width: usize,
    },
    /// Rows of whole numbers from 0 to 255: images.
    Bytes {
        /// The rows, concatenated.
        rows: Vec<u8>,
        /// Numbers per row.
        width: usize,
    },
    /// Prefixes of texts.
    Texts(Texts),
    /// Rows stored only on the device that computed them. Only a policy on that device can read them.
    OnDevice {
        /// Number of rows.
        rows: usize,
        /// Numbers per row.
        width: usize,
    },
    /// Prefixes of texts whose tokens are stored only on the device that wrote them.
    TextsOnDevice(Vec<Prefix>),
}

impl Observations {
    /// Returns an empty list of observations of this space.
    pub fn empty(space: &Space) -> Self {
        match space {
            Space::Text { context, .. } => Observations::Texts(Texts::new(*context)),
            Space::Image(image) => Observations::Bytes { rows: Vec::new(), width: image.len() },
            space => Observations::Rows { rows: Vec::new(), width: space.width() },
        }
    }

    /// Makes room for this many observations, if they are rows of numbers.
    pub fn reserve(&mut self, n: usize) {
        match self {
            Observations::Rows { rows, width } => rows.reserve_exact(n * *width),
            Observations::Bytes { rows, width } => rows.reserve_exact(n * *width),
            _ => {}
        }
    }

    /// Number of observations.
    pub fn len(&self) -> usize {
        match self {
            Observations::Rows { rows, width } => rows.len() / width,
            Observations::Bytes { rows, width } => rows.len() / width,
            Observations::Texts(texts) => texts.prefixes().len(),
            Observations::TextsOnDevice(prefixes) => prefixes.len(),
            Observations::OnDevice { rows, .. } => *rows,
        }
    }

    /// Whether there are no observations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends an observation: a row of numbers as environments write it.
    ///
    /// # Panics
    /// If the observations are on a device.
    #[inline]
    pub fn push(&mut self, row: &[f32]) {
        match self {
            Observations::Rows { rows, .. } => rows.extend_from_slice(row),
            Observations::Bytes { rows, .. } => rows.extend(row.iter().map(|number| *number as u8)),
            Observations::Texts(texts) => texts.push(gradus_envs::text::tokens(row)),
            _ => panic!("observations: expected rows of numbers or texts, got {}", self.kind()),
        }
    }

    /// Appends the observations of `other`.
    ///
    /// # Panics
    /// If the two lists differ in kind or width, or if they are on a device.
    pub fn extend(&mut self, other: &Observations) {
        match (self, other) {
            (Observations::Rows { rows, width }, Observations::Rows { rows: more, width: same }) if *width == *same => rows.extend(more),
            (Observations::Bytes { rows, width }, Observations::Bytes { rows: more, width: same }) if *width == *same => rows.extend(more),
            (Observations::Texts(texts), Observations::Texts(more)) => texts.extend(more),
            (own, other) => panic!("observations: expected {}, got {}", own.kind(), other.kind()),
        }
    }

    /// Marks the end of an episode: the next observation does not extend its text.
    pub fn end_episode(&mut self) {
        if let Observations::Texts(texts) = self {
            texts.end_text();
        }
    }

    /// Removes all observations.
    pub fn clear(&mut self) {
        match self {
            Observations::Rows { rows, .. } => rows.clear(),
            Observations::Bytes { rows, .. } => rows.clear(),
            Observations::Texts(texts) => *texts = Texts::new(texts.context()),
            Observations::OnDevice { rows, .. } => *rows = 0,
            Observations::TextsOnDevice(prefixes) => prefixes.clear(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Observations::Rows { .. } => "rows of numbers",
            Observations::Bytes { .. } => "images",
            Observations::Texts(_) => "texts",
            Observations::OnDevice { .. } => "rows on a device",
            Observations::TextsOnDevice(_) => "texts on a device",
        }
    }
}

/// Observations and actions of a rollout, by index.
///
/// The observations of the decisions come first. They are followed by the last observation of each segment, which has no action. A segment
/// is a contiguous range of decisions of one episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    observations: Observations,
    /// The actions, one per decision.
    pub actions: ActionRows,
    /// Which actions were allowed in each decision (decisions x actions); `None` if all actions were allowed.
    pub masks: Option<Vec<bool>>,
    /// Which actions are allowed in each observation without an action; `None` if all actions are, or if this is not known.
    pub next_masks: Option<Vec<bool>>,
    /// The sequences that a policy with a memory reads; `None` for other policies.
    pub sequences: Option<Sequences>,
    copy: EngineCopy,
}

/// An engine's copy of a store, made once and dropped with the store. Copies always compare as equal, because the store determines its
/// copy.
#[derive(Clone, Default)]
struct EngineCopy(std::sync::OnceLock<std::sync::Arc<dyn std::any::Any + Send + Sync>>);

impl PartialEq for EngineCopy {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for EngineCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "on a device" } else { "none" })
    }
}

impl Store {
    /// Creates a store whose observations are rows of `width` numbers, without masks.
    ///
    /// # Panics
    /// If the observations are not whole rows, or if there are fewer observations than actions.
    pub fn new(width: usize, observations: Vec<f32>, actions: ActionRows) -> Self {
        assert!(width > 0 && observations.len().is_multiple_of(width), "observations: expected rows of {width} numbers");
        Self::of(Observations::Rows { rows: observations, width }, actions)
    }

    /// Creates a store of any observations, without masks.
    ///
    /// # Panics
    /// If there are fewer observations than actions.
    pub fn of(observations: Observations, actions: ActionRows) -> Self {
        assert!(observations.len() >= actions.len(), "observations: expected at least one per action");
        Self { observations, actions, masks: None, next_masks: None, sequences: None, copy: EngineCopy::default() }
    }

    /// Adds masks: in each decision, only the actions that are true in its row of `masks` were allowed.
    ///
    /// # Panics
    /// If `masks` does not consist of one row of equal length per decision, or if the actions are not discrete.
    pub fn with_masks(self, masks: Vec<bool>) -> Self {
        assert!(matches!(self.actions, ActionRows::Discrete(_)), "masks: expected discrete actions, got {}", self.actions.kind());
        let n = self.actions.len();
        assert!(masks.len().is_multiple_of(n.max(1)), "masks: expected whole rows for {n} decisions, got {} entries", masks.len());
        Self { masks: Some(masks), copy: EngineCopy::default(), ..self }
    }

    /// Divides the decisions into sequences, for a policy with a memory.
    ///
    /// # Panics
    /// If the sequences are not those of all decisions, in order.
    pub fn with_sequences(self, sequences: Sequences) -> Self {
        let ends = sequences.list.iter().scan(0, |begin, sequence| {
            assert_eq!(sequence.decisions.start, *begin, "sequences: expected every decision in exactly one, in order");
            *begin = sequence.decisions.end;
            Some(*begin)
        });
        assert_eq!(ends.last().unwrap_or(0), self.actions.len(), "sequences: expected every decision in exactly one, in order");
        Self { sequences: Some(sequences), copy: EngineCopy::default(), ..self }
    }

    /// Makes one sequence of all decisions, those of an episode from its beginning, for a policy that remembers `width` numbers.
    pub(crate) fn into_episode(self, width: usize) -> Self {
        let n = self.actions.len();
        let list = (0..usize::from(n > 0)).map(|_| Sequence { decisions: 0..n, successor: None }).collect();
        self.with_sequences(Sequences { list, memory: vec![0.0; width] })
    }

    /// Appends the decisions of `other`. The last observations of the segments still follow all decisions: first those of `self`, then
    /// those of `other`.
    ///
    /// # Panics
    /// If the two stores differ in kind or width, if only one of them has masks, or if their data are on a device.
    pub fn append(&mut self, other: &Store) {
        let (n, more, rows) = (self.actions.len(), other.actions.len(), self.rows());
        match (&mut self.observations, &other.observations) {
            (Observations::Rows { rows, width }, Observations::Rows { rows: new, width: same }) if *width == *same => {
                insert(rows, n * *width, new.split_at(more * *width));
            }
            (Observations::Bytes { rows, width }, Observations::Bytes { rows: new, width: same }) if *width == *same => {
                insert(rows, n * *width, new.split_at(more * *width));
            }
            (Observations::Texts(texts), Observations::Texts(new)) => texts.insert(n, new, more),
            (own @ (Observations::OnDevice { .. } | Observations::TextsOnDevice(_)), _) => {
                panic!("observations: expected rows or texts on the host, got {}", own.kind())
            }
            (own, other) => panic!("observations: expected {}, got {}", own.kind(), other.kind()),
        }
        match (&mut self.masks, &other.masks) {
            (Some(masks), Some(new)) => masks.extend_from_slice(new),
            (None, None) => {}
            _ => panic!("masks: expected both stores to have masks, or neither"),
        }
        if let (Some(own), Some(new)) = (&mut self.sequences, &other.sequences) {
            let successors = rows - n;
            own.list.iter_mut().for_each(|sequence| sequence.successor = sequence.successor.map(|row| row + more));
            own.list.extend(new.list.iter().map(|Sequence { decisions, successor }| Sequence {
                decisions: decisions.start + n..decisions.end + n,
                successor: successor.map(|row| row + n + successors),
            }));
            own.memory.extend_from_slice(&new.memory);
        }
        self.next_masks = self.next_masks.take().zip(other.next_masks.as_ref()).map(|(own, new)| [&own[..], new].concat());
        self.actions.extend(&other.actions);
        self.copy = EngineCopy::default();
    }

    /// Returns the engine's copy; the first call computes it with `make`. Afterwards the store must change only by
    /// [`append`](Store::append).
    ///
    /// A copy that does not fit, such as one of another device, is ignored.
    #[cfg_attr(not(feature = "tch"), allow(dead_code))] // the engine `cpu` reads the store itself
    pub(crate) fn copy<T: Send + Sync + 'static, E>(
        &self,
        fits: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<std::sync::Arc<T>, E> {
        let known = self.copy.0.get().and_then(|copy| copy.clone().downcast::<T>().ok()).filter(|copy| fits(copy));
        known.map_or_else(
            || {
                let made = std::sync::Arc::new(make()?);
                // fails if another copy is stored already; the new copy is then not kept
                let _ = self.copy.0.set(made.clone());
                Ok(made)
            },
            Ok,
        )
    }

    /// Creates a store whose data are only on a device, in `copy`. The first `decisions` observations have an action.
    #[cfg_attr(not(feature = "tch"), allow(dead_code))] // only libtorch keeps a store on its device
    pub(crate) fn resident<T: Send + Sync + 'static>(observations: Observations, decisions: usize, copy: T) -> Self {
        let store = Self::of(observations, ActionRows::OnDevice(decisions));
        let _ = store.copy.0.set(std::sync::Arc::new(copy)); // cannot fail: no copy is stored yet
        store
    }

    /// The observations.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// The observations as texts.
    ///
    /// # Panics
    /// If they are not texts on the host.
    pub fn texts(&self) -> &Texts {
        match &self.observations {
            Observations::Texts(texts) => texts,
            other => panic!("observations: expected texts, got {}", other.kind()),
        }
    }

    /// The prefixes of texts, whether their tokens are on the host or on a device.
    ///
    /// # Panics
    /// If they are not texts.
    pub fn prefixes(&self) -> &[Prefix] {
        match &self.observations {
            Observations::TextsOnDevice(prefixes) => prefixes,
            _ => self.texts().prefixes(),
        }
    }

    /// Numbers per observation; 0 for texts.
    pub fn width(&self) -> usize {
        match &self.observations {
            Observations::Rows { width, .. } | Observations::Bytes { width, .. } | Observations::OnDevice { width, .. } => *width,
            Observations::Texts(_) | Observations::TextsOnDevice(_) => 0,
        }
    }

    /// Number of observations, including the last observation of each segment.
    pub fn rows(&self) -> usize {
        self.observations.len()
    }

    /// Observation number `row`.
    ///
    /// # Panics
    /// If the observations are images or texts, or on a device.
    #[inline]
    pub fn observation(&self, row: usize) -> &[f32] {
        let width = self.width();
        match &self.observations {
            Observations::Rows { rows, .. } => &rows[row * width..(row + 1) * width],
            other => panic!("observations: expected rows of numbers, got {}", other.kind()),
        }
    }

    /// All observations, one after the other.
    ///
    /// # Panics
    /// If the observations are texts, or on a device.
    #[inline]
    pub(crate) fn numbers(&self) -> Numbers<'_> {
        match &self.observations {
            Observations::Rows { rows, .. } => Numbers::F32(rows),
            Observations::Bytes { rows, .. } => Numbers::U8(rows),
            other => panic!("observations: expected rows of numbers, got {}", other.kind()),
        }
    }
}

/// Rows of numbers, one after the other.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    /// As environments write them.
    F32(&'a [f32]),
    /// Of images.
    U8(&'a [u8]),
}

impl<'a> Numbers<'a> {
    /// How many numbers they are.
    pub fn len(self) -> usize {
        match self {
            Numbers::F32(numbers) => numbers.len(),
            Numbers::U8(numbers) => numbers.len(),
        }
    }

    /// Some of them.
    pub fn part(self, range: std::ops::Range<usize>) -> Numbers<'a> {
        match self {
            Numbers::F32(numbers) => Numbers::F32(&numbers[range]),
            Numbers::U8(numbers) => Numbers::U8(&numbers[range]),
        }
    }
}

/// Inserts the first of two parts at position `at`, and appends the second.
fn insert<T: Copy>(rows: &mut Vec<T>, at: usize, (first, second): (&[T], &[T])) {
    rows.splice(at..at, first.iter().copied());
    rows.extend_from_slice(second);
}
