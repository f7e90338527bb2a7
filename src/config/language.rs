//! The network of a pretrained model: its shape, and its parameters.

use gradus_envs::EnvSpec;
use gradus_nets::{Behaviour, TransformerConfig};

use crate::Error;

/// Returns the transformer of the pretrained model whose language the text task `world` is in; `None` for other environments.
#[cfg(not(feature = "language"))]
pub(super) fn transformer(_: &EnvSpec) -> Option<TransformerConfig> {
    None
}

/// Loads the pretrained parameters of the model whose language `world` is in into `policy`. Does nothing for other environments.
#[cfg(not(feature = "language"))]
pub(crate) fn load_pretrained(_: &EnvSpec, _: &mut dyn Behaviour) -> Result<(), Error> {
    Ok(())
}

#[cfg(feature = "language")]
pub(super) use with_models::transformer;

#[cfg(feature = "language")]
pub(crate) use with_models::load_pretrained;

#[cfg(feature = "language")]
mod with_models {
    use gradus_base::tensors::Data;
    use gradus_envs::Space;
    use gradus_envs::text::language::Pretrained;
    use gradus_language::{Family, Model};
    use gradus_nets::{Biases, FeedForward, Norm, Positions};

    use super::{Behaviour, EnvSpec, Error, TransformerConfig};

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

    pub fn load_pretrained(world: &EnvSpec, policy: &mut dyn Behaviour) -> Result<(), Error> {
        let Some(model) = model(world) else { return Ok(()) };
        let mut tensors = model.tensors().map_err(|error| Error::folder(model.path(), error.problem))?;
        // texts are shorter than the model's context
        if let (Some(positions), Some(text)) = (tensors.get_mut("model.embed_positions.weight"), &world.text)
            && let (Space::Text { context, .. }, [rows, width], Data::F32(numbers)) =
                (text.space(), &mut positions.shape[..], &mut positions.data)
        {
            *rows = context;
            numbers.truncate(context * *width);
        }
        policy.load_pretrained(&tensors).map_err(|source| Error::Tensors { path: model.path().into(), source })
    }
}
