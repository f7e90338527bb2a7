//! Adapters in peft's layout: `adapter_config.json` and `adapter_model.safetensors`.

use std::path::Path;

use gradus_base::tensors::{Tensors, with_prefix};
use serde_json::{Value, json};

use crate::LanguageError;
use crate::folder::{json, read_tensors, write, write_tensors};

const SETTINGS: &str = "adapter_config.json";
const WEIGHTS: &str = "adapter_model.safetensors";
/// What peft writes before the names of a causal model's tensors.
const PREFIX: &str = "base_model.model.";

/// The adapters of a model (LoRA, Hu et al., arXiv 2106.09685).
#[derive(Clone, Debug)]
pub struct Adapter {
    /// Rank of the matrices.
    pub rank: usize,
    /// The product of the two matrices is multiplied by alpha / rank.
    pub alpha: f32,
    /// `lora_A` and `lora_B` of each adapted matrix, with the names of the model's tensors, such as `model.layers.0.self_attn.q_proj.lora_A.weight`.
    pub tensors: Tensors,
}

impl Adapter {
    /// Whether a folder has adapters.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(SETTINGS).is_file()
    }

    /// Reads the adapters in a folder. Returns an error for kinds of adapters other than LoRA, and for settings that change what the matrices mean.
    pub fn open(folder: &Path) -> Result<Self, LanguageError> {
        Self::read(folder).map_err(|problem| LanguageError { path: folder.into(), problem: problem.replace('\n', " ") })
    }

    fn read(folder: &Path) -> Result<Self, String> {
        let settings = json(folder, SETTINGS)?;
        let is_plain = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if settings["peft_type"] != "LORA" {
            return Err(format!("{SETTINGS}: peft_type: expected \"LORA\", got {}", settings["peft_type"]));
        }
        for key in ["use_dora", "use_rslora", "lora_bias", "fan_in_fan_out", "rank_pattern", "alpha_pattern", "modules_to_save"] {
            if !is_plain(&settings[key]) {
                return Err(format!("{SETTINGS}: {key}: expected none, got {}", settings[key]));
            }
        }
        // these change the model itself, or act from some token on
        let begins = &settings["init_lora_weights"];
        if !(is_plain(begins) || *begins == true || ["gaussian", "orthogonal", "eva"].iter().any(|known| begins == known)) {
            return Err(format!("{SETTINGS}: init_lora_weights: expected true, false, gaussian, orthogonal or eva, got {begins}"));
        }
        for key in ["alora_invocation_tokens", "corda_config", "loftq_config", "target_parameters", "trainable_token_indices"] {
            if !is_plain(&settings[key]) {
                return Err(format!("{SETTINGS}: {key}: expected none, got {}", settings[key]));
            }
        }
        let number = |key: &str| settings[key].as_f64().filter(|number| *number > 0.0);
        let needed = |key: &str| number(key).ok_or_else(|| format!("{SETTINGS}: {key}: expected a number above 0, got {}", settings[key]));
        let rank = settings["r"].as_u64().filter(|rank| *rank > 0);
        let rank = rank.ok_or_else(|| format!("{SETTINGS}: r: expected a whole number above 0, got {}", settings["r"]))?;
        let (rank, alpha) = (rank as usize, needed("lora_alpha")? as f32);
        let mut tensors = Tensors::new();
        read_tensors(folder, WEIGHTS, &mut |name, tensor| {
            let own = name.strip_prefix(PREFIX).unwrap_or(&name).replace(".default.", ".");
            tensors.insert(own, tensor);
        })?;
        Ok(Self { rank, alpha, tensors })
    }

    /// Writes the adapters into a folder that exists. `base` is the path or the name of the model.
    pub fn write(&self, folder: &Path, base: &str) -> Result<(), LanguageError> {
        let mut targets: Vec<&str> = self.tensors.keys().filter_map(|name| name.rsplit('.').nth(2)).collect();
        targets.sort_unstable();
        targets.dedup();
        let settings = json!({
            "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base, "r": self.rank, "lora_alpha": self.alpha,
            "target_modules": targets, "lora_dropout": 0.0, "bias": "none", "fan_in_fan_out": false, "inference_mode": true,
        });
        let text = serde_json::to_string_pretty(&settings).unwrap_or_default() + "\n";
        write(folder, SETTINGS, text.as_bytes())
            .and_then(|()| write_tensors(folder, WEIGHTS, &with_prefix(self.tensors.clone(), PREFIX)))
            .map_err(|problem| LanguageError { path: folder.into(), problem })
    }
}
