//! GGUF files: the metadata, the tensors, and three quantisations.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gradus_base::tensors::{Tensor, Tensors};
use half::{bf16, f16};

use crate::shape::{Family, Shape};
use crate::template::Template;
use crate::tokens::{OfGguf, Tokens};

/// A value of the metadata.
#[derive(Clone, Debug)]
enum Value {
    Int(i64),
    Float(f64),
    /// True or false, which nothing here needs.
    Bool,
    Text(String),
    List(Vec<Value>),
}

/// A tensor of the file. The first dimension is that of consecutive numbers.
struct At {
    dimensions: Vec<usize>,
    kind: u32,
    offset: u64,
}

/// A file, whose tensors are read when they are asked for.
pub(crate) struct Gguf {
    path: PathBuf,
    values: BTreeMap<String, Value>,
    tensors: BTreeMap<String, At>,
    /// Where the numbers begin.
    begin: u64,
}

/// Values and bytes of a block.
type Block = Option<(usize, usize)>;

/// Names of the types of tensors; those that can be read have a number of values and bytes in a block.
const KINDS: [(u32, &str, Block); 17] = [
    (0, "F32", Some((1, 4))),
    (1, "F16", Some((1, 2))),
    (2, "Q4_0", Some((32, 18))),
    (3, "Q4_1", Some((32, 20))),
    (6, "Q5_0", None),
    (7, "Q5_1", None),
    (8, "Q8_0", Some((32, 34))),
    (9, "Q8_1", None),
    (10, "Q2_K", None),
    (11, "Q3_K", None),
    (12, "Q4_K", None),
    (13, "Q5_K", None),
    (14, "Q6_K", None),
    (15, "Q8_K", None),
    (20, "IQ4_NL", None),
    (23, "IQ4_XS", None),
    (30, "BF16", Some((1, 2))),
];

/// Most bytes of a text, entries of a list and dimensions: more are a damaged file.
const MOST: u64 = 1 << 24;

/// Reads numbers and texts, in the file's order of bytes.
struct Reader<R>(R);

fn ended(error: &std::io::Error) -> String {
    if error.kind() == ErrorKind::UnexpectedEof { "expected a whole GGUF file, got one that ends early".into() } else { error.to_string() }
}

impl<R: Read> Reader<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).map_err(|error| ended(&error))?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn length(&mut self, what: &str) -> Result<usize, String> {
        let length = self.u64()?;
        if length > MOST { Err(format!("{what}: expected at most {MOST}, got {length}")) } else { Ok(length as usize) }
    }

    fn text(&mut self) -> Result<String, String> {
        let mut bytes = vec![0; self.length("length of a text")?];
        self.0.read_exact(&mut bytes).map_err(|error| ended(&error))?;
        String::from_utf8(bytes).map_err(|_| "expected texts in UTF-8, got other bytes".into())
    }

    fn value(&mut self, kind: u32) -> Result<Value, String> {
        Ok(match kind {
            0 => Value::Int(u8::from_le_bytes(self.bytes()?).into()),
            1 => Value::Int(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Int(u16::from_le_bytes(self.bytes()?).into()),
            3 => Value::Int(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Int(self.u32()?.into()),
            5 => Value::Int(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.bytes()?).into()),
            7 => {
                self.bytes::<1>()?;
                Value::Bool
            }
            8 => Value::Text(self.text()?),
            9 => {
                let kind = self.u32()?;
                if kind == 9 {
                    return Err("expected lists of single values, got a list of lists".into());
                }
                let length = self.length("length of a list")?;
                Value::List((0..length).map(|_| self.value(kind)).collect::<Result<_, _>>()?)
            }
            10 => Value::Int(self.u64()? as i64),
            11 => Value::Int(i64::from_le_bytes(self.bytes()?)),
            12 => Value::Float(f64::from_le_bytes(self.bytes()?)),
            other => return Err(format!("expected values of the kinds 0 to 12, got {other}")),
        })
    }
}

impl Gguf {
    /// Reads the metadata of a file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| format!("cannot read: {error}"))?;
        let size = file.metadata().map_err(|error| error.to_string())?.len();
        let mut reader = Reader(BufReader::new(file));
        match reader.bytes::<4>() {
            Ok(magic) if &magic == b"GGUF" => {}
            _ => return Err("expected a folder with config.json, or a GGUF file, got neither".into()),
        }
        let version = reader.u32()?;
        if !(2..=3).contains(&version) {
            return Err(format!("expected a GGUF file of version 2 or 3, got version {version}"));
        }
        let (tensor_count, value_count) = (reader.length("number of tensors")?, reader.length("number of values")?);
        let mut values = BTreeMap::new();
        for _ in 0..value_count {
            let key = reader.text()?;
            let kind = reader.u32()?;
            values.insert(key, reader.value(kind)?);
        }
        let mut tensors = BTreeMap::new();
        for _ in 0..tensor_count {
            let name = reader.text()?;
            let count = reader.u32()?;
            if count > 4 {
                return Err(format!("tensor {name}: expected at most 4 dimensions, got {count}"));
            }
            let dimensions = (0..count).map(|_| reader.u64().map(|n| n as usize)).collect::<Result<_, _>>()?;
            tensors.insert(name, At { dimensions, kind: reader.u32()?, offset: reader.u64()? });
        }
        let at = reader.0.stream_position().map_err(|error| error.to_string())?;
        let mut gguf = Self { path: path.into(), values, tensors, begin: 0 };
        let alignment = gguf.int("general.alignment").unwrap_or(32).clamp(1, 1 << 16) as u64;
        gguf.begin = at.next_multiple_of(alignment);
        for (name, tensor) in &gguf.tensors {
            let end = bytes_of(name, tensor)?.checked_add(tensor.offset).and_then(|end| end.checked_add(gguf.begin));
            if end.is_none_or(|end| end > size) {
                return Err(format!("expected a whole GGUF file, got one that ends before the numbers of {name}"));
            }
        }
        Ok(gguf)
    }

    fn int(&self, key: &str) -> Option<i64> {
        match self.values.get(key)? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    fn float(&self, key: &str) -> Option<f64> {
        match self.values.get(key)? {
            Value::Float(number) => Some(*number),
            Value::Int(number) => Some(*number as f64),
            _ => None,
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn list(&self, key: &str) -> Result<&[Value], String> {
        match self.values.get(key) {
            Some(Value::List(list)) => Ok(list),
            _ => Err(format!("expected a list `{key}`, got none")),
        }
    }

    fn texts(&self, key: &str) -> Result<Vec<&str>, String> {
        fn text<'a>(key: &str, value: &'a Value) -> Result<&'a str, String> {
            match value {
                Value::Text(text) => Ok(text),
                _ => Err(format!("{key}: expected texts, got other values")),
            }
        }
        self.list(key)?.iter().map(|value| text(key, value)).collect()
    }

    /// Returns the shape.
    pub fn shape(&self) -> Result<Shape, String> {
        let name = self.text("general.architecture").unwrap_or("none");
        let family = Family::of(name)?;
        let optional = |key: &str| {
            self.int(&format!("{name}.{key}")).and_then(|number| usize::try_from(number).ok()).filter(|n| (1..1 << 24).contains(n))
        };
        let needed = |key: &str| optional(key).ok_or_else(|| format!("expected `{name}.{key}`, a number above 0, got none"));
        if self.tensors.contains_key("rope_freqs.weight") {
            return Err("rotary angles: expected none or one base, got factors of their own (rope_freqs.weight); a folder of the same model has them as settings".into());
        }
        match self.text(&format!("{name}.rope.scaling.type")) {
            None | Some("none") => {}
            Some(other) => return Err(format!("{name}.rope.scaling.type: expected none, got {other}")),
        }
        let (width, heads) = (needed("embedding_length")?, needed("attention.head_count")?);
        let head_width = optional("attention.key_length").unwrap_or(width / heads).max(1);
        for (key, expected) in [("rope.dimension_count", head_width), ("attention.value_length", head_width)] {
            if let Some(got) = optional(key).filter(|got| *got != expected && family != Family::Gpt2) {
                return Err(format!("{name}.{key}: expected {expected}, the numbers of a head, got {got}"));
            }
        }
        for key in ["attention.sliding_window", "rope.scale_linear"] {
            if let Some(got) = self.float(&format!("{name}.{key}")).filter(|got| *got != 0.0 && *got != 1.0) {
                return Err(format!("{name}.{key}: expected none, got {got}"));
            }
        }
        let vocabulary = self.tensors.get("token_embd.weight").and_then(|at| at.dimensions.get(1).copied());
        let epsilon = ["attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"];
        Ok(Shape {
            family,
            layers: needed("block_count")?,
            width,
            heads,
            kv_heads: optional("attention.head_count_kv").unwrap_or(heads),
            head_width,
            feed_forward_width: needed("feed_forward_length")?,
            vocabulary: vocabulary.ok_or("expected the tensor token_embd.weight, got none")?,
            context: needed("context_length")?,
            norm_epsilon: epsilon.iter().find_map(|key| self.float(&format!("{name}.{key}"))).unwrap_or(1e-5) as f32,
            rotary_base: self.float(&format!("{name}.rope.freq_base")).unwrap_or(10_000.0) as f32,
            rotary_scaling: Vec::new(),
            tied: !self.tensors.contains_key("output.weight"),
        })
    }

    /// Returns the tokeniser.
    pub fn tokens(&self) -> Result<Tokens, String> {
        match self.text("tokenizer.ggml.model") {
            Some("gpt2") => {}
            other => return Err(format!("tokenizer.ggml.model: expected gpt2 (byte-level BPE), got {}", other.unwrap_or("none"))),
        }
        let tokens = self.texts("tokenizer.ggml.tokens")?;
        let kinds = self.list("tokenizer.ggml.token_type").unwrap_or(&[]);
        let kinds = kinds.iter().map(|kind| if let Value::Int(kind) = kind { *kind } else { 1 }).collect();
        let parts = OfGguf {
            // files of GPT-2 are older than the key
            pre: match self.text("tokenizer.ggml.pre") {
                None | Some("default") if self.text("general.architecture") == Some("gpt2") => "gpt-2",
                named => named.unwrap_or("none"),
            },
            tokens,
            merges: self.texts("tokenizer.ggml.merges")?,
            kinds,
        };
        // the end of a turn, if there is one apart from the end of a text
        let ends = ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eos_token_id"];
        let mut ends: Vec<u32> = ends.iter().filter_map(|key| self.int(key)).map(|token| token as u32).collect();
        ends.dedup();
        Tokens::new(&parts.json()?, ends)
    }

    /// Returns the chat template.
    pub fn template(&self) -> Result<Template, String> {
        let tokens = self.texts("tokenizer.ggml.tokens")?;
        let special = |key: &str| {
            let token = self.int(key).and_then(|token| tokens.get(usize::try_from(token).ok()?));
            token.map_or_else(String::new, |token| (*token).to_owned())
        };
        let text = self.text("tokenizer.chat_template").unwrap_or_default().to_owned();
        Template::new(text, special("tokenizer.ggml.bos_token_id"), special("tokenizer.ggml.eos_token_id"))
    }

    /// Reads all parameters, with the names of Llama's tensors.
    pub fn tensors(&self, shape: &Shape) -> Result<Tensors, String> {
        let mut file = File::open(&self.path).map_err(|error| format!("cannot read: {error}"))?;
        let mut tensors = Tensors::new();
        for (name, at) in &self.tensors {
            let mut numbers = self.numbers(&mut file, name, at)?;
            let dimensions: Vec<usize> = at.dimensions.iter().rev().copied().collect();
            let is_matrix = dimensions.len() == 2;
            let known = named(name).ok_or_else(|| format!("tensor {name}: expected one of the known names"))?;
            let rows = dimensions.first().copied().unwrap_or(0);
            let whole = |parts: usize, what: &str| {
                if rows.is_multiple_of(parts) { Ok(()) } else { Err(format!("tensor {name}: expected {what}, got {rows} rows")) }
            };
            if known.ends_with("self_attn.qkv_proj") {
                whole(3, "queries, keys and values")?;
                // GPT-2's queries, keys and values are one matrix
                let part = numbers.len() / 3;
                for (i, name) in ["q_proj", "k_proj", "v_proj"].into_iter().enumerate() {
                    let own = known.replace("qkv_proj", name);
                    let mut shape = dimensions.clone();
                    shape[0] /= 3;
                    let own = own + if is_matrix { ".weight" } else { ".bias" };
                    tensors.insert(own, Tensor::f32(&shape, numbers[i * part..][..part].to_vec()));
                }
                continue;
            }
            if shape.family == Family::Llama && is_matrix && (known.ends_with("q_proj.weight") || known.ends_with("k_proj.weight")) {
                whole(shape.head_width, &format!("whole heads of {} numbers", shape.head_width))?;
                numbers = by_halves(&numbers, shape.head_width, dimensions[1]);
            }
            tensors.insert(known, Tensor::f32(&dimensions, numbers));
        }
        Ok(tensors)
    }

    fn numbers(&self, file: &mut File, name: &str, at: &At) -> Result<Vec<f32>, String> {
        let mut bytes = vec![0; bytes_of(name, at)? as usize];
        file.seek(SeekFrom::Start(self.begin + at.offset)).map_err(|error| error.to_string())?;
        file.read_exact(&mut bytes).map_err(|error| ended(&error))?;
        let half = |bytes: &[u8], at: usize| f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32();
        let mut numbers = Vec::with_capacity(at.dimensions.iter().product());
        match at.kind {
            0 => numbers.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
            1 => numbers.extend(bytes.as_chunks::<2>().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32())),
            30 => numbers.extend(bytes.as_chunks::<2>().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f32())),
            2 => {
                for block in bytes.as_chunks::<18>().0 {
                    let (scale, quants) = (half(block, 0), &block[2..]);
                    numbers.extend(quants.iter().map(|byte| scale * (f32::from(byte & 15) - 8.0)));
                    numbers.extend(quants.iter().map(|byte| scale * (f32::from(byte >> 4) - 8.0)));
                }
            }
            3 => {
                for block in bytes.as_chunks::<20>().0 {
                    let (scale, least, quants) = (half(block, 0), half(block, 2), &block[4..]);
                    numbers.extend(quants.iter().map(|byte| scale * f32::from(byte & 15) + least));
                    numbers.extend(quants.iter().map(|byte| scale * f32::from(byte >> 4) + least));
                }
            }
            _ => {
                for block in bytes.as_chunks::<34>().0 {
                    let scale = half(block, 0);
                    numbers.extend(block[2..].iter().map(|byte| scale * f32::from(byte.cast_signed())));
                }
            }
        }
        Ok(numbers)
    }
}

/// Returns the number of bytes of a tensor.
fn bytes_of(name: &str, at: &At) -> Result<u64, String> {
    let kind = KINDS.iter().find(|(number, ..)| *number == at.kind);
    let Some((_, _, Some((values, bytes)))) = kind else {
        let got = kind.map_or_else(|| format!("type {}", at.kind), |(_, name, _)| (*name).to_owned());
        return Err(format!("tensor {name}: expected F32, F16, BF16, Q8_0, Q4_0 or Q4_1, got {got}"));
    };
    let first = at.dimensions.first().copied().unwrap_or(0);
    if first == 0 || !first.is_multiple_of(*values) {
        return Err(format!("tensor {name}: expected rows of a multiple of {values} numbers, got {first}"));
    }
    let count = at.dimensions.iter().try_fold(1_u64, |count, n| count.checked_mul(*n as u64));
    count
        .and_then(|count| count.checked_mul(*bytes as u64))
        .map(|n| n / *values as u64)
        .ok_or_else(|| format!("tensor {name}: expected a smaller one"))
}

/// Returns the name of Llama's tensor for a name in a GGUF file; without `.weight` or `.bias` for GPT-2's queries, keys and values.
fn named(name: &str) -> Option<String> {
    let whole = match name {
        "token_embd.weight" => "model.embed_tokens.weight",
        "position_embd.weight" => "model.embed_positions.weight",
        "output_norm.weight" => "model.norm.weight",
        "output_norm.bias" => "model.norm.bias",
        "output.weight" => "lm_head.weight",
        _ => "",
    };
    if !whole.is_empty() {
        return Some(whole.into());
    }
    let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
    let (part, kind) = part.rsplit_once('.')?;
    let part = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_qkv" => return Some(format!("model.layers.{layer}.self_attn.qkv_proj")),
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "attn_output" => "self_attn.o_proj",
        "ffn_norm" => "post_attention_layernorm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{part}.{kind}"))
}

/// GGUF's rotary pairs of Llama are neighbours: rows 2i and 2i + 1 of a head. Returns the rows in the order in which the pairs are i and i + half.
fn by_halves(numbers: &[f32], head_width: usize, inputs: usize) -> Vec<f32> {
    let half = head_width / 2;
    let mut ordered = Vec::with_capacity(numbers.len());
    for head in numbers.chunks_exact(head_width * inputs) {
        for part in 0..2 {
            (0..half).for_each(|i| ordered.extend_from_slice(&head[(2 * i + part) * inputs..][..inputs]));
        }
    }
    ordered
}
