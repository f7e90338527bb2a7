//! All parameters of a policy in one tensor on the device, with their gradient and what the optimiser remembers of them.

use std::cell::RefCell;
use std::sync::OnceLock;

use tch::{Device, Kind, TchError, Tensor, no_grad};

use super::fault::{Fault, one_line};
use super::raw::Shared;
use crate::tensors::{Tensor as Named, Tensors, TensorsError, get_f32, get_u64};
use crate::{Group, OptimiserStep, Rule};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const ALPHA: f64 = 0.99;

/// Parameters by name, in the order of their names, one after the other.
pub(super) struct Parameters {
    device: Device,
    fault: Fault,
    shapes: Vec<(String, Vec<usize>)>,
    groups: Vec<Group>,
    values: Shared,
    /// None before the first.
    gradient: Option<Shared>,
    /// What the optimiser remembers: averages of the gradient and of its square; nothing before its first step.
    moments: Option<Moments>,
    powers: [f64; 2],
    /// What the host knows of the values, of the gradient and of its norm.
    on_host: OnceLock<Vec<f32>>,
    gradient_on_host: OnceLock<Vec<f32>>,
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

/// Numbers that come down through pinned memory, at most: more of them come rarely.
const STAGED: usize = 1 << 24;

thread_local! {
    /// Pinned memory that the device copies to by itself, used again and again.
    static STAGE: RefCell<Option<Tensor>> = const { RefCell::new(None) };
}

/// A tensor of f32 in pinned memory, until the next one.
fn staged(there: &Tensor) -> Result<Tensor, TchError> {
    let n = there.numel() as i64;
    STAGE.with_borrow_mut(|stage| {
        let room = stage.take().filter(|stage| stage.numel() as i64 >= n);
        let grow = || Tensor::f_zeros([(n as u64).next_power_of_two() as i64], (Kind::Float, Device::Cpu))?.f_pin_memory(there.device());
        let room = room.map_or_else(grow, Ok)?;
        let mut here = room.f_narrow(0, 0, n)?;
        here.f_copy_(&there.f_contiguous()?.f_view([n])?)?;
        *stage = Some(room);
        Ok(here)
    })
}

/// All numbers of a tensor of f32, on the host.
pub(super) fn to_host(tensor: &Tensor) -> Result<Vec<f32>, TchError> {
    let there = tensor.f_detach()?;
    let here = match there.device() {
        Device::Cuda(_) if there.numel() <= STAGED => staged(&there)?,
        _ => there.f_to(Device::Cpu)?.f_contiguous()?,
    };
    let mut numbers = vec![0.0; here.numel()];
    let n = numbers.len();
    here.f_copy_data(&mut numbers, n)?;
    Ok(numbers)
}

/// All whole numbers of a tensor of i64, on the host.
pub(super) fn whole_to_host(tensor: &Tensor) -> Result<Vec<i64>, TchError> {
    let here = tensor.f_to(Device::Cpu)?.f_contiguous()?;
    let mut numbers = vec![0; here.numel()];
    let n = numbers.len();
    here.f_copy_data(&mut numbers, n)?;
    Ok(numbers)
}

/// A tensor of these numbers on the device.
pub(super) fn to_device<T: tch::kind::Element>(numbers: &[T], device: Device) -> Result<Tensor, TchError> {
    let here = Tensor::f_from_slice(numbers)?;
    if !matches!(device, Device::Cuda(_)) {
        return here.f_to(device);
    }
    // from pinned memory the copy neither waits for the device nor makes it wait
    here.f_pin_memory(device)?.f_to_device_(device, here.f_kind()?, true, false)
}

/// What a parameter belongs to, by its name.
fn group_of(name: &str, is_text: bool, has_own_critic: bool) -> &'static str {
    match name.split('.').next() {
        Some("critic" | "value_head") => "critic",
        Some("trunk") => "trunk",
        _ if is_text && !has_own_critic => "trunk",
        _ => "actor",
    }
}

fn length(shape: &[usize]) -> usize {
    shape.iter().product()
}

impl Parameters {
    /// These, on a device.
    pub fn new(tensors: &Tensors, device: Device, fault: Fault) -> Result<Self, TchError> {
        let shapes: Vec<(String, Vec<usize>)> = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shape.clone())).collect();
        let is_text = tensors.contains_key("model.embed_tokens.weight");
        let has_own_critic = tensors.contains_key("critic.value_head.weight");
        let (mut groups, mut end): (Vec<Group>, usize) = (Vec::new(), 0);
        for (name, shape) in &shapes {
            let (begin, name) = (end, group_of(name, is_text, has_own_critic));
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
            groups,
            values: Tensor::f_zeros([end as i64], (Kind::Float, device))?.into(),
            gradient: None,
            moments: None,
            powers: [1.0; 2],
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

    /// The named parts, in order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All values: the leaf that gradients are taken with respect to.
    pub fn leaf(&self) -> &Tensor {
        &self.values
    }

    /// Views of the values by name, in `kind`.
    pub fn views(&self, kind: Kind) -> Result<Views, TchError> {
        let lengths: Vec<i64> = self.shapes.iter().map(|(_, shape)| length(shape) as i64).collect();
        // one split: its gradient is one concatenation, where slices would each have a gradient as long as all
        let parts = self.values.f_to_kind(kind)?.f_split_with_sizes(lengths, 0)?;
        let view = |((name, shape), part): (&(String, Vec<usize>), Tensor)| {
            let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
            Ok((name.clone(), part.f_view(shape.as_slice())?))
        };
        Ok(Views(self.shapes.iter().zip(parts).map(view).collect::<Result<_, TchError>>()?))
    }

    /// Replaces all values.
    pub fn set(&mut self, flat: &[f32]) -> Result<(), TchError> {
        self.values = to_device(flat, self.device)?.f_set_requires_grad(true)?.into();
        self.on_host = OnceLock::new();
        Ok(())
    }

    /// All values on the host; not numbers where the device has none to give.
    pub fn host(&self) -> &[f32] {
        self.on_host.get_or_init(|| self.to_host(&self.values))
    }

    /// A tensor as long as the values, on the host; where the device fails, that is remembered, and there are no numbers.
    fn to_host(&self, tensor: &Tensor) -> Vec<f32> {
        to_host(tensor).unwrap_or_else(|error| {
            self.fault.note(&error);
            vec![f32::NAN; self.len()]
        })
    }

    /// Whether all values are numbers: one question to the device.
    pub fn is_finite(&self) -> bool {
        let ask = || no_grad(|| bool::try_from(self.values.f_isfinite()?.f_all()?));
        ask().unwrap_or_else(|error| {
            self.fault.note(&error);
            false
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.groups.last().map_or(0, |group| group.range.end)
    }

    /// Keeps a gradient; none is 0.
    pub fn take_gradient(&mut self, gradient: Option<Tensor>) {
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

    /// The Euclidean norm of the gradient.
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

    /// Moves the values by the gradient: the same rules as the engine `cpu`'s, on whole tensors.
    pub fn apply(&mut self, step: &OptimiserStep) -> Result<(), TchError> {
        let Some(gradient) = self.gradient.as_ref().map(|gradient| gradient.shallow_clone()) else {
            // a gradient of 0, by which the averages still move
            let zeros = no_grad(|| self.values.f_zeros_like())?;
            self.take_gradient(Some(zeros));
            return self.apply(step);
        };
        self.on_host = OnceLock::new();
        self.powers = [self.powers[0] * BETA1, self.powers[1] * BETA2];
        let known = self.moments.take();
        let Moments { mut first, mut second } = known.map_or_else(|| Moments::zeros(&self.values), Ok)?;
        no_grad(|| {
            let gradient = match step.max_grad_norm.is_finite() {
                // as PyTorch's `clip_grad_norm_`; the norm need not come down for it
                true => {
                    let norm = gradient.f_norm()?.f_add_scalar(1e-6)?;
                    let scale = norm.f_reciprocal()?.f_mul_scalar(f64::from(step.max_grad_norm))?.f_clamp_max(1.0)?;
                    gradient.f_mul(&scale)?
                }
                false => gradient.shallow_clone(),
            };
            let decay = if step.rule == Rule::Adam { BETA2 } else { ALPHA };
            let _ = second.f_mul_scalar_(decay)?.f_addcmul_(&gradient, &gradient.f_mul_scalar(1.0 - decay)?)?;
            if step.rule == Rule::Adam {
                let _ = first.f_lerp_(&gradient, 1.0 - BETA1)?;
            }
            let epsilon = f64::from(step.epsilon);
            let direction = match step.rule {
                Rule::Adam => {
                    let correction = 1.0 / (1.0 - self.powers[1]).sqrt();
                    first.f_div(&second.f_sqrt()?.f_mul_scalar_(correction)?.f_add_scalar_(epsilon)?)?
                }
                Rule::RmsProp => gradient.f_div(&second.f_sqrt()?.f_add_scalar_(epsilon)?)?,
            };
            for Group { name, range } in &self.groups {
                let rate = f64::from(if *name == "critic" { step.critic_learning_rate } else { step.learning_rate });
                let part = |tensor: &Tensor| tensor.f_narrow(0, range.start as i64, range.len() as i64);
                let (mut values, direction) = (part(&self.values)?, part(&direction)?);
                if step.weight_decay > 0.0 {
                    let _ = values.f_mul_scalar_(1.0 - rate * f64::from(step.weight_decay))?;
                }
                let rate = if step.rule == Rule::Adam { rate / (1.0 - self.powers[0]) } else { rate };
                let _ = values.f_sub_(&direction.f_mul_scalar(rate)?)?;
            }
            Ok::<(), TchError>(())
        })?;
        self.moments = Some(Moments { first, second });
        Ok(())
    }

    /// A copy. Where the device fails, that is remembered, and the copy has no values.
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
            moments,
            powers: self.powers,
            on_host: OnceLock::new(),
            gradient_on_host: OnceLock::new(),
            norm_on_host: OnceLock::new(),
        }
    }

    /// The values by name.
    pub fn save(&self) -> Tensors {
        self.by_name(self.host(), "")
    }

    /// The gradient by name.
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

    fn only_known(&self, tensors: &Tensors, prefixes: &[&str], others: &[&str]) -> Result<(), TensorsError> {
        let is_known = |name: &str| {
            let mut parts = prefixes.iter().filter_map(|prefix| name.strip_prefix(prefix));
            others.contains(&name) || parts.any(|part| self.shapes.iter().any(|(known, _)| known == part))
        };
        tensors.keys().find(|name| !is_known(name)).map_or(Ok(()), |name| Err(TensorsError::Unexpected(name.clone())))
    }

    /// Takes over values by name; on an error nothing has changed.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let flat = self.flat(tensors, "")?;
        self.only_known(tensors, &[""], &[])?;
        self.set(&flat).map_err(|error| TensorsError::State(one_line(&error)))
    }

    /// What the optimiser remembers, as the engine `cpu` says it.
    pub fn save_optimiser(&self) -> Tensors {
        let host = |which: fn(&Moments) -> &Shared| match &self.moments {
            Some(moments) => self.to_host(which(moments)),
            None => vec![0.0; self.len()],
        };
        let mut tensors = self.by_name(&host(|moments| &moments.first), "first.");
        tensors.extend(self.by_name(&host(|moments| &moments.second), "second."));
        tensors.insert("powers".into(), Named::u64(self.powers.map(f64::to_bits).to_vec()));
        tensors
    }

    /// Takes it over; on an error nothing has changed.
    pub fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let powers = match get_u64(tensors, "powers")? {
            [first, second] => [f64::from_bits(*first), f64::from_bits(*second)],
            other => {
                let (expected, got) = ("U64 [2]".into(), format!("U64 [{}]", other.len()));
                return Err(TensorsError::Shape { name: "powers".into(), expected, got });
            }
        };
        let (first, second) = (self.flat(tensors, "first.")?, self.flat(tensors, "second.")?);
        self.only_known(tensors, &["first.", "second."], &["powers"])?;
        let in_range = |name: &str, numbers: &mut dyn Iterator<Item = f64>, high: f64| match numbers
            .enumerate()
            .find(|(_, x)| !(0.0..=high).contains(x))
        {
            Some((position, got)) => Err(TensorsError::NotFinite { name: name.into(), got: got.to_string(), position }),
            None => Ok(()),
        };
        in_range("powers", &mut powers.into_iter(), 1.0)?;
        in_range("second", &mut second.iter().map(|x| f64::from(*x)), f64::MAX)?;
        let up = |numbers: &[f32]| to_device(numbers, self.device).map_err(|error| TensorsError::State(one_line(&error)));
        let (first, second) = (up(&first)?, up(&second)?);
        self.moments = Some(Moments { first: first.into(), second: second.into() });
        self.powers = powers;
        Ok(())
    }
}

/// Parameters by name, as tensors that remember where they came from.
pub(super) struct Views(Vec<(String, Tensor)>);

impl Views {
    /// The parameter `name`, which there is.
    pub fn get(&self, name: &str) -> Result<&Tensor, TchError> {
        self.find(name).ok_or_else(|| TchError::FileFormat(format!("parameter {name} is missing")))
    }

    /// The parameter `name`, if there is one.
    pub fn find(&self, name: &str) -> Option<&Tensor> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok().map(|at| &self.0[at].1)
    }
}
