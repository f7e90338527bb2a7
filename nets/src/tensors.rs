//! Named tensors and their safetensors files.

use std::collections::BTreeMap;

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

/// An invalid safetensors file, or tensors other than expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorsError {
    /// Not a safetensors file, or a truncated one.
    #[error("not a safetensors file: {0}")]
    Format(String),
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

/// Returns the bytes of a safetensors file: the tensors, and a note under the key `gradus` of the header's metadata.
pub fn encode(tensors: &Tensors, note: &str) -> Vec<u8> {
    let bytes: Vec<(&String, Dtype, &[usize], Vec<u8>)> = tensors
        .iter()
        .map(|(name, tensor)| match &tensor.data {
            Data::F32(data) => (name, Dtype::F32, tensor.shape.as_slice(), data.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Data::F64(data) => (name, Dtype::F64, tensor.shape.as_slice(), data.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Data::U64(data) => (name, Dtype::U64, tensor.shape.as_slice(), data.iter().flat_map(|x| x.to_le_bytes()).collect()),
        })
        .collect();
    let views = bytes.iter().map(|(name, dtype, shape, bytes)| {
        (name.as_str(), TensorView::new(*dtype, shape.to_vec(), bytes).expect("the shape fits the number of elements"))
    });
    // the metadata have a single key, because several keys would be written in the arbitrary order of a hash map; the type of the map is
    // inferred, because it depends on the features of `safetensors`
    let note = [("gradus".to_string(), note.to_string())].into_iter().collect();
    serialize(views, Some(note)).expect("names and shapes fit a safetensors header")
}

/// Reads the tensors and the note of a file from [`encode`], or of any safetensors file of F32, F64 and U64 tensors. If the file has no
/// note, returns an empty one.
pub fn decode(bytes: &[u8]) -> Result<(Tensors, String), TensorsError> {
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
    Ok((tensors, note))
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
        for bad in [&bytes[..0], &bytes[..7], &bytes[..bytes.len() - 1], b"PK\x03\x04 this is a zip file".as_slice()] {
            assert!(matches!(decode(bad), Err(TensorsError::Format(_))), "{} bytes", bad.len());
        }
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
