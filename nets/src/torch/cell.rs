//! The recurrent cells: libtorch's own, one step after the other.

use std::cell::RefCell;

use tch::{TchError, Tensor};

use super::parameters::{Views, to_device};
use crate::sequences::Plan;
use crate::{Cell, NetworkConfig};

/// Sequences that a network reads, and what it remembers of them.
pub(super) struct Going {
    /// How many sequences go on at each step.
    steps: Vec<usize>,
    /// What is remembered at the beginning of each: sequences x numbers.
    memory: Tensor,
    /// What is remembered at the end of the sequences that go on to the last step, in parts.
    after: RefCell<Vec<Tensor>>,
}

impl Going {
    /// Begins sequences that go on for these numbers of steps, with rows of memory of `width` numbers.
    pub fn new(steps: &[usize], memory: &[f32], width: usize, device: tch::Device) -> Result<Self, TchError> {
        let memory = to_device(memory, device)?.f_view([-1, width as i64])?;
        Ok(Self { steps: steps.to_vec(), memory, after: RefCell::default() })
    }

    /// Begins the sequences of a plan.
    pub fn of(plan: &Plan, width: usize, device: tch::Device) -> Result<Self, TchError> {
        Self::new(&plan.steps, &plan.memory, width, device)
    }

    /// What is remembered after the last step.
    pub fn after(&self) -> Result<Tensor, TchError> {
        Tensor::f_cat(&self.after.borrow(), 1)
    }
}

impl NetworkConfig {
    /// Numbers that a cell remembers.
    pub(super) fn remembered(&self) -> usize {
        self.cell.vectors() * self.cell_width
    }
}

/// Applies the cell of the part `name` to rows in the order of the steps, if the network has one. Its numbers begin at `at` in a row of memory.
pub(super) fn remember(
    config: &NetworkConfig,
    (views, name): (&Views, &str),
    x: Tensor,
    going: Option<&Going>,
    at: usize,
) -> Result<Tensor, TchError> {
    let Some(going) = going else { return Ok(x) };
    let of = |what: &str| views.get(&format!("{name}.cell.{what}"));
    let (w_ih, w_hh, b_ih, b_hh) = (of("weight_ih")?, of("weight_hh")?, of("bias_ih")?, of("bias_hh")?);
    let units = config.cell_width as i64;
    let part = |vector: i64| going.memory.f_narrow(1, at as i64 + vector * units, units);
    let (mut h, mut c) = (part(0)?, if config.cell == Cell::Lstm { Some(part(1)?) } else { None });
    if going.steps.is_empty() {
        return h.f_narrow(0, 0, 0); // an empty batch
    }
    let (mut all, mut first) = (Vec::with_capacity(going.steps.len()), 0);
    for n in going.steps.iter().map(|n| *n as i64) {
        let (x, before) = (x.f_narrow(0, first, n)?, h.f_narrow(0, 0, n)?);
        (h, c) = match c {
            None => (x.f_gru_cell(&before, w_ih, w_hh, Some(b_ih), Some(b_hh))?, None),
            Some(c) => {
                let (h, c) =
                    x.f_lstm_cell(&[before, c.f_narrow(0, 0, n)?], w_ih, w_hh, Some(b_ih.shallow_clone()), Some(b_hh.shallow_clone()))?;
                (h, Some(c))
            }
        };
        all.push(h.shallow_clone());
        first += n;
    }
    going.after.borrow_mut().extend([Some(h), c].into_iter().flatten());
    Tensor::f_cat(&all, 0)
}
