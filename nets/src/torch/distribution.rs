//! The distributions over actions as tensor programs. The results are those of the modules `categorical` and `gaussian`.

use std::f64::consts::{E, PI};

use tch::{Kind, TchError, Tensor};

use crate::choices::{Choices, Part};

/// Replaces smaller log-probabilities, such as the logarithm of 0, because a product of 0 and minus infinity is NaN.
const NEVER: f64 = -1e4;
/// Added to the variances of gSDE so that they are never 0.
const VARIANCE_FLOOR: f64 = 1e-6;

/// A distribution for each row.
pub(super) enum Distribution {
    /// Log-probabilities.
    Categorical { log_probs: Tensor },
    /// Means and log standard deviations, of equal shape.
    Gaussian { means: Tensor, log_stds: Tensor },
}

impl Distribution {
    /// Creates distributions from logits; actions that are not `allowed` have probability 0.
    pub fn categorical(logits: &Tensor, allowed: Option<&Tensor>) -> Result<Self, TchError> {
        let masked = allowed.map(|allowed| logits.f_masked_fill(&allowed.f_logical_not()?, f64::NEG_INFINITY)).transpose()?;
        let log_probs = masked.as_ref().unwrap_or(logits).f_log_softmax(-1, Kind::Float)?;
        Ok(Distribution::Categorical { log_probs })
    }

    /// Creates distributions over actions of these choices: each choice has its own logits.
    pub fn of_choices(logits: &Tensor, allowed: Option<&Tensor>, choices: &Choices) -> Result<Self, TchError> {
        if choices.is_one() {
            return Self::categorical(logits, allowed);
        }
        let masked = allowed.map(|allowed| logits.f_masked_fill(&allowed.f_logical_not()?, f64::NEG_INFINITY)).transpose()?;
        let logits = masked.as_ref().unwrap_or(logits);
        let part = |Part { range, .. }: &Part| logits.f_narrow(-1, range.start as i64, range.len() as i64)?.f_log_softmax(-1, Kind::Float);
        let parts = choices.parts().iter().map(part).collect::<Result<Vec<_>, _>>()?;
        Ok(Distribution::Categorical { log_probs: Tensor::f_cat(&parts, -1)? })
    }

    /// Creates distributions from means, and log standard deviations that do not depend on the state.
    pub fn gaussian(means: Tensor, log_stds: &Tensor) -> Result<Self, TchError> {
        let log_stds = log_stds.f_expand_as(&means)?;
        Ok(Distribution::Gaussian { means, log_stds })
    }

    /// Creates distributions from means, the features phi from which the means were computed, and the logarithms of gSDE's standard
    /// deviations sigma. The variance of dimension k is sum_j phi_j^2 sigma_jk^2 plus a small constant. No gradient flows from the
    /// variances into phi.
    pub fn gsde(means: Tensor, features: &Tensor, log_stds: &Tensor) -> Result<Self, TchError> {
        let squares = features.f_detach()?.f_square()?;
        let variances = squares.f_matmul(&log_stds.f_mul_scalar(2.0)?.f_exp()?)?.f_add_scalar(VARIANCE_FLOOR)?;
        Ok(Distribution::Gaussian { means, log_stds: variances.f_log()?.f_mul_scalar(0.5)? })
    }

    /// Returns log pi(a|s). `actions` has one number per discrete action, one row of places among the logits per action of several choices, or one row per continuous action.
    pub fn log_prob(&self, actions: &Tensor) -> Result<Tensor, TchError> {
        match self {
            Distribution::Categorical { log_probs } if actions.dim() == 2 => sum(&log_probs.f_gather(-1, actions, false)?),
            Distribution::Categorical { log_probs } => log_probs.f_gather(-1, &actions.f_unsqueeze(-1)?, false)?.f_squeeze_dim(-1),
            Distribution::Gaussian { means, log_stds } => {
                let z = actions.f_sub(means)?.f_mul(&log_stds.f_neg()?.f_exp()?)?;
                let each = z.f_square()?.f_mul_scalar(-0.5)?.f_sub(log_stds)?.f_sub_scalar(0.5 * (2.0 * PI).ln())?;
                sum(&each)
            }
        }
    }

    /// H(pi(.|s)).
    pub fn entropy(&self) -> Result<Tensor, TchError> {
        match self {
            Distribution::Categorical { log_probs } => sum(&log_probs.f_exp()?.f_mul(&log_probs.f_clamp_min(NEVER)?)?)?.f_neg(),
            Distribution::Gaussian { log_stds, .. } => sum(&log_stds.f_add_scalar(0.5 * (2.0 * PI * E).ln())?),
        }
    }

    /// Returns KL(old || this). `old` has rows in the format of `Policy::distributions`.
    pub fn kl_old(&self, old: &Tensor) -> Result<Tensor, TchError> {
        match self {
            Distribution::Categorical { log_probs } => {
                let difference = old.f_clamp_min(NEVER)?.f_sub(&log_probs.f_clamp_min(NEVER)?)?;
                sum(&old.f_exp()?.f_mul(&difference)?)
            }
            Distribution::Gaussian { means, log_stds } => kl(&halves(old)?, (means, log_stds)),
        }
    }

    /// Returns KL(this || reference). `reference` has rows in the format of `Policy::distributions`.
    pub fn kl_ref(&self, reference: &Tensor) -> Result<Tensor, TchError> {
        match self {
            Distribution::Categorical { log_probs } => {
                let difference = log_probs.f_clamp_min(NEVER)?.f_sub(&reference.f_clamp_min(NEVER)?)?;
                sum(&log_probs.f_exp()?.f_mul(&difference)?)
            }
            Distribution::Gaussian { means, log_stds } => {
                let (reference_means, reference_log_stds) = halves(reference)?;
                kl(&(means.shallow_clone(), log_stds.shallow_clone()), (&reference_means, &reference_log_stds))
            }
        }
    }

    /// Returns the distributions as rows in the format of `Policy::distributions`.
    pub fn rows(&self) -> Result<Tensor, TchError> {
        match self {
            Distribution::Categorical { log_probs } => Ok(log_probs.shallow_clone()),
            Distribution::Gaussian { means, log_stds } => Tensor::f_cat(&[means, log_stds], -1),
        }
    }
}

fn sum(rows: &Tensor) -> Result<Tensor, TchError> {
    rows.f_sum_dim_intlist(-1, false, Kind::Float)
}

/// Splits rows into means and log standard deviations.
fn halves(rows: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let n = rows.size().last().copied().unwrap_or_default() / 2;
    Ok((rows.f_narrow(-1, 0, n)?, rows.f_narrow(-1, n, n)?))
}

/// Returns KL(p || q) of two Gaussians: the sum over dimensions of d + (exp(-2 d) - 1) / 2 + ((mu_q - mu_p) / sigma_q)^2 / 2, with
/// d = log sigma_q - log sigma_p.
fn kl((p, p_log_stds): &(Tensor, Tensor), (q, q_log_stds): (&Tensor, &Tensor)) -> Result<Tensor, TchError> {
    let d = q_log_stds.f_sub(p_log_stds)?;
    let z = q.f_sub(p)?.f_mul(&q_log_stds.f_neg()?.f_exp()?)?;
    let shrink = d.f_mul_scalar(-2.0)?.f_exp()?.f_sub_scalar(1.0)?.f_mul_scalar(0.5)?;
    sum(&d.f_add(&shrink)?.f_add(&z.f_square()?.f_mul_scalar(0.5)?)?)
}
