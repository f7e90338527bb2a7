//! The layers of a transformer as tensor programs.

use std::sync::Arc;

use tch::{Device, Kind, TchError, Tensor};

use super::super::parameters::{Parameters, Views, to_device};
use super::super::raw::Shared;
use super::frozen::Frozen;
use crate::{FeedForward, Positions, Precision, TransformerConfig};

/// The parameters of a pass: in f32 and, if the layers multiply in bf16, also in bf16.
pub(super) struct Weights {
    full: Views,
    half: Option<Views>,
    /// The parameters that are not trained, with adapters.
    frozen: Option<Arc<Frozen>>,
    /// Factor of what the adapters add.
    scale: f64,
    /// Cosines and sines of the angle of each position and pair of dimensions; `None` without rotary positions.
    rotary: Option<(Tensor, Tensor)>,
}

/// Keys and values of a layer.
pub(super) type Memory = (Tensor, Tensor);

/// The keys and values that the queries of a pass attend to.
pub(super) enum Attend<'a> {
    /// The queries are all tokens of whole texts, with a causal mask. The keys and values of each layer are added to the vector, if there
    /// is one.
    Whole(Option<&'a mut Vec<Memory>>),
    /// The queries are the next tokens of `rows` of the cache, at positions `places`. `allowed` is true for the keys that each query may
    /// read.
    Next { memories: &'a mut [Memory], rows: &'a Tensor, places: &'a Tensor, allowed: &'a Tensor },
}

impl Weights {
    pub fn new(
        parameters: &Parameters,
        (frozen, scale): (Option<Arc<Frozen>>, f64),
        rotary: Option<(Tensor, Tensor)>,
        precision: Precision,
    ) -> Result<Self, TchError> {
        let half = if precision == Precision::Bf16 { Some(parameters.views(Kind::BFloat16)?) } else { None };
        Ok(Self { full: parameters.views(Kind::Float)?, half, frozen, scale, rotary })
    }

    /// Returns the same parameters, of which each that is trained is a leaf of the autograd graph.
    pub fn leaves(self) -> Result<Self, TchError> {
        let half = self.half.as_ref().map(Views::leaves).transpose()?;
        Ok(Self { full: self.full.leaves()?, half, ..self })
    }

    /// Returns the trained parameters that a part of the network may read, by name, in each precision.
    pub fn trained(&self, is_read: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &Tensor)> {
        self.half.iter().chain([&self.full]).flat_map(Views::iter).filter(move |(name, _)| is_read(name))
    }

    /// Returns the parameter `name` in f32, if it exists.
    fn find(&self, name: &str) -> Option<&Tensor> {
        self.full.find(name).or_else(|| self.frozen.as_ref()?.find(name))
    }

    /// As [`find`](Weights::find), but an error if it is missing.
    fn get(&self, name: &str) -> Result<&Tensor, TchError> {
        self.find(name).map_or_else(|| self.full.get(name), Ok)
    }

    /// Computes x W^T + b in the layers' precision, and adds scale x A^T B^T if the matrix has an adapter.
    fn linear(&self, x: &Tensor, name: &str) -> Result<Tensor, TchError> {
        let views = self.half.as_ref().unwrap_or(&self.full);
        let find = |part: &str| views.find(&format!("{name}.{part}"));
        if let Some(weight) = find("weight") {
            return x.f_linear(weight, find("bias"));
        }
        let y = x.f_linear(self.get(&format!("{name}.weight"))?, self.find(&format!("{name}.bias")))?;
        match (find("lora_A.weight"), find("lora_B.weight")) {
            (Some(a), Some(b)) => y.f_add(&x.f_linear(a, None::<&Tensor>)?.f_linear(b, None::<&Tensor>)?.f_mul_scalar(self.scale)?),
            _ => Ok(y),
        }
    }

    /// The type in which the layers multiply.
    pub fn kind(&self) -> Kind {
        if self.half.is_some() { Kind::BFloat16 } else { Kind::Float }
    }

    fn norm(&self, config: &TransformerConfig, x: &Tensor, name: &str) -> Result<Tensor, TchError> {
        let (gain, epsilon) = (self.get(&format!("{name}.weight"))?, config.norm_epsilon.into());
        match self.find(&format!("{name}.bias")) {
            Some(bias) => x.f_layer_norm(gain.size(), Some(gain), Some(bias), epsilon, false),
            None => x.f_rms_norm(gain.size(), Some(gain), epsilon),
        }
    }

    /// Returns the cosines and signed sines by which queries and keys are turned. Whole texts begin at position 0, and each single token has its
    /// own position.
    pub fn turns(&self, places: Option<&Tensor>, n: i64) -> Result<Option<(Tensor, Tensor)>, TchError> {
        let Some((cos, sin)) = &self.rotary else { return Ok(None) };
        let at = |table: &Tensor| match places {
            Some(places) => table.f_index_select(0, places)?.f_unsqueeze(1)?.f_unsqueeze(1)?.f_to_kind(self.kind()),
            None => table.f_narrow(0, 0, n)?.f_to_kind(self.kind()),
        };
        Ok(Some((at(cos)?, at(sin)?)))
    }

    /// Computes the output of the trunk `prefix` for `tokens`, after the trunk's last norm. The output's shape is [texts, tokens, width].
    /// `places` are the positions of single tokens, and `None` for whole texts.
    pub fn forward(
        &self,
        config: &TransformerConfig,
        (prefix, tokens): (&str, &Tensor),
        places: Option<&Tensor>,
        mut attend: Attend<'_>,
    ) -> Result<Tensor, TchError> {
        let mut x = self.embed((prefix, tokens), places)?;
        let turns = self.turns(places, tokens.size()[1])?;
        for layer in 0..config.layers {
            x = self.layer(config, (prefix, layer), &x, turns.as_ref(), &mut attend)?;
        }
        self.last_norm(config, prefix, &x)
    }

    /// Applies the last norm of the trunk `prefix`.
    pub fn last_norm(&self, config: &TransformerConfig, prefix: &str, x: &Tensor) -> Result<Tensor, TchError> {
        self.norm(config, x, &format!("{prefix}.norm"))
    }

    /// Returns what the first layer of the trunk `prefix` reads.
    pub fn embed(&self, (prefix, tokens): (&str, &Tensor), places: Option<&Tensor>) -> Result<Tensor, TchError> {
        let embeddings = self.find(&format!("{prefix}.embed_tokens.weight"));
        let embeddings = embeddings.map_or_else(|| self.get("model.embed_tokens.weight"), Ok)?;
        let x = Tensor::f_embedding(embeddings, tokens, -1, false, false)?;
        let Some(table) = self.find(&format!("{prefix}.embed_positions.weight")) else { return Ok(x) };
        let at = match places {
            Some(places) => table.f_index_select(0, places)?.f_unsqueeze(1)?,
            None => table.f_narrow(0, 0, tokens.size()[1])?,
        };
        x.f_add(&at)
    }

    /// Applies a layer of the trunk `prefix`. `turns` are the rotary angles of the tokens.
    pub fn layer(
        &self,
        config: &TransformerConfig,
        (prefix, layer): (&str, usize),
        x: &Tensor,
        turns: Option<&(Tensor, Tensor)>,
        attend: &mut Attend<'_>,
    ) -> Result<Tensor, TchError> {
        let name = |part: &str| format!("{prefix}.layers.{layer}.{part}");
        let (texts, n) = (x.size()[0], x.size()[1]);
        let (heads, kv_heads, width) = (config.heads as i64, config.key_value_heads() as i64, config.numbers_per_head() as i64);
        let shares = heads != kv_heads;
        let by_head = |x: Tensor, heads: i64| x.f_view([texts, n, heads, width])?.f_transpose(1, 2);
        let read = self.norm(config, x, &name("input_layernorm"))?.f_to_kind(self.kind())?;
        let project = |part: &str, heads: i64| by_head(self.linear(&read, &name(part))?, heads);
        let scaled = |x: Tensor, part: &str| match config.qk_norm {
            // the norm of numbers of another type than its gain is several kernels in libtorch
            true => self.norm(config, &x.f_to_kind(Kind::Float)?, &name(part))?.f_to_kind(self.kind()),
            false => Ok(x),
        };
        let q = turned(scaled(project("self_attn.q_proj", heads)?, "self_attn.q_norm")?, turns)?;
        let k = turned(scaled(project("self_attn.k_proj", kv_heads)?, "self_attn.k_norm")?, turns)?;
        let v = project("self_attn.v_proj", kv_heads)?;
        let mixed = match attend {
            Attend::Whole(memories) => {
                // of keys that heads share, libtorch's fast kernels take those of bf16 only
                let mixed = if shares && k.kind() == Kind::Float {
                    let each = |x: &Tensor| x.f_repeat_interleave_self_int(heads / kv_heads, 1, None);
                    Tensor::f_scaled_dot_product_attention(&q, &each(&k)?, &each(&v)?, None::<&Tensor>, 0.0, true, None, false)?
                } else {
                    Tensor::f_scaled_dot_product_attention(&q, &k, &v, None::<&Tensor>, 0.0, true, None, shares)?
                };
                memories.iter_mut().for_each(|memories| memories.push((k.shallow_clone(), v.shallow_clone())));
                mixed
            }
            Attend::Next { memories, rows, places, allowed } => {
                let (keys, values) = &mut memories[layer];
                let at = [Some(rows.shallow_clone()), None, Some(places.shallow_clone())];
                let _ = keys.f_index_put_(&at, &k.f_squeeze_dim(2)?, false)?;
                let _ = values.f_index_put_(&at, &v.f_squeeze_dim(2)?, false)?;
                let reach = allowed.size()[3];
                let known = |memory: &Tensor| match memory.f_narrow(2, 0, reach)? {
                    // `rows` are all rows in order, so no copy is needed
                    all if all.size()[0] == rows.size()[0] => Ok(all),
                    all => all.f_index_select(0, rows),
                };
                // the queries of the heads that share keys, as if they were of several tokens
                let q = q.f_reshape([texts, kv_heads, heads / kv_heads, width])?;
                let mixed =
                    Tensor::f_scaled_dot_product_attention(&q, &known(keys)?, &known(values)?, Some(*allowed), 0.0, false, None, false)?;
                mixed.f_reshape([texts, heads, 1, width])?
            }
        };
        let mixed = mixed.f_transpose(1, 2)?.f_reshape([texts, n, heads * width])?;
        let x = x.f_add(&self.linear(&mixed, &name("self_attn.o_proj"))?)?;
        let read = self.norm(config, &x, &name("post_attention_layernorm"))?.f_to_kind(self.kind())?;
        let up = self.linear(&read, &name("mlp.up_proj"))?;
        let hidden = match config.feed_forward {
            FeedForward::Swiglu => self.linear(&read, &name("mlp.gate_proj"))?.f_silu()?.f_mul(&up)?,
            FeedForward::Gelu => up.f_gelu("tanh")?,
        };
        x.f_add(&self.linear(&hidden, &name("mlp.down_proj"))?)
    }

    /// Returns the logits for rows of the output of the policy's trunk.
    pub fn logits(&self, rows: &Tensor, temperature: f32) -> Result<Tensor, TchError> {
        let matrix = self.find("lm_head.weight").map_or_else(|| self.get("model.embed_tokens.weight"), Ok)?;
        let logits = rows.f_linear(matrix, None::<&Tensor>)?;
        if temperature == 1.0 { Ok(logits) } else { logits.f_div_scalar(f64::from(temperature)) }
    }

    /// Returns the values for rows of the output of the trunk that the value head reads.
    pub fn values(&self, rows: &Tensor) -> Result<Tensor, TchError> {
        let head = self.full.find("critic.value_head.weight").map_or_else(|| self.full.get("value_head.weight"), Ok)?;
        rows.f_linear(head, None::<&Tensor>)?.f_squeeze_dim(-1)
    }
}

/// Turns the pairs of dimensions of queries or keys [texts, heads, tokens, width]. A pair is a dimension of the first half and one of the second.
fn turned(x: Tensor, turns: Option<&(Tensor, Tensor)>) -> Result<Tensor, TchError> {
    let Some((cos, sin)) = turns else { return Ok(x) };
    let half = x.size()[3] / 2;
    x.f_mul(cos)?.f_addcmul(&x.f_roll([half], [-1])?, sin)
}

/// Returns the cosines and sines of the angle of each position and of each pair of dimensions in a head, or `None` if positions are not rotary. A row has the numbers of all pairs twice, first with negative sines.
pub(super) fn rotary(config: &TransformerConfig, context: usize, device: Device) -> Result<Option<(Shared, Shared)>, TchError> {
    if config.positions == Positions::Learned {
        return Ok(None);
    }
    let frequencies = config.frequencies();
    let pairs = frequencies.len();
    let angle = |i: usize| (i / pairs) as f64 * frequencies[i % pairs];
    let table = |of: fn(f64) -> f64, sign: f64| -> Result<Shared, TchError> {
        let numbers: Vec<f32> = (0..context * pairs).map(|i| of(angle(i)) as f32).collect();
        let half = to_device(&numbers, device)?.f_view([context as i64, pairs as i64])?;
        Ok(Tensor::f_cat(&[half.f_mul_scalar(sign)?, half], 1)?.into())
    };
    Ok(Some((table(f64::cos, 1.0)?, table(f64::sin, -1.0)?)))
}
