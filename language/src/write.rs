//! Whole models in Hugging Face's layout.

use std::collections::BTreeMap;
use std::path::Path;

use gradus_base::tensors::{Data, Tensor, Tensors};
use serde_json::{Value, json};

use crate::folder::{write, write_tensors};
use crate::shape::{Family, Shape};
use crate::{LanguageError, Model, Source};

impl Model {
    /// Writes a model with the shape, the tokens and the template of this one and these parameters, which have the names of Llama's tensors, into a folder that
    /// exists. `transformers` opens it. Parameters that are missing, and rows of the positions that are, are those of this model. The model is to be sampled at this
    /// temperature.
    pub fn write(&self, folder: &Path, tensors: &Tensors, temperature: f32) -> Result<(), LanguageError> {
        self.write_files(folder, tensors, temperature)
            .map_err(|problem| LanguageError { path: folder.into(), problem: problem.replace('\n', " ") })
    }

    fn write_files(&self, folder: &Path, tensors: &Tensors, temperature: f32) -> Result<(), String> {
        let mut all = self.tensors().map_err(|error| error.problem)?;
        for (name, tensor) in &mut all {
            if let Some(Tensor { data: Data::F32(new), .. }) = tensors.get(name)
                && let Data::F32(old) = &mut tensor.data
            {
                let n = new.len().min(old.len());
                old[..n].copy_from_slice(&new[..n]);
            }
        }
        if self.shape.family == Family::Gpt2 {
            all = to_gpt2(all);
        }
        let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        let mut config = match &self.source {
            Source::Folder(own) => own.config().clone(),
            Source::Gguf(_) => config_of(&self.shape, self.ends()),
        };
        config["torch_dtype"] = "float32".into();
        config.as_object_mut().map(|settings| settings.remove("dtype"));
        write(folder, "config.json", text(&config).as_bytes())?;
        write_tensors(folder, "model.safetensors", &all)?;
        write(folder, "tokenizer.json", self.tokens.json()?.as_bytes())?;
        let mut about = match &self.source {
            Source::Folder(own) => own.about_tokens().clone(),
            Source::Gguf(_) => json!({ "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": self.shape.context }),
        };
        if !about.is_object() {
            about = json!({});
        }
        for (key, token) in [("bos_token", &self.template.bos), ("eos_token", &self.template.eos)] {
            if about[key].is_null() && !token.is_empty() {
                about[key] = token.as_str().into();
            }
        }
        if !self.template.text.is_empty() {
            about["chat_template"] = self.template.text.as_str().into();
        }
        write(folder, "tokenizer_config.json", text(&about).as_bytes())?;
        let temperature: f64 = temperature.to_string().parse().unwrap_or(1.0); // 0.7, and not 0.699999988
        // without these, `generate` samples from the 50 most probable tokens
        let generation = json!({ "eos_token_id": self.ends(), "do_sample": true, "temperature": temperature, "top_k": 0, "top_p": 1.0 });
        write(folder, "generation_config.json", text(&generation).as_bytes())
    }
}

/// Returns the settings of a model that came without.
fn config_of(shape: &Shape, ends: &[u32]) -> Value {
    if shape.family == Family::Gpt2 {
        return json!({
            "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": shape.width, "n_layer": shape.layers, "n_head": shape.heads,
            "n_inner": shape.feed_forward_width, "n_positions": shape.context, "vocab_size": shape.vocabulary, "layer_norm_epsilon": shape.norm_epsilon,
            "tie_word_embeddings": shape.tied, "eos_token_id": ends.first(),
        });
    }
    let (kind, class) = match shape.family {
        Family::Qwen2 => ("qwen2", "Qwen2ForCausalLM"),
        Family::Qwen3 => ("qwen3", "Qwen3ForCausalLM"),
        _ => ("llama", "LlamaForCausalLM"),
    };
    json!({
        "model_type": kind, "architectures": [class], "hidden_size": shape.width, "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_width, "intermediate_size": shape.feed_forward_width, "hidden_act": "silu",
        "vocab_size": shape.vocabulary, "max_position_embeddings": shape.context, "rms_norm_eps": shape.norm_epsilon, "rope_theta": shape.rotary_base,
        "tie_word_embeddings": shape.tied, "eos_token_id": ends.first(),
    })
}

/// Returns the tensors under the names of GPT-2, whose matrices are stored by input, and whose queries, keys and values are one.
fn to_gpt2(tensors: Tensors) -> Tensors {
    let whole = BTreeMap::from([
        ("model.embed_tokens.weight", "transformer.wte.weight"),
        ("model.embed_positions.weight", "transformer.wpe.weight"),
        ("model.norm.weight", "transformer.ln_f.weight"),
        ("model.norm.bias", "transformer.ln_f.bias"),
    ]);
    let mut found = Tensors::new();
    let mut parts: BTreeMap<String, [Option<Tensor>; 3]> = BTreeMap::new();
    for (name, tensor) in tensors {
        if let Some(known) = whole.get(name.as_str()) {
            found.insert((*known).into(), tensor);
            continue;
        }
        let inner = name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
        let Some((layer, (part, kind))) = inner.and_then(|(layer, rest)| Some((layer, rest.rsplit_once('.')?))) else {
            found.insert(name, tensor);
            continue;
        };
        let (own, place) = match part {
            "input_layernorm" => ("ln_1", 0),
            "self_attn.q_proj" => ("attn.c_attn", 0),
            "self_attn.k_proj" => ("attn.c_attn", 1),
            "self_attn.v_proj" => ("attn.c_attn", 2),
            "self_attn.o_proj" => ("attn.c_proj", 0),
            "post_attention_layernorm" => ("ln_2", 0),
            "mlp.up_proj" => ("mlp.c_fc", 0),
            _ => ("mlp.c_proj", 0),
        };
        parts.entry(format!("transformer.h.{layer}.{own}.{kind}")).or_default()[place] = Some(tensor);
    }
    found.extend(parts.into_iter().map(|(name, parts)| (name, by_input(&parts.into_iter().flatten().collect::<Vec<_>>()))));
    found
}

/// Returns the matrices side by side, stored by input; biases one behind the other.
fn by_input(parts: &[Tensor]) -> Tensor {
    let numbers: Vec<&[f32]> = parts.iter().map(|part| if let Data::F32(numbers) = &part.data { &numbers[..] } else { &[] }).collect();
    let [_, inputs] = parts[0].shape[..] else { return Tensor::f32(&[numbers.iter().map(|part| part.len()).sum()], numbers.concat()) };
    let column = |input: usize| numbers.iter().flat_map(move |part| part.iter().skip(input).step_by(inputs).copied());
    let outputs = parts.iter().map(|part| part.shape[0]).sum();
    Tensor::f32(&[inputs, outputs], (0..inputs).flat_map(column).collect())
}
