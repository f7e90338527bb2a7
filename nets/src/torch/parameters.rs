//! All parameters of a policy in one tensor on the device, with their gradient and the state of the optimiser.

use std::cell::RefCell;
use std::sync::OnceLock;

use tch::{Device, Kind, TchError, Tensor, no_grad};

use super::fault::{Fault, one_line};
use super::raw::{Shared, numbers_mut};
use crate::clocks::{self, in_range};
use crate::optimiser::{self, Rectified};
use crate::{Group, OptimiserStep, Rule, UpdatedGroups};
use gradus_base::tensors::{Tensor as Named, Tensors, TensorsError, get_f32};
use gradus_base::threads;

// the f32 constants of the engine `cpu`, so that a checkpoint of one engine can be resumed on the other
const BETA1: f64 = optimiser::BETA1 as f64;
const BETA2: f64 = optimiser::BETA2 as f64;
const ALPHA: f64 = 0.99_f32 as f64;

/// Parameters in the order of their names, concatenated.
pub(super) struct Parameters {
    device: Device,
    fault: Fault,
    shapes: Vec<(String, Vec<usize>)>,
    groups: Vec<Group>,
    values: Shared,
    /// The gradient of the last batch; `None` before the first batch, or if the gradient is 0.
    gradient: Option<Shared>,
    /// Which groups the gradient updates.
    updates: UpdatedGroups,
    /// The optimiser's averages of the gradient and of the gradient's square; `None` before the optimiser's first step.
    moments: Option<Moments>,
    /// The clock of each group: beta1^t and beta2^t after t steps.
    clocks: Vec<[f64; 2]>,
    /// A copy of the values on the host.
    on_host: OnceLock<Vec<f32>>,
    /// A copy of the gradient on the host.
    gradient_on_host: OnceLock<Vec<f32>>,
    /// A copy of the gradient's norm on the host.
    norm_on_host: OnceLock<f32>,
}

struct Moments {
    first: Shared,
    second: Shared,
}

impl Moments {
    fn zeros(like: &Tensor) -> Result<Self, TchError> {
        let zeros = || no_grad(|| Ok::<_, TchError>(Shared::from(like.f_zeros_like()?)));
        Ok(Self { first: zeros()?, second: zeros()? })
    }
}

/// The largest number of elements that a copy through pinned memory may have. Larger copies are rare.
const STAGED: usize = 1 << 24;

/// Number of elements that a thread copies at once.
const AT_ONCE: usize = 1 << 16;

thread_local! {
    /// Pinned memory for each device, reused by the calls of [`staged`] on this thread.
    static STAGE: RefCell<Vec<(Device, Tensor)>> = const { RefCell::new(Vec::new()) };
}

/// Copies a tensor of f32 to pinned memory, lets `work` read and write it, and returns the pinned memory. It is valid until the next call.
fn staged(there: &Tensor, work: impl FnOnce(&mut [f32])) -> Result<Tensor, TchError> {
    let n = there.numel() as i64;
    STAGE.with_borrow_mut(|stage| {
        let device = there.device();
        let room = stage.iter().position(|(of, _)| *of == device).map(|at| stage.swap_remove(at).1);
        let room = room.filter(|room| room.numel() as i64 >= n);
        // not `f_pin_memory`, which prints that its argument is deprecated
        let grow =
            || Tensor::f_zeros([(n as u64).next_power_of_two() as i64], (Kind::Float, Device::Cpu))?.f_internal_pin_memory(there.device());
        let room = room.map_or_else(grow, Ok)?;
        let mut here = room.f_narrow(0, 0, n)?;
        here.f_copy_(&there.f_contiguous()?.f_view([n])?)?;
        work(numbers_mut(&mut here));
        stage.push((device, room));
        Ok(here)
    })
}

/// Copies all numbers of an f32 tensor to the host.
pub(super) fn to_host(tensor: &Tensor) -> Result<Vec<f32>, TchError> {
    let there = tensor.f_detach()?;
    let mut numbers = vec![0.0; there.numel()];
    let n = numbers.len();
    match there.device() {
        Device::Cuda(_) if n <= STAGED => {
            let _ = staged(&there, |here| {
                let mut parts: Vec<_> = numbers.chunks_mut(AT_ONCE).zip(here.chunks(AT_ONCE)).collect();
                threads::for_each(&mut parts, |_, (to, from)| to.copy_from_slice(from));
            })?;
        }
        _ => there.f_to(Device::Cpu)?.f_contiguous()?.f_copy_data(&mut numbers, n)?,
    }
    Ok(numbers)
}

/// Copies all numbers of an f32 tensor to the host, lets `work` replace them, and returns a tensor of the same shape with the new numbers on the
/// device of the first.
pub(super) fn replaced(tensor: &Tensor, work: impl FnOnce(&mut [f32])) -> Result<Tensor, TchError> {
    let there = tensor.f_detach()?;
    if matches!(there.device(), Device::Cuda(_)) && there.numel() <= STAGED {
        // the copy back is asynchronous; the next copy to the pinned memory waits for it
        return staged(&there, work)?.f_to_device_(there.device(), Kind::Float, true, false)?.f_view_as(&there);
    }
    let mut numbers = to_host(&there)?;
    work(&mut numbers);
    to_device(&numbers, there.device())?.f_view_as(&there)
}

/// Copies all numbers of an i64 tensor to the host.
pub(super) fn whole_to_host(tensor: &Tensor) -> Result<Vec<i64>, TchError> {
    let here = tensor.f_to(Device::Cpu)?.f_contiguous()?;
    let mut numbers = vec![0; here.numel()];
    let n = numbers.len();
    here.f_copy_data(&mut numbers, n)?;
    Ok(numbers)
}

/// Copies numbers to the device.
pub(super) fn to_device<T: tch::kind::Element>(numbers: &[T], device: Device) -> Result<Tensor, TchError> {
    let here = Tensor::f_from_slice(numbers)?;
    // pinned memory is not given back
    if !matches!(device, Device::Cuda(_)) || numbers.len() > STAGED {
        return here.f_to(device);
    }
    // from pinned memory the copy is asynchronous
    here.f_internal_pin_memory(device)?.f_to_device_(device, here.f_kind()?, true, false)
}

/// Returns the group of a parameter, by its name.
fn group_of(name: &str, tensors: &Tensors) -> &'static str {
    const EMBEDDINGS: &str = "model.embed_tokens.weight";
    // with adapters, the embeddings are not trained
    let is_text = tensors.keys().any(|name| name.starts_with("model."));
    let has_own_critic = tensors.contains_key("critic.value_head.weight");
    let shares_embeddings = has_own_critic && !tensors.contains_key("critic.embed_tokens.weight");
    let is_q = tensors.contains_key("q.0.weight") || tensors.contains_key("advantage.0.weight");
    match name.split('.').next() {
        _ if is_q => "q",
        Some("critic" | "value_head") => "critic",
        Some("trunk") => "trunk",
        _ if is_text && (!has_own_critic || (shares_embeddings && name == EMBEDDINGS)) => "trunk",
        _ => "actor",
    }
}

fn length(shape: &[usize]) -> usize {
    shape.iter().product()
}

impl Parameters {
    /// Creates parameters with these values on a device.
    pub fn new(tensors: &Tensors, device: Device, fault: Fault) -> Result<Self, TchError> {
        let shapes: Vec<(String, Vec<usize>)> = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shape.clone())).collect();
        let (mut groups, mut end): (Vec<Group>, usize) = (Vec::new(), 0);
        for (name, shape) in &shapes {
            let (begin, name) = (end, group_of(name, tensors));
            end += length(shape);
            match groups.last_mut().filter(|group| group.name == name) {
                Some(group) => group.range.end = end,
                None => groups.push(Group { name, range: begin..end }),
            }
        }
        let mut parameters = Self {
            device,
            fault,
            shapes,
            clocks: vec![clocks::START; groups.len()],
            groups,
            values: Tensor::f_zeros([end as i64], (Kind::Float, device))?.into(),
            gradient: None,
            updates: UpdatedGroups::All,
            moments: None,
            on_host: OnceLock::new(),
            gradient_on_host: OnceLock::new(),
            norm_on_host: OnceLock::new(),
        };
        let flat = parameters.flat(tensors, "").map_err(|error| TchError::FileFormat(error.to_string()))?;
        parameters.set(&flat)?;
        Ok(parameters)
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The parameter groups, in order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All values: the leaf of the autograd graph, with respect to which gradients are computed.
    pub fn leaf(&self) -> &Tensor {
        &self.values
    }

    /// Returns views of the values by name, in `kind`.
    pub fn views(&self, kind: Kind) -> Result<Views, TchError> {
        let lengths: Vec<i64> = self.shapes.iter().map(|(_, shape)| length(shape) as i64).collect();
        // the backward pass of one split is one concatenation; the backward pass of each separate slice would fill a tensor as long as all
        // parameters
        let parts = self.values.f_to_kind(kind)?.f_split_with_sizes(lengths, 0)?;
        let view = |((name, shape), part): (&(String, Vec<usize>), Tensor)| {
            let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
            Ok((name.clone(), part.f_view(shape.as_slice())?))
        };
        Ok(Views(self.shapes.iter().zip(parts).map(view).collect::<Result<_, TchError>>()?))
    }

    /// Adds the gradient with respect to the parameter `name` to one with respect to all values, `None` if it is 0.
    pub fn add_to(&self, gradient: &mut Option<Tensor>, name: &str, part: &Tensor) -> Result<(), TchError> {
        let mut begin = 0;
        for (own, shape) in &self.shapes {
            if own == name {
                let all = gradient.take().map_or_else(|| no_grad(|| self.values.f_zeros_like()), Ok)?;
                let _ = all.f_narrow(0, begin as i64, length(shape) as i64)?.f_add_(&part.f_flatten(0, -1)?)?;
                *gradient = Some(all);
                return Ok(());
            }
            begin += length(shape);
        }
        Err(TchError::FileFormat(format!("parameter {name} is missing")))
    }

    /// Replaces all values.
    pub fn set(&mut self, flat: &[f32]) -> Result<(), TchError> {
        self.values = to_device(flat, self.device)?.f_set_requires_grad(true)?.into();
        self.on_host = OnceLock::new();
        Ok(())
    }

    /// Moves every value p' towards the value p of `online`: p' <- tau p + (1 - tau) p'.
    pub fn track(&mut self, online: &Parameters, tau: f32) -> Result<(), TchError> {
        let (tau, theirs) = (f64::from(tau), online.values.f_detach()?);
        let moved = no_grad(|| self.values.f_mul_scalar(1.0 - tau)?.f_add(&theirs.f_mul_scalar(tau)?))?;
        self.values = moved.f_detach_copy()?.f_set_requires_grad(true)?.into();
        self.on_host = OnceLock::new();
        Ok(())
    }

    /// All values on the host; NaN if the device has failed.
    pub fn host(&self) -> &[f32] {
        self.on_host.get_or_init(|| self.to_host(&self.values))
    }

    /// Copies a tensor with one number per parameter to the host; if the device fails, records the error and returns NaN.
    fn to_host(&self, tensor: &Tensor) -> Vec<f32> {
        to_host(tensor).unwrap_or_else(|error| {
            self.fault.note(&error);
            vec![f32::NAN; self.len()]
        })
    }

    /// Whether all values are finite. Only one number is copied from the device.
    pub fn is_finite(&self) -> bool {
        let ask = || no_grad(|| bool::try_from(self.values.f_isfinite()?.f_all()?));
        ask().unwrap_or_else(|error| {
            self.fault.note(&error);
            false
        })
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.groups.last().map_or(0, |group| group.range.end)
    }

    /// Sets the gradient and the groups that it updates. `None` means a gradient of 0.
    pub fn take_gradient(&mut self, gradient: Option<Tensor>, updates: UpdatedGroups) {
        self.updates = updates;
        self.gradient = gradient.map(Into::into);
        self.gradient_on_host = OnceLock::new();
        self.norm_on_host = OnceLock::new();
    }

    /// The gradient on the host.
    pub fn host_gradient(&self) -> &[f32] {
        self.gradient_on_host.get_or_init(|| match &self.gradient {
            Some(gradient) => self.to_host(gradient),
            None => vec![0.0; self.len()],
        })
    }

    /// Returns the Euclidean norm of the gradient.
    pub fn gradient_norm(&self) -> f32 {
        let ask = |gradient: &Shared| Ok::<f32, TchError>(f64::try_from(gradient.f_norm()?)? as f32);
        let asked = |gradient: &Shared| {
            ask(gradient).unwrap_or_else(|error| {
                self.fault.note(&error);
                f32::NAN
            })
        };
        *self.norm_on_host.get_or_init(|| self.gradient.as_ref().map_or(0.0, asked))
    }

    /// Returns the gradient, clipped as by PyTorch's `clip_grad_norm_`. No norm is copied to the host for this; one that was copied is used.
    fn clipped(&self, gradient: &Tensor, step: &OptimiserStep) -> Result<Tensor, TchError> {
        if !step.max_grad_norm.is_finite() {
            return Ok(gradient.shallow_clone());
        }
        let scale = |norm: Tensor| norm.f_add_scalar(1e-6)?.f_reciprocal()?.f_mul_scalar(f64::from(step.max_grad_norm))?.f_clamp_max(1.0);
        if let (false, Some(norm)) = (step.clip_per_group, self.norm_on_host.get().filter(|norm| norm.is_finite())) {
            let scale = (norm + 1e-6).recip() * step.max_grad_norm;
            return if scale < 1.0 { gradient.f_mul_scalar(f64::from(scale)) } else { Ok(gradient.shallow_clone()) };
        }
        if !step.clip_per_group {
            return gradient.f_mul(&scale(gradient.f_norm()?)?);
        }
        let clipped = gradient.f_detach_copy()?;
        // the parts of a group need not be adjacent
        for name in ["trunk", "actor", "critic", "q"] {
            let of_group = self.groups.iter().filter(|group| group.name == name);
            let parts = of_group.map(|Group { range, .. }| clipped.f_narrow(0, range.start as i64, range.len() as i64));
            let mut parts = parts.collect::<Result<Vec<Tensor>, TchError>>()?;
            if !parts.is_empty() {
                let scale = scale(Tensor::f_cat(&parts, 0)?.f_norm()?)?;
                parts.iter_mut().try_for_each(|part| part.f_mul_(&scale).map(drop))?;
            }
        }
        Ok(clipped)
    }

    /// Takes an optimiser step for the groups that the gradient updates. The update rules are those of the engine `cpu`, applied to whole
    /// tensors.
    pub fn apply(&mut self, step: &OptimiserStep) -> Result<(), TchError> {
        let Some(gradient) = self.gradient.as_ref().map(|gradient| gradient.shallow_clone()) else {
            // a missing gradient is 0, and the moments still decay
            let zeros = no_grad(|| self.values.f_zeros_like())?;
            self.take_gradient(Some(zeros), self.updates);
            return self.apply(step);
        };
        self.on_host = OnceLock::new();
        let updated = self.groups.iter().map(|group| self.updates.includes(group.name)).collect::<Vec<bool>>();
        for (clock, _) in self.clocks.iter_mut().zip(&updated).filter(|(_, is_updated)| **is_updated) {
            *clock = [clock[0] * BETA1, clock[1] * BETA2];
        }
        // the moments of adjacent groups with equal clocks are updated together, because a kernel launch takes as long for few numbers
        // as for many
        let of_one_clock = (0..self.groups.len()).collect::<Vec<usize>>();
        let of_one_clock = of_one_clock.chunk_by(|a, b| updated[*a] == updated[*b] && self.clocks[*a] == self.clocks[*b]);
        let known = self.moments.take();
        let Moments { first, second } = known.map_or_else(|| Moments::zeros(&self.values), Ok)?;
        no_grad(|| {
            let gradient = self.clipped(&gradient, step)?;
            for neighbours in of_one_clock.filter(|neighbours| updated[neighbours[0]]) {
                let clock = self.clocks[neighbours[0]];
                let of_groups = &self.groups[neighbours[0]..neighbours[0] + neighbours.len()];
                let (begin, end) = (of_groups[0].range.start, of_groups[of_groups.len() - 1].range.end);
                let part = |tensor: &Tensor| tensor.f_narrow(0, begin as i64, (end - begin) as i64);
                let (gradient, mut first, mut second) = (part(&gradient)?, part(&first)?, part(&second)?);
                let decay = if step.rule == Rule::RmsProp { ALPHA } else { BETA2 };
                let _ = second.f_mul_scalar_(decay)?.f_addcmul_(&gradient, &gradient.f_mul_scalar(1.0 - decay)?)?;
                if step.rule != Rule::RmsProp {
                    let _ = first.f_lerp_(&gradient, 1.0 - BETA1)?;
                }
                let epsilon = f64::from(step.epsilon);
                let direction = match step.rule {
                    Rule::Adam => {
                        let correction = 1.0 / (1.0 - clock[1]).sqrt();
                        first.f_div(&second.f_sqrt()?.f_mul_scalar_(correction)?.f_add_scalar_(epsilon)?)?
                    }
                    Rule::RAdam => match Rectified::of(clock[1]) {
                        Rectified::Momentum => first.shallow_clone(),
                        Rectified::Adaptive(factor) => first.f_div(&second.f_sqrt()?.f_add_scalar_(epsilon)?)?.f_mul_scalar(factor)?,
                    },
                    Rule::RmsProp => gradient.f_div(&second.f_sqrt()?.f_add_scalar_(epsilon)?)?,
                };
                for Group { name, range } in of_groups {
                    let rate = f64::from(if *name == "critic" { step.critic_learning_rate } else { step.learning_rate });
                    let mut values = self.values.f_narrow(0, range.start as i64, range.len() as i64)?;
                    let direction = direction.f_narrow(0, (range.start - begin) as i64, range.len() as i64)?;
                    if step.weight_decay > 0.0 {
                        let _ = values.f_mul_scalar_(1.0 - rate * f64::from(step.weight_decay))?;
                    }
                    let rate = if step.rule == Rule::RmsProp { rate } else { rate / (1.0 - clock[0]) };
                    let _ = values.f_sub_(&direction.f_mul_scalar(rate)?)?;
                }
            }
            Ok::<(), TchError>(())
        })?;
        self.moments = Some(Moments { first, second });
        Ok(())
    }

    /// Returns a copy without the gradient. If the device fails, records the error and returns a copy without values.
    pub fn snapshot(&self) -> Self {
        let copied = |tensor: &Tensor| tensor.f_detach_copy();
        let copies = || {
            let moments = match &self.moments {
                Some(Moments { first, second }) => Some(Moments { first: copied(first)?.into(), second: copied(second)?.into() }),
                None => None,
            };
            Ok::<_, TchError>((copied(&self.values)?.f_set_requires_grad(true)?, moments))
        };
        let (values, moments) = copies().unwrap_or_else(|error| {
            self.fault.note(&error);
            (Tensor::new(), None)
        });
        Self {
            device: self.device,
            fault: self.fault.clone(),
            shapes: self.shapes.clone(),
            groups: self.groups.clone(),
            values: values.into(),
            gradient: None,
            updates: self.updates,
            moments,
            clocks: self.clocks.clone(),
            on_host: OnceLock::new(),
            gradient_on_host: OnceLock::new(),
            norm_on_host: OnceLock::new(),
        }
    }

    /// Returns the values by name.
    pub fn save(&self) -> Tensors {
        self.by_name(self.host(), "")
    }

    /// Returns the gradient by name.
    pub fn save_gradient(&self) -> Tensors {
        self.by_name(self.host_gradient(), "")
    }

    fn by_name(&self, mut flat: &[f32], prefix: &str) -> Tensors {
        let mut tensors = Tensors::new();
        for (name, shape) in &self.shapes {
            let (numbers, rest) = flat.split_at(length(shape));
            tensors.insert(format!("{prefix}{name}"), Named::f32(shape, numbers.into()));
            flat = rest;
        }
        tensors
    }

    fn flat(&self, tensors: &Tensors, prefix: &str) -> Result<Vec<f32>, TensorsError> {
        let parts = self.shapes.iter().map(|(name, shape)| get_f32(tensors, &format!("{prefix}{name}"), shape));
        Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn only_known(&self, tensors: &Tensors, prefixes: &[&str], others: &[String]) -> Result<(), TensorsError> {
        let is_known = |name: &str| {
            let mut parts = prefixes.iter().filter_map(|prefix| name.strip_prefix(prefix));
            others.iter().any(|other| other == name) || parts.any(|part| self.shapes.iter().any(|(known, _)| known == part))
        };
        tensors.keys().find(|name| !is_known(name)).map_or(Ok(()), |name| Err(TensorsError::Unexpected(name.clone())))
    }

    /// Replaces the values by name. After an error the values are unchanged.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let flat = self.flat(tensors, "")?;
        self.only_known(tensors, &[""], &[])?;
        self.set(&flat).map_err(|error| TensorsError::State(one_line(&error)))
    }

    /// Returns the state of the optimiser, in the format of the engine `cpu`.
    pub fn save_optimiser(&self) -> Tensors {
        let host = |which: fn(&Moments) -> &Shared| match &self.moments {
            Some(moments) => self.to_host(which(moments)),
            None => vec![0.0; self.len()],
        };
        let mut tensors = self.by_name(&host(|moments| &moments.first), "first.");
        tensors.extend(self.by_name(&host(|moments| &moments.second), "second."));
        clocks::save(&self.groups, &self.clocks, &mut tensors);
        tensors
    }

    /// Restores the state of the optimiser. After an error the state is unchanged.
    pub fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let tensors = &clocks::converted(&self.groups, tensors);
        let clocks = clocks::load(&self.groups, tensors)?;
        let (first, second) = (self.flat(tensors, "first.")?, self.flat(tensors, "second.")?);
        self.only_known(tensors, &["first.", "second."], &clocks::names(&self.groups))?;
        in_range("second", second.iter().map(|x| f64::from(*x)), f64::MAX)?;
        let up = |numbers: &[f32]| to_device(numbers, self.device).map_err(|error| TensorsError::State(one_line(&error)));
        let (first, second) = (up(&first)?, up(&second)?);
        self.moments = Some(Moments { first: first.into(), second: second.into() });
        self.clocks = clocks;
        Ok(())
    }
}

/// Parameters by name, as tensors with their autograd graph.
pub(super) struct Views(Vec<(String, Tensor)>);

impl Views {
    /// Returns the parameter `name`, or an error if it is missing.
    pub fn get(&self, name: &str) -> Result<&Tensor, TchError> {
        self.find(name).ok_or_else(|| TchError::FileFormat(format!("parameter {name} is missing")))
    }

    /// Returns the same parameters as constants.
    pub fn detached(&self) -> Result<Self, TchError> {
        Ok(Self(self.0.iter().map(|(name, tensor)| Ok((name.clone(), tensor.f_detach()?))).collect::<Result<_, TchError>>()?))
    }

    /// Returns the same parameters as leaves of the autograd graph.
    pub fn leaves(&self) -> Result<Self, TchError> {
        let leaf = |tensor: &Tensor| tensor.f_detach()?.f_set_requires_grad(true);
        Ok(Self(self.0.iter().map(|(name, tensor)| Ok((name.clone(), leaf(tensor)?))).collect::<Result<_, TchError>>()?))
    }

    /// All parameters, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Returns the parameter `name`, if it exists.
    pub fn find(&self, name: &str) -> Option<&Tensor> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok().map(|at| &self.0[at].1)
    }
}
