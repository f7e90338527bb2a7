//! Named tensors and their safetensors files.
//!
//! A file from [`encode`] contains its own SHA-256, so that [`decode`] notices every changed bit. Two comment lines at the start of the note
//! say so: the number of the file format, and the hash of the file with zeros in place of the hash. Each line alone is enough to recognise
//! such a file. One damaged line therefore never makes it look like a file without a hash.

use std::collections::BTreeMap;
use std::ops::Range;

use hmac_sha256::Hash;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};

/// The numbers of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Parameters and moments.
    F32(Vec<f32>),
    /// Running statistics.
    F64(Vec<f64>),
    /// Counters, and other numbers that are stored by their bits.
    U64(Vec<u64>),
}

/// A tensor's shape, and its numbers in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: Data,
}

impl Tensor {
    /// A tensor of f32 numbers.
    pub fn f32(shape: &[usize], data: Vec<f32>) -> Self {
        Self { shape: shape.into(), data: Data::F32(data) }
    }

    /// A tensor of f64 numbers.
    pub fn f64(shape: &[usize], data: Vec<f64>) -> Self {
        Self { shape: shape.into(), data: Data::F64(data) }
    }

    /// A one-dimensional tensor of u64 numbers.
    pub fn u64(data: Vec<u64>) -> Self {
        Self { shape: vec![data.len()], data: Data::U64(data) }
    }
}

/// Tensors by name.
pub type Tensors = BTreeMap<String, Tensor>;

/// Returns tensors by their names. (`Tensors::from` would compile another sort for each number of tensors.)
pub fn named(tensors: Vec<(String, Tensor)>) -> Tensors {
    tensors.into_iter().collect()
}

/// Returns a checksum of tensors alone, whatever file they are in: the first sixteen digits of the SHA-256 of their names, shapes and little-endian bytes, in the order of
/// their names.
///
/// ```
/// use gradus_base::tensors::{Tensor, checksum, named};
///
/// let tensors = |x: f32| named(vec![("bias".into(), Tensor::f32(&[1], vec![x]))]);
/// assert_eq!(checksum(&tensors(0.5)).len(), 16);
/// assert_ne!(checksum(&tensors(0.5)), checksum(&tensors(0.25)));
/// ```
pub fn checksum(tensors: &Tensors) -> String {
    let mut hash = Hash::new();
    for (name, Tensor { shape, data }) in tensors {
        hash.update(format!("{name} {shape:?}\n"));
        match data {
            Data::F32(numbers) => numbers.iter().for_each(|x| hash.update(x.to_le_bytes())),
            Data::F64(numbers) => numbers.iter().for_each(|x| hash.update(x.to_le_bytes())),
            Data::U64(numbers) => numbers.iter().for_each(|x| hash.update(x.to_le_bytes())),
        }
    }
    hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the tensors with `prefix` before their names.
pub fn with_prefix(tensors: Tensors, prefix: &str) -> Tensors {
    named(tensors.into_iter().map(|(name, tensor)| (format!("{prefix}{name}"), tensor)).collect())
}

/// Adds `more` to `tensors`, with `prefix` before their names. (`BTreeMap::append` would be compiled again in each crate that calls it.)
pub fn add_with_prefix(tensors: &mut Tensors, more: Tensors, prefix: &str) {
    tensors.extend(with_prefix(more, prefix));
}

/// Returns the tensors whose names begin with `prefix`, without the prefix.
pub fn without_prefix(tensors: &Tensors, prefix: &str) -> Tensors {
    named(tensors.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(prefix)?.into(), tensor.clone()))).collect())
}

/// An invalid safetensors file, or tensors other than expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorsError {
    /// Not a safetensors file, or a truncated one.
    #[error("not a safetensors file: {0}")]
    Format(String),
    /// A file from [`encode`] in which at least one bit has changed.
    #[error("damaged: its SHA-256 is not the one that was stored with it")]
    Damaged,
    /// Tensors that contradict each other or the program's state.
    #[error("{0}")]
    State(String),
    /// A tensor is missing.
    #[error("tensor `{0}` is missing")]
    Missing(String),
    /// A tensor that was not expected.
    #[error("tensor `{0}` is unexpected")]
    Unexpected(String),
    /// A tensor with the wrong shape or type.
    #[error("tensor `{name}`: expected {expected}, got {got}")]
    Shape {
        /// The tensor's name.
        name: String,
        /// The shape and type expected.
        expected: String,
        /// The shape and type found.
        got: String,
    },
    /// A number that is NaN, infinite or out of its range.
    #[error("tensor `{name}`: expected finite numbers in their range, got {got} at position {position}")]
    NotFinite {
        /// The tensor's name.
        name: String,
        /// The number.
        got: String,
        /// The number's position in the tensor.
        position: usize,
    },
}

/// Returns an error if a number in a tensor of f32 or f64 numbers is NaN or infinite.
pub fn check_finite<'a>(tensors: impl IntoIterator<Item = (&'a String, &'a Tensor)>) -> Result<(), TensorsError> {
    for (name, tensor) in tensors {
        let wrong = match &tensor.data {
            Data::F32(data) => data.iter().position(|x| !x.is_finite()).map(|at| (at, data[at].to_string())),
            Data::F64(data) => data.iter().position(|x| !x.is_finite()).map(|at| (at, data[at].to_string())),
            _ => None,
        };
        if let Some((position, got)) = wrong {
            return Err(TensorsError::NotFinite { name: name.clone(), got, position });
        }
    }
    Ok(())
}

/// Returns the numbers of tensor `name`, which must be finite f32 numbers of this shape.
pub fn get_f32<'a>(tensors: &'a Tensors, name: &str, shape: &[usize]) -> Result<&'a [f32], TensorsError> {
    let tensor = tensors.get(name).ok_or_else(|| TensorsError::Missing(name.into()))?;
    match &tensor.data {
        Data::F32(data) if tensor.shape == shape => match data.iter().position(|x| !x.is_finite()) {
            None => Ok(data),
            Some(position) => Err(TensorsError::NotFinite { name: name.into(), got: data[position].to_string(), position }),
        },
        data => Err(TensorsError::Shape { name: name.into(), expected: format!("F32 {shape:?}"), got: describe(data, &tensor.shape) }),
    }
}

/// Returns the numbers of tensor `name`, which must be finite f64 numbers of this shape.
pub fn get_f64<'a>(tensors: &'a Tensors, name: &str, shape: &[usize]) -> Result<&'a [f64], TensorsError> {
    let tensor = tensors.get(name).ok_or_else(|| TensorsError::Missing(name.into()))?;
    match &tensor.data {
        Data::F64(data) if tensor.shape == shape => match data.iter().position(|x| !x.is_finite()) {
            None => Ok(data),
            Some(position) => Err(TensorsError::NotFinite { name: name.into(), got: data[position].to_string(), position }),
        },
        data => Err(TensorsError::Shape { name: name.into(), expected: format!("F64 {shape:?}"), got: describe(data, &tensor.shape) }),
    }
}

/// Returns the numbers of tensor `name`, which must be one-dimensional and of type u64.
pub fn get_u64<'a>(tensors: &'a Tensors, name: &str) -> Result<&'a [u64], TensorsError> {
    let tensor = tensors.get(name).ok_or_else(|| TensorsError::Missing(name.into()))?;
    match &tensor.data {
        Data::U64(data) if tensor.shape.len() == 1 => Ok(data),
        data => Err(TensorsError::Shape { name: name.into(), expected: "a row of U64".into(), got: describe(data, &tensor.shape) }),
    }
}

fn describe(data: &Data, shape: &[usize]) -> String {
    let kind = match data {
        Data::F32(_) => "F32",
        Data::F64(_) => "F64",
        Data::U64(_) => "U64",
    };
    format!("{kind} {shape:?}")
}

/// The number of the file format. Files without a number, of format 1, have no hash.
const FORMAT: u32 = 2;
/// The two lines at the start of the note, without the number and the hash.
const FORMAT_MARK: &str = "# gradus tensors ";
const HASH_MARK: &str = "# sha256 ";
/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// Returns the bytes of a safetensors file: the tensors, and a note under the key `gradus` of the header's metadata. The note follows the
/// two lines that mark a file with a hash.
///
/// # Panics
/// If a tensor has another number of elements than its shape says.
pub fn encode(tensors: &Tensors, note: &str) -> Vec<u8> {
    let bytes = tensors.iter().map(|(name, tensor)| {
        let (dtype, bytes) = match &tensor.data {
            Data::F32(data) => (Dtype::F32, data.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>().into_flattened()),
            Data::F64(data) => (Dtype::F64, data.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>().into_flattened()),
            Data::U64(data) => (Dtype::U64, data.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>().into_flattened()),
        };
        (name, dtype, tensor.shape.as_slice(), bytes)
    });
    let bytes: Vec<(&String, Dtype, &[usize], Vec<u8>)> = bytes.collect();
    let views = bytes.iter().map(|(name, dtype, shape, bytes)| {
        (name.as_str(), TensorView::new(*dtype, shape.to_vec(), bytes).expect("the shape fits the number of elements"))
    });
    let note = format!("{FORMAT_MARK}{FORMAT}\n{HASH_MARK}{:0DIGITS$}\n{note}", 0);
    // the metadata have a single key, because several keys would be written in the arbitrary order of a hash map; the type of the map is
    // inferred, because it depends on the features of `safetensors`
    let metadata = [("gradus".to_string(), note)].into_iter().collect();
    let mut file = serialize(views, Some(metadata)).expect("names and shapes fit a safetensors header");
    let place = place_of_hash(&file).expect("the note has a hash");
    let hash = hash_without(&file, &place);
    file[place].copy_from_slice(hash.as_bytes());
    file
}

/// Reads the tensors and the note of a file from [`encode`], or of any safetensors file of F32, F64 and U64 tensors. If the file has no
/// note, returns an empty one. The note is returned without the lines that mark a file with a hash.
///
/// # Errors
/// If a file from [`encode`] has changed, even in a single bit, or if another file is not such a safetensors file. Files of an older version
/// have no hash, so that changed numbers in them are not noticed.
pub fn decode(bytes: &[u8]) -> Result<(Tensors, String), TensorsError> {
    // before anything in the file is used: lengths in a damaged header could ask for any amount of memory
    let [format, hash] = [FORMAT_MARK, HASH_MARK].map(|mark| find(header(bytes), mark));
    let is_intact = || place_of_hash(bytes).is_some_and(|place| bytes[place.clone()] == *hash_without(bytes, &place).as_bytes());
    let format = match (format, hash) {
        (None, None) => 1,
        (Some(mark), Some(_)) if is_intact() => number(&header(bytes)[mark + FORMAT_MARK.len()..]),
        _ => return Err(TensorsError::Damaged),
    };
    if format > u64::from(FORMAT) {
        return Err(TensorsError::State(format!("tensors: expected format {FORMAT} at most, got {format}, written by a newer gradus")));
    }
    read(bytes).map_err(|error| match error {
        // the header is shorter than it was when the file was written
        TensorsError::Format(_) if [FORMAT_MARK, HASH_MARK].iter().any(|mark| find(bytes, mark).is_some()) => TensorsError::Damaged,
        error => error,
    })
}

/// Whether [`decode`] checks the hash of this file. Files of older versions and of other programs have none.
pub fn is_hashed(bytes: &[u8]) -> bool {
    place_of_hash(bytes).is_some()
}

/// Reads a safetensors file without checking its hash.
fn read(bytes: &[u8]) -> Result<(Tensors, String), TensorsError> {
    let format = |error: safetensors::SafeTensorError| TensorsError::Format(error.to_string());
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let note = header.metadata().as_ref().and_then(|notes| notes.get("gradus").cloned()).unwrap_or_default();
    let mut tensors = Tensors::new();
    for (name, view) in SafeTensors::deserialize(bytes).map_err(format)?.tensors() {
        let data = match view.dtype() {
            Dtype::F32 => Data::F32(view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()),
            Dtype::F64 => Data::F64(view.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()),
            Dtype::U64 => Data::U64(view.data().as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()),
            other => {
                return Err(TensorsError::Shape { name, expected: "F32, F64 or U64".into(), got: format!("{other:?}") });
            }
        };
        tensors.insert(name, Tensor { shape: view.shape().to_vec(), data });
    }
    let is_marked = note.starts_with(FORMAT_MARK);
    let own = note.splitn(3, '\n').nth(2).unwrap_or_default();
    Ok((tensors, if is_marked { own.into() } else { note }))
}

/// Returns the header of a safetensors file, or an empty slice if the file is shorter than its header.
fn header(bytes: &[u8]) -> &[u8] {
    let Some((length, rest)) = bytes.split_first_chunk() else { return &[] };
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    rest.get(..length).unwrap_or_default()
}

/// Returns the bytes of the file that contain its hash in hexadecimal digits; `None` if the file has no hash.
fn place_of_hash(bytes: &[u8]) -> Option<Range<usize>> {
    let header = header(bytes);
    let start = find(header, HASH_MARK)? + HASH_MARK.len();
    (header.len() >= start + DIGITS).then_some(8 + start..8 + start + DIGITS)
}

/// Returns the SHA-256 of the file with zeros at `place`, in hexadecimal digits.
fn hash_without(bytes: &[u8], place: &Range<usize>) -> String {
    let mut hash = Hash::new();
    [&bytes[..place.start], &[b'0'; DIGITS], &bytes[place.end..]].into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the position of the first `mark` in `bytes`.
fn find(bytes: &[u8], mark: &str) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark.as_bytes())
}

/// Returns the number at the start of `text`; 0 if there is none.
fn number(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).take(18);
    digits.fold(0, |number, digit| 10 * number + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Tensors {
        Tensors::from([
            ("a.weight".into(), Tensor::f32(&[2, 3], vec![1.0, -2.0, 0.5, 1e-30, 3.0, -0.0])),
            ("counters".into(), Tensor::u64(vec![u64::MAX, 0, 7])),
            ("count".into(), Tensor::f64(&[], vec![1.0 / 3.0])),
            ("mean".into(), Tensor::f64(&[2], vec![f64::MIN_POSITIVE, -1e300])),
        ])
    }

    #[test]
    fn decode_restores_what_encode_wrote() {
        let bytes = encode(&example(), "a note");
        assert_eq!(bytes, encode(&example(), "a note"));
        assert_eq!(decode(&bytes), Ok((example(), "a note".into())));
    }

    #[test]
    fn truncated_empty_and_foreign_files_are_refused() {
        let bytes = encode(&example(), "");
        for bad in [&bytes[..0], &bytes[..7], b"PK\x03\x04 this is a zip file"] {
            assert!(matches!(decode(bad), Err(TensorsError::Format(_))), "{} bytes", bad.len());
        }
        for end in [100, bytes.len() - 1] {
            assert_eq!(decode(&bytes[..end]), Err(TensorsError::Damaged), "{end} bytes");
        }
    }

    /// A file as version 0.1.0 wrote it: without a hash.
    fn unmarked(note: &str) -> Vec<u8> {
        let numbers: Vec<u8> = [1.0_f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let view = TensorView::new(Dtype::F32, vec![2], &numbers).unwrap();
        serialize([("a", view)], Some([("gradus".to_string(), note.to_string())].into_iter().collect())).unwrap()
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let file = encode(&example(), "format = 2\nseed = 1\n");
        for bit in 0..8 * file.len() {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let error = decode(&flipped).expect_err("a flipped bit");
            assert!(matches!(error, TensorsError::Damaged | TensorsError::Format(_)), "bit {bit}: {error}");
            // only the first eight bytes, the length of the header, can make the whole file unreadable
            assert!(bit < 64 || error == TensorsError::Damaged, "bit {bit}: {error}");
        }
    }

    #[test]
    fn the_hash_is_the_sha256_of_the_file_with_zeros_in_its_place() {
        let file = encode(&example(), "");
        let place = place_of_hash(&file).unwrap();
        let text = String::from_utf8(file[place.clone()].to_vec()).unwrap();
        let mut zeroed = file.clone();
        zeroed[place].fill(b'0');
        assert_eq!(text, Hash::hash(&zeroed).iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        // the example of FIPS 180-2, appendix B.1
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::hash(b"abc").iter().map(|byte| format!("{byte:02x}")).collect::<String>(), abc);
    }

    #[test]
    fn files_without_a_hash_are_read_and_newer_files_are_refused() {
        let tensors = Tensors::from([("a".into(), Tensor::f32(&[2], vec![1.0, -2.0]))]);
        assert_eq!(decode(&unmarked("format = 1\n")), Ok((tensors.clone(), "format = 1\n".into())));
        // one mark without the other was left by damage
        for note in ["# gradus tensors 2\n", "# sha256 "] {
            assert_eq!(decode(&unmarked(note)), Err(TensorsError::Damaged), "{note}");
        }
        let mut newer = encode(&tensors, "");
        let mark = 8 + find(header(&newer), FORMAT_MARK).unwrap() + FORMAT_MARK.len();
        newer[mark] = b'3';
        let place = place_of_hash(&newer).unwrap();
        let hash = hash_without(&newer, &place);
        newer[place].copy_from_slice(hash.as_bytes());
        let error = decode(&newer).unwrap_err().to_string();
        assert_eq!(error, "tensors: expected format 2 at most, got 3, written by a newer gradus");
    }

    #[test]
    fn errors_name_the_tensor_and_the_defect() {
        let mut tensors = example();
        let message = |result: Result<&[f32], TensorsError>| result.unwrap_err().to_string();
        assert_eq!(message(get_f32(&tensors, "b", &[1])), "tensor `b` is missing");
        assert_eq!(message(get_f32(&tensors, "a.weight", &[3, 2])), "tensor `a.weight`: expected F32 [3, 2], got F32 [2, 3]");
        assert_eq!(message(get_f32(&tensors, "counters", &[3])), "tensor `counters`: expected F32 [3], got U64 [3]");
        let wrong = get_f64(&tensors, "a.weight", &[2, 3]).unwrap_err().to_string();
        assert_eq!(wrong, "tensor `a.weight`: expected F64 [2, 3], got F32 [2, 3]");
        assert_eq!(get_f64(&tensors, "mean", &[2]), Ok(&[f64::MIN_POSITIVE, -1e300][..]));
        tensors.insert("a.weight".into(), Tensor::f32(&[2], vec![0.0, f32::NAN]));
        assert_eq!(
            message(get_f32(&tensors, "a.weight", &[2])),
            "tensor `a.weight`: expected finite numbers in their range, got NaN at position 1"
        );
    }
}
