//! Actors and critics with a memory: they read whole sequences, each tile some of them side by side.

use super::act::Answer;
use super::actor_critic::ActorCritic;
use super::forward_backward::{ForwardBackward, Question, Subnet, forward};
use super::head::{Decisions, HeadPass};
use super::layer::padded;
use super::layout::Layout;
use super::weights::Weights;
use super::workspace::Workspace;
use crate::sequences::{MOST, Plan, plans_of_batch, plans_of_rows};
use crate::{Batch, Objective, Store, Sums};
use gradus_base::simd::{Kernel, Simd, dispatch};
use gradus_base::threads;

impl ActorCritic {
    /// Numbers that the policy remembers of an episode.
    pub(super) fn memory(&self) -> usize {
        self.layout.perceptron.memory
    }

    /// Evaluates the objective over `batch`, which has whole sequences, with or without its gradient. Returns the sums and the number of lanes.
    pub(super) fn learn_sequences(
        &mut self,
        store: &Store,
        batch: Batch<'_>,
        objective: &dyn Objective,
        with_gradient: bool,
    ) -> (Sums, usize) {
        self.assert_fits(store, Some(batch));
        if with_gradient {
            self.refresh();
        }
        let plans = plans_of_batch(store, self.memory(), batch, MOST);
        let n = self.with_lanes(plans.len());
        let Self { layout, level, weights: Weights { values: parameters, .. }, copies, lanes, .. } = self;
        let copies = with_gradient.then_some(copies.each_ref().map(|copy| &**copy));
        let mut parts: Vec<_> = lanes[..n].iter_mut().zip(&plans).collect();
        threads::for_each(&mut parts, |_, (lane, (plan, weights))| {
            lane.workspace.begin(layout, plan);
            let batch = Batch { indices: &plan.rows, weights, ..batch };
            let question = Question { layout, parameters, store, batch, objective, tile: plan.rows.len().max(1) };
            dispatch(*level, ForwardBackward { question, tiles: 0..1, lane, copies });
        });
        let mut sums = Sums::default();
        lanes[..n].iter().for_each(|lane| sums.add(&lane.sums));
        (sums, n)
    }

    /// Computes `width` numbers for each of the first `rows` rows of a store, of the actor or, as [`Answer::Values`], of the critic.
    pub(super) fn answer_sequences(
        &mut self,
        store: &Store,
        (rows, width): (usize, usize),
        numbers: &mut Vec<f32>,
        answer: impl Fn(&mut [f32]) -> Answer<'_> + Sync,
    ) {
        let with_room = |plan: Plan| (vec![0.0; plan.rows.len() * width], plan);
        let mut plans: Vec<(Vec<f32>, Plan)> = plans_of_rows(store, self.memory(), rows, MOST).into_iter().map(with_room).collect();
        let n = self.with_lanes(plans.len());
        let Self { layout, level, weights: Weights { values: parameters, .. }, lanes, .. } = self;
        let mut parts: Vec<_> = lanes[..n].iter_mut().zip(&mut plans).collect();
        threads::for_each(&mut parts, |_, (lane, (own, plan))| {
            let workspace = &mut lane.workspace;
            workspace.begin(layout, plan);
            dispatch(*level, Recite { layout, parameters, store, rows: &plan.rows, workspace, answer: answer(own) });
        });
        numbers.resize(rows * width, 0.0);
        for (own, plan) in &plans {
            for (place, own) in plan.places.iter().zip(own.chunks_exact(width)) {
                numbers[*place as usize * width..(*place as usize + 1) * width].copy_from_slice(own);
            }
        }
    }
}

/// Evaluates the network on the rows of a tile that has begun its sequences.
struct Recite<'a> {
    layout: &'a Layout,
    parameters: &'a [f32],
    store: &'a Store,
    rows: &'a [u32],
    workspace: &'a mut Workspace,
    answer: Answer<'a>,
}

impl Kernel for Recite<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, store, rows: indices, workspace: w, answer } = self;
        let decisions = Decisions { store, indices, old: None, reference: None };
        let rows = w.tile.read(&layout.perceptron, decisions.observations());
        if let Answer::Values(values) = answer {
            forward(simd, layout, parameters, Subnet::Critic, w);
            let heads = w.tile.outputs(layout.critic_head()).chunks_exact(padded(1));
            values.iter_mut().zip(heads).for_each(|(value, head)| *value = head[0]);
            return;
        }
        let head = HeadPass { simd, layout, parameters };
        head.prepare(w);
        forward(simd, layout, parameters, Subnet::Actor, w);
        head.read(rows, decisions.masks(layout.actions), w);
        match answer {
            Answer::LogProbs(log_probs) => {
                for (row, log_prob) in log_probs.iter_mut().enumerate() {
                    *log_prob = head.log_prob(row, &store.actions, indices[row] as usize, w);
                }
            }
            Answer::Distributions(numbers) => {
                numbers.chunks_exact_mut(layout.distribution_width()).enumerate().for_each(|(row, numbers)| head.describe(row, w, numbers));
            }
            Answer::Values(_) => {}
        }
    }
}
