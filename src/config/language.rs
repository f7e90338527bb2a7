//! The network of a pretrained model: its shape, and its parameters.

use std::path::Path;

use gradus_base::tensors::Tensors;
use gradus_envs::EnvSpec;
use gradus_nets::{Behaviour, TransformerConfig};

use super::Config;
use crate::Error;

/// Returns the transformer of the pretrained model whose language the text task `world` is in; `None` for other environments.
#[cfg(not(feature = "language"))]
pub(super) fn transformer(_: &EnvSpec) -> Option<TransformerConfig> {
    None
}

/// Loads the pretrained parameters of the model whose language `world` is in into `policy`. Does nothing for other environments, and returns `false`.
#[cfg(not(feature = "language"))]
pub(crate) fn load_pretrained(_: &EnvSpec, _: &mut dyn Behaviour) -> Result<bool, Error> {
    Ok(false)
}

/// Whether the folder `path` has adapters in peft's layout.
#[cfg(not(feature = "language"))]
pub(crate) fn has_adapters(_: &Path) -> bool {
    false
}

/// Writes the adapters of a policy into the folder `to`, in peft's layout.
#[cfg(not(feature = "language"))]
pub(crate) fn write_adapters(_: &Path, _: &Config, _: &EnvSpec, _: &dyn Behaviour) -> Result<(), Error> {
    Ok(())
}

/// Writes a policy as a whole model into the folder `to`, in Hugging Face's layout.
#[cfg(not(feature = "language"))]
pub(crate) fn write_whole(to: &Path, _: &Config, _: &EnvSpec, _: &dyn Behaviour) -> Result<(), Error> {
    Err(Error::folder(to, "expected a program built with the feature language, got one without"))
}

/// Returns the adapters in the folder `path` for a policy with these tensors.
#[cfg(not(feature = "language"))]
pub(crate) fn adapters(path: &Path, _: &Config, _: Tensors) -> Result<Tensors, Error> {
    Err(Error::folder(path, "expected a program built with the feature language, got one without"))
}

#[cfg(feature = "language")]
pub(super) use with_models::transformer;

#[cfg(feature = "language")]
pub(crate) use with_models::{adapters, has_adapters, load_pretrained, write_adapters, write_whole};

#[cfg(feature = "language")]
mod with_models {
    use gradus_base::tensors::Data;
    use gradus_envs::Space;
    use gradus_envs::text::language::Pretrained;
    use gradus_language::{Adapter, Family, LanguageError, Model};
    use gradus_nets::{Biases, FeedForward, Norm, Positions};

    use super::super::Network;
    use super::{Behaviour, Config, EnvSpec, Error, Path, Tensors, TransformerConfig};

    fn model(world: &EnvSpec) -> Option<&Model> {
        let language = world.text.as_ref()?.task.vocabulary().language()?;
        language.as_any().downcast_ref::<Pretrained>().map(|pretrained| &pretrained.0)
    }

    pub fn transformer(world: &EnvSpec) -> Option<TransformerConfig> {
        let shape = model(world)?.shape();
        let is_gpt2 = shape.family == Family::Gpt2;
        Some(TransformerConfig {
            layers: shape.layers,
            width: shape.width,
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_width: shape.head_width,
            feed_forward: if is_gpt2 { FeedForward::Gelu } else { FeedForward::Swiglu },
            feed_forward_width: shape.feed_forward_width,
            positions: if is_gpt2 { Positions::Learned } else { Positions::Rotary },
            norm: if is_gpt2 { Norm::Layer } else { Norm::Rms },
            norm_epsilon: shape.norm_epsilon,
            biases: match shape.family {
                Family::Gpt2 => Biases::All,
                Family::Qwen2 => Biases::Qkv,
                Family::Llama | Family::Qwen3 => Biases::None,
            },
            qk_norm: shape.family == Family::Qwen3,
            rotary_base: shape.rotary_base,
            rotary_scaling: shape.rotary_scaling.clone(),
            tied: shape.tied,
            lora_rank: 16,
            lora_alpha: 32.0,
            ..TransformerConfig::default()
        })
    }

    pub fn load_pretrained(world: &EnvSpec, policy: &mut dyn Behaviour) -> Result<bool, Error> {
        let Some(model) = model(world) else { return Ok(false) };
        let mut tensors = model.tensors().map_err(|error| Error::folder(model.path(), error.problem))?;
        // texts are shorter than the model's context
        if let (Some(positions), Some(text)) = (tensors.get_mut("model.embed_positions.weight"), &world.text)
            && let (Space::Text { context, .. }, [rows, width], Data::F32(numbers)) =
                (text.space(), &mut positions.shape[..], &mut positions.data)
            && context <= *rows
        {
            *rows = context;
            numbers.truncate(context * *width);
        }
        policy.load_pretrained(&tensors).map_err(|source| Error::Tensors { path: model.path().into(), source })?;
        Ok(true)
    }

    fn failed(error: LanguageError) -> Error {
        Error::folder(&error.path, error.problem)
    }

    pub fn has_adapters(path: &Path) -> bool {
        Adapter::is_in(path)
    }

    /// Matrices that the folder does not adapt keep the adapters of `own`, which change nothing before their training.
    pub fn adapters(path: &Path, config: &Config, own: Tensors) -> Result<Tensors, Error> {
        let adapter = Adapter::open(path).map_err(failed)?;
        let Network::Transformer(TransformerConfig { lora_rank, lora_alpha, .. }) = config.network else {
            return Err(Error::folder(path, "expected a policy of a transformer, got the adapters of one"));
        };
        let wrong = |key: &str, ours: String, theirs: String| {
            let problem =
                format!("expected adapters with transformer.{key} = {ours}, got {theirs}; change it with --set transformer.{key}={theirs}");
            Err(Error::folder(path, problem))
        };
        if adapter.rank != lora_rank {
            return wrong("lora_rank", lora_rank.to_string(), adapter.rank.to_string());
        }
        if adapter.alpha != lora_alpha {
            return wrong("lora_alpha", lora_alpha.to_string(), adapter.alpha.to_string());
        }
        let mut tensors = own;
        for (name, tensor) in adapter.tensors {
            match tensors.get_mut(&name) {
                Some(own) if own.shape == tensor.shape => *own = tensor,
                Some(own) => {
                    let problem =
                        format!("expected adapters of this model, with {:?} numbers in {name}, got {:?}", own.shape, tensor.shape);
                    return Err(Error::folder(path, problem));
                }
                None => return Err(Error::folder(path, format!("expected adapters of this model's matrices, got {name}"))),
            }
        }
        Ok(tensors)
    }

    pub fn write_adapters(to: &Path, config: &Config, world: &EnvSpec, policy: &dyn Behaviour) -> Result<(), Error> {
        let (Some(model), Network::Transformer(network)) = (model(world), &config.network) else { return Ok(()) };
        // the queries, keys and values of GPT-2 are one matrix, and have one adapter
        if network.lora_rank == 0 || model.shape().family == Family::Gpt2 {
            return Ok(());
        }
        let mut tensors = policy.save();
        tensors.retain(|name, _| name.starts_with("model.") && name.contains(".lora_"));
        let adapter = Adapter { rank: network.lora_rank, alpha: network.lora_alpha, tensors };
        adapter.write(to, &model.path().display().to_string()).map_err(failed)
    }

    /// Writes a policy as a whole model into the folder `to`, in Hugging Face's layout.
    pub fn write_whole(to: &Path, config: &Config, world: &EnvSpec, policy: &dyn Behaviour) -> Result<(), Error> {
        let temperature = if let Network::Transformer(network) = &config.network { network.temperature } else { 1.0 };
        match (model(world), policy.merged()) {
            (Some(model), Some(tensors)) => model.write(to, &tensors, temperature).map_err(failed),
            _ => Err(Error::folder(to, format!("expected a run of a pretrained model (chat:), got one of {}", world.name))),
        }
    }
}
