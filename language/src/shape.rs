//! The shape of a model, from `config.json` or the metadata of a GGUF file.

use serde_json::Value;

/// A family of models: what differs in names and layout of the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Llama and SmolLM.
    Llama,
    /// Qwen2 and Qwen2.5: biases of queries, keys and values.
    Qwen2,
    /// Qwen3: norms of queries and keys.
    Qwen3,
    /// GPT-2: LayerNorm, biases, learned positions.
    Gpt2,
}

impl Family {
    /// Returns the family called `name` in `config.json` and in GGUF files.
    pub(crate) fn of(name: &str) -> Result<Self, String> {
        match name {
            "llama" => Ok(Self::Llama),
            "qwen2" => Ok(Self::Qwen2),
            "qwen3" => Ok(Self::Qwen3),
            "gpt2" => Ok(Self::Gpt2),
            other => Err(format!("family: expected llama, qwen2, qwen3 or gpt2, got {other}")),
        }
    }
}

/// The numbers that describe a model's layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// What the parameters are called, and which there are.
    pub family: Family,
    /// Number of layers.
    pub layers: usize,
    /// Numbers per token in the residual stream.
    pub width: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Numbers of a query, key or value.
    pub head_width: usize,
    /// Hidden width of the feed-forward part.
    pub feed_forward_width: usize,
    /// Number of rows of the embeddings.
    pub vocabulary: usize,
    /// Largest number of tokens of a text.
    pub context: usize,
    /// Constant of the norms.
    pub norm_epsilon: f32,
    /// Base of the rotary angles.
    pub rotary_base: f32,
    /// Llama 3's slower angles: the factor, the low and the high frequency factor and the context of the first training; empty: none.
    pub rotary_scaling: Vec<f32>,
    /// Whether the logits are products with the embeddings.
    pub tied: bool,
}

/// Reads `config.json`.
pub(crate) fn of_config(config: &Value) -> Result<Shape, String> {
    let family = Family::of(config["model_type"].as_str().unwrap_or("none"))?;
    let number = |keys: &[&str]| keys.iter().find_map(|key| config[*key].as_u64()).map(|number| number as usize).filter(|n| *n < 1 << 24);
    let needed = |keys: &[&str]| {
        number(keys).filter(|n| *n > 0).ok_or_else(|| format!("config.json: expected `{}`, a number from 1 to 16777215, got none", keys[0]))
    };
    let is_on = |key: &str| config[key].as_bool().unwrap_or(false);
    let plain = |key: &str, expected: &str| match &config[key] {
        Value::Null => Ok(()),
        Value::String(name) if expected.split(" or ").any(|known| known == name) => Ok(()),
        other => Err(format!("config.json: {key}: expected {expected}, got {other}")),
    };
    for key in ["attention_bias", "mlp_bias", "use_sliding_window", "scale_attn_by_inverse_layer_idx"] {
        if is_on(key) {
            return Err(format!("config.json: {key}: expected false, got true"));
        }
    }
    if config["scale_attn_weights"] == false {
        return Err("config.json: scale_attn_weights: expected true, got false".into());
    }
    let parts = [&config["partial_rotary_factor"], &config["rope_parameters"]["partial_rotary_factor"]];
    if let Some(got) = parts.into_iter().find_map(Value::as_f64).filter(|got| *got != 1.0) {
        return Err(format!("config.json: partial_rotary_factor: expected 1, got {got}"));
    }
    let slides = config["layer_types"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind != "full_attention"));
    if slides {
        return Err(format!("config.json: layer_types: expected full_attention alone, got {}", config["layer_types"]));
    }
    if family == Family::Gpt2 {
        plain("activation_function", "gelu_new or gelu_pytorch_tanh")?;
    } else {
        plain("hidden_act", "silu")?;
    }
    let (width, heads) = (needed(&["hidden_size", "n_embd"])?, needed(&["num_attention_heads", "n_head"])?);
    let inner = if family == Family::Gpt2 { number(&["n_inner"]).unwrap_or(4 * width) } else { needed(&["intermediate_size"])? };
    // newer folders have the rotary settings in a section of their own
    let rotary = if config["rope_parameters"].is_object() { &config["rope_parameters"] } else { &config["rope_scaling"] };
    let base = [&config["rope_parameters"]["rope_theta"], &config["rope_theta"]].into_iter().find_map(Value::as_f64).unwrap_or(10_000.0);
    let epsilon = [&config["rms_norm_eps"], &config["layer_norm_epsilon"]].into_iter().find_map(Value::as_f64);
    Ok(Shape {
        family,
        layers: needed(&["num_hidden_layers", "n_layer"])?,
        width,
        heads,
        kv_heads: number(&["num_key_value_heads"]).unwrap_or(heads),
        head_width: number(&["head_dim"]).unwrap_or(width / heads),
        feed_forward_width: inner,
        vocabulary: needed(&["vocab_size"])?,
        context: needed(&["max_position_embeddings", "n_positions"])?,
        norm_epsilon: epsilon.unwrap_or(if family == Family::Gpt2 { 1e-5 } else { 1e-6 }) as f32,
        rotary_base: base as f32,
        rotary_scaling: scaling(rotary)?,
        tied: config["tie_word_embeddings"].as_bool().unwrap_or(family == Family::Gpt2),
    })
}

fn scaling(rotary: &Value) -> Result<Vec<f32>, String> {
    let kind = ["rope_type", "type"].into_iter().find_map(|key| rotary[key].as_str()).unwrap_or("default");
    match kind {
        "default" => Ok(Vec::new()),
        "llama3" => ["factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"]
            .into_iter()
            .map(|key| {
                rotary[key]
                    .as_f64()
                    .map(|number| number as f32)
                    .ok_or_else(|| format!("config.json: expected `{key}` of llama3's angles, got none"))
            })
            .collect(),
        other => Err(format!("config.json: rotary angles: expected default or llama3, got {other}")),
    }
}
