//! Folders in Hugging Face's layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gradus_base::tensors::{Data, Tensor, Tensors};
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, serialize};
use serde_json::Value;

use crate::shape::{Family, Shape, of_config};
use crate::template::Template;
use crate::tokens::Tokens;

/// A folder, whose tensors are read when they are asked for.
pub(crate) struct Folder {
    path: PathBuf,
    config: Value,
    /// The contents of `tokenizer_config.json`; null if there is none.
    about_tokens: Value,
}

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const ABOUT_TOKENS: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";
const WEIGHTS: &str = "model.safetensors";
const SHARDS: &str = "model.safetensors.index.json";

fn read(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    fs::read(folder.join(name)).map_err(|error| format!("cannot read {name}: {error}"))
}

pub(crate) fn json(folder: &Path, name: &str) -> Result<Value, String> {
    serde_json::from_slice(&read(folder, name)?).map_err(|error| format!("{name}: expected JSON: {error}"))
}

impl Folder {
    /// Reads the settings in a folder.
    pub fn open(path: &Path) -> Result<Self, String> {
        let about_tokens = if path.join(ABOUT_TOKENS).exists() { json(path, ABOUT_TOKENS)? } else { Value::Null };
        Ok(Self { path: path.into(), config: json(path, CONFIG)?, about_tokens })
    }

    /// The contents of `config.json`.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// The contents of `tokenizer_config.json`; null if there is none.
    pub fn about_tokens(&self) -> &Value {
        &self.about_tokens
    }

    /// Returns the shape.
    pub fn shape(&self) -> Result<Shape, String> {
        of_config(&self.config)
    }

    /// Returns the text of a special token: a text, or an object with one.
    fn special(&self, key: &str) -> &str {
        let value = &self.about_tokens[key];
        value.as_str().or_else(|| value["content"].as_str()).unwrap_or_default()
    }

    /// Returns the tokeniser.
    pub fn tokens(&self) -> Result<Tokens, String> {
        let text = read(&self.path, TOKENIZER)?;
        let ids = |value: &Value| -> Vec<u32> {
            let list = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
            list.into_iter().filter_map(Value::as_u64).map(|id| u32::try_from(id).unwrap_or(u32::MAX)).collect()
        };
        let generation =
            if self.path.join("generation_config.json").exists() { json(&self.path, "generation_config.json")? } else { Value::Null };
        // the token that the template ends an answer with comes first
        let tokens = Tokens::new(&text, vec![0])?;
        let named = tokens.encode(self.special("eos_token"), true)?;
        let mut ends = if let [one] = named[..] { vec![one] } else { Vec::new() };
        for end in ids(&generation["eos_token_id"]).into_iter().chain(ids(&self.config["eos_token_id"])) {
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        tokens.with_ends(ends)
    }

    /// Returns the chat template.
    pub fn template(&self) -> Result<Template, String> {
        let of_config = match &self.about_tokens["chat_template"] {
            Value::String(text) => text.clone(),
            Value::Array(named) => {
                let default = named.iter().find(|template| template["name"] == "default").or(named.first());
                default.and_then(|template| template["template"].as_str()).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        };
        let text = if self.path.join(TEMPLATE).exists() {
            String::from_utf8(read(&self.path, TEMPLATE)?).map_err(|_| format!("{TEMPLATE}: expected UTF-8, got other bytes"))?
        } else {
            of_config
        };
        Template::new(text, self.special("bos_token").into(), self.special("eos_token").into())
    }

    /// Returns the files with parameters.
    fn shards(&self) -> Result<Vec<String>, String> {
        if !self.path.join(SHARDS).exists() {
            return Ok(vec![WEIGHTS.into()]);
        }
        let index = json(&self.path, SHARDS)?;
        let map = index["weight_map"].as_object().ok_or_else(|| format!("{SHARDS}: expected a `weight_map`, got none"))?;
        let mut files: Vec<String> = map.values().filter_map(|file| file.as_str().map(str::to_owned)).collect();
        files.sort();
        files.dedup();
        match files.iter().find(|file| !self.path.join(file).exists()) {
            Some(missing) => Err(format!("{SHARDS}: expected {} files in the folder, got none called {missing}", files.len())),
            None => Ok(files),
        }
    }

    /// Reads all parameters, with the names of Llama's tensors.
    pub fn tensors(&self, shape: &Shape) -> Result<Tensors, String> {
        let mut tensors = Tensors::new();
        for file in self.shards()? {
            read_tensors(&self.path, &file, &mut |name, tensor| match shape.family {
                Family::Gpt2 => of_gpt2(&name, tensor, &mut tensors),
                // the rotary frequencies of old folders follow from the settings
                _ if name.ends_with("rotary_emb.inv_freq") => {}
                _ => _ = tensors.insert(name, tensor),
            })?;
        }
        if shape.tied {
            tensors.remove("lm_head.weight");
        }
        Ok(tensors)
    }
}

/// Passes the tensors of a file, in f32, to `each`.
pub(crate) fn read_tensors(folder: &Path, file: &str, each: &mut dyn FnMut(String, Tensor)) -> Result<(), String> {
    let bytes = read(folder, file)?;
    let views = SafeTensors::deserialize(&bytes).map_err(|error| format!("{file}: {error}"))?;
    for (name, view) in views.tensors() {
        let numbers = numbers(view.dtype(), view.data()).map_err(|got| format!("{file}: {name}: expected F32, F16 or BF16, got {got}"))?;
        each(name, Tensor::f32(view.shape(), numbers));
    }
    Ok(())
}

/// Writes tensors of f32 numbers, as `transformers` and peft expect them.
pub(crate) fn write_tensors(folder: &Path, file: &str, tensors: &Tensors) -> Result<(), String> {
    let bytes = |tensor: &Tensor| match &tensor.data {
        Data::F32(numbers) => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ => Vec::new(),
    };
    let all: Vec<(&String, &Tensor, Vec<u8>)> = tensors.iter().map(|(name, tensor)| (name, tensor, bytes(tensor))).collect();
    let views: Result<Vec<_>, _> =
        all.iter().map(|(name, tensor, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, tensor.shape.clone(), bytes)?))).collect();
    let about = [("format".to_owned(), "pt".to_owned())].into_iter().collect();
    let whole = views.and_then(|views| serialize(views, Some(about))).map_err(|error| format!("{file}: {error}"))?;
    write(folder, file, &whole)
}

pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    fs::write(folder.join(name), bytes).map_err(|error| format!("cannot write {name}: {error}"))
}

fn numbers(kind: Dtype, bytes: &[u8]) -> Result<Vec<f32>, String> {
    Ok(match kind {
        Dtype::F32 => bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        Dtype::F16 => bytes.as_chunks::<2>().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect(),
        Dtype::BF16 => bytes.as_chunks::<2>().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()).collect(),
        other => return Err(format!("{other:?}")),
    })
}

/// Adds a tensor of GPT-2 under the names of Llama's. Its matrices are stored by input, and those of queries, keys and values are one.
fn of_gpt2(name: &str, tensor: Tensor, tensors: &mut Tensors) {
    let name = name.strip_prefix("transformer.").unwrap_or(name);
    let whole = BTreeMap::from([
        ("wte.weight", "model.embed_tokens.weight"),
        ("wpe.weight", "model.embed_positions.weight"),
        ("ln_f.weight", "model.norm.weight"),
        ("ln_f.bias", "model.norm.bias"),
        ("lm_head.weight", "lm_head.weight"),
    ]);
    if let Some(known) = whole.get(name) {
        tensors.insert((*known).into(), tensor);
        return;
    }
    let Some((layer, part)) = name.strip_prefix("h.").and_then(|rest| rest.split_once('.')) else { return };
    let Some((part, kind)) = part.rsplit_once('.') else { return };
    let parts: &[&str] = match part {
        "ln_1" => &["input_layernorm"],
        "attn.c_attn" => &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        "attn.c_proj" => &["self_attn.o_proj"],
        "ln_2" => &["post_attention_layernorm"],
        "mlp.c_fc" => &["mlp.up_proj"],
        "mlp.c_proj" => &["mlp.down_proj"],
        // masks, which are no parameters
        _ => return,
    };
    let Data::F32(data) = &tensor.data else { return };
    let (inputs, all) = if let [inputs, outputs] = tensor.shape[..] { (inputs, outputs) } else { (1, data.len()) };
    let outputs = all / parts.len();
    for (i, part) in parts.iter().enumerate() {
        let by_output = (0..outputs).flat_map(|output| (0..inputs).map(move |input| (input, output)));
        let own: Vec<f32> = by_output.map(|(input, output)| data[input * all + i * outputs + output]).collect();
        let shape: Vec<usize> = if tensor.shape.len() == 2 { vec![outputs, inputs] } else { vec![outputs] };
        tensors.insert(format!("model.layers.{layer}.{part}.{kind}"), Tensor::f32(&shape, own));
    }
}
