//! Episodes in environments that step together and are costly to make, such as those in another process: a few of them play all episodes.

use gradus_base::panics;
use gradus_envs::{Actions, Batch, Ending, EnvError, EnvSpec, Space, UNWRITTEN, unwritten};

use crate::episodes::{PlayedEpisode, error_of};
use crate::{Decisions, Environments};

/// The most environments of a shard.
pub(crate) const MOST: usize = 8;

/// A shard of a list of episodes. Each row has one of the environments of a batch, which begins the next episode when its own has ended.
pub(crate) struct Turns<'a> {
    /// Name of the environment, for errors.
    world: &'a str,
    /// Largest number of steps of an episode.
    longest: u32,
    /// Index of the first episode in the whole list.
    first: usize,
    seeds: &'a [u64],
    batch: Box<dyn Batch>,
    actions: Space,
    width: usize,
    /// The environment of each row.
    envs: Vec<usize>,
    /// Rows of all environments, and of those that act.
    all: Vec<f32>,
    observations: Vec<f32>,
    masks: Vec<bool>,
    discrete: Vec<u32>,
    continuous: Vec<f32>,
    rewards: Vec<f32>,
    endings: Vec<Ending>,
    pub played: Vec<PlayedEpisode>,
}

impl<'a> Turns<'a> {
    /// Makes the environments of `acting` rows and begins the first episodes.
    pub fn begin(world: &'a EnvSpec, first: usize, seeds: &'a [u64], acting: usize) -> Result<Self, EnvError> {
        let batch = world.batch(acting)?;
        let (actions, width) = (batch.action_space(), batch.observation_space().width());
        let envs: Vec<usize> = (0..acting).collect();
        let mut turns = Self {
            world: &world.name,
            longest: world.longest_episode(),
            first,
            seeds,
            all: vec![UNWRITTEN; acting * width],
            observations: vec![0.0; acting * width],
            masks: Vec::new(),
            discrete: vec![0; acting],
            continuous: vec![0.0; acting * actions.width()],
            rewards: vec![0.0; acting],
            endings: vec![Ending::Running; acting],
            played: vec![PlayedEpisode::default(); seeds.len()],
            batch,
            actions,
            width,
            envs,
        };
        let began = panics::catch(|| turns.batch.reset_many(&turns.envs, &seeds[..acting], &mut turns.all));
        began.map_err(|panic| turns.panicked(panic, &[], 0))?;
        (0..acting).try_for_each(|row| turns.look(row, row))?;
        Ok(turns)
    }

    /// The error of a panic of the environment that was called last, in the step behind those that its episode has had. `rows` are the episodes of the rows; at the beginning, each row has
    /// the episode of its number.
    fn panicked(&self, panic: panics::Panic, rows: &[usize], steps: u32) -> EnvError {
        let row = self.envs.iter().position(|env| *env == self.batch.current()).unwrap_or(0);
        let id = rows.get(row).copied().unwrap_or(row);
        error_of(panic, self.world, (self.first + id, self.seeds[id], self.played[id].rewards.len() as u32 + steps))
    }

    /// Copies the observation of the environment of `row`, after it was checked.
    fn look(&mut self, row: usize, id: usize) -> Result<(), EnvError> {
        let env = self.envs[row];
        let (world, env_of_run, step, seed) = (self.world.into(), self.first + id, self.played[id].rewards.len() as u32, self.seeds[id]);
        let observation = &self.all[env * self.width..(env + 1) * self.width];
        if let Some(i) = observation.iter().position(|x| !x.is_finite()) {
            return Err(match (self.batch.fault(env), unwritten(observation)) {
                (Some(fault), _) => EnvError::Fault { world, fault, env: env_of_run, step, seed },
                (None, Some(i)) => EnvError::Unwritten { world, i, env: env_of_run, width: self.width, step, seed },
                (None, None) => {
                    let (what, got) = (format!("observation[{i}]"), f64::from(observation[i]));
                    EnvError::NotFinite { world, what, env: env_of_run, got, step, seed }
                }
            });
        }
        self.observations[row * self.width..(row + 1) * self.width].copy_from_slice(observation);
        Ok(())
    }
}

impl Environments for Turns<'_> {
    fn action_space(&self) -> Space {
        self.actions.clone()
    }

    fn observe(&mut self, rows: &[usize]) -> (&[f32], Option<&[bool]>) {
        let n = self.actions.mask_width();
        let mut are_masked = false;
        if n > 0 {
            self.masks.clear();
            self.masks.resize(rows.len() * n, true);
            for ((mask, env), id) in self.masks.chunks_exact_mut(n).zip(&self.envs).zip(rows) {
                let (step, seed) = (self.played[*id].rewards.len() as u32, self.seeds[*id]);
                let masked = panics::catch(|| self.batch.action_mask(*env, mask));
                are_masked |= masked.unwrap_or_else(|panic| panics::raise(error_of(panic, self.world, (self.first + id, seed, step))));
                if !self.actions.is_possible(mask) {
                    panics::raise(EnvError::Mask { world: self.world.into(), env: self.first + id, step, seed });
                }
            }
        }
        (&self.observations, are_masked.then_some(&self.masks))
    }

    fn step(&mut self, rows: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        let mut are_idle = vec![true; self.batch.len()];
        for (row, env) in self.envs.iter().copied().enumerate() {
            are_idle[env] = false;
            match decisions.clipped {
                Actions::Discrete(actions) => self.discrete[env] = actions[row],
                Actions::Continuous { rows, width } => {
                    self.continuous[env * width..(env + 1) * width].copy_from_slice(&rows[row * width..(row + 1) * width]);
                }
            }
        }
        let actions = match decisions.clipped {
            Actions::Discrete(_) => Actions::Discrete(&self.discrete),
            Actions::Continuous { width, .. } => Actions::Continuous { rows: &self.continuous, width },
        };
        let stepped = panics::catch(|| self.batch.step(actions, &are_idle, &mut self.all, &mut self.rewards, &mut self.endings));
        stepped.map_err(|panic| self.panicked(panic, rows, 1))?;
        for (row, id) in rows.iter().copied().enumerate() {
            let env = self.envs[row];
            let (reward, ending, episode) = (self.rewards[env], self.endings[env], &mut self.played[id]);
            episode.rewards.push(reward);
            let (world, step, seed) = (self.world, episode.rewards.len() as u32, self.seeds[id]);
            if !reward.is_finite() {
                let (env, got, fault) = (self.first + id, f64::from(reward), self.batch.fault(env));
                return Err(match fault {
                    Some(fault) => EnvError::Fault { world: world.into(), fault, env, step, seed },
                    None => EnvError::NotFinite { world: world.into(), what: "reward".into(), env, got, step, seed },
                });
            }
            self.look(row, id)?;
            if ending.done() {
                let episode = &mut self.played[id];
                episode.ending = ending;
                episode.scores = vec![0.0; self.batch.score_names().len()];
                self.batch.scores(env, &mut episode.scores);
                episode.observation = self.observations[row * self.width..(row + 1) * self.width].to_vec();
                done.push(row);
            } else if step >= self.longest {
                return Err(EnvError::Endless { world: world.into(), env: self.first + id, episode: 1, step, seed });
            }
        }
        Ok(())
    }

    fn pass_on(&mut self, row: usize, _: usize, next: Option<usize>) -> Result<(), EnvError> {
        if let Some(next) = next {
            let began = panics::catch(|| self.batch.reset_many(&self.envs[row..=row], &self.seeds[next..=next], &mut self.all));
            began.map_err(|panic| error_of(panic, self.world, (self.first + next, self.seeds[next], 0)))?;
            return self.look(row, next);
        }
        // the last row moves into this one
        self.envs.swap_remove(row);
        self.observations.copy_within(self.envs.len() * self.width.., row * self.width);
        self.observations.truncate(self.envs.len() * self.width);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gradus_base::random::{Purpose, Stream};
    use gradus_envs::registry;
    use gradus_nets::cpu::ActorCritic;
    use gradus_nets::{NetworkConfig, Sampling};

    use crate::play_episodes;

    /// Few environments that play one episode after the other give the same episodes as one environment for each.
    #[test]
    fn episodes_do_not_depend_on_how_many_environments_play_them() {
        let plain = NetworkConfig::default;
        let gsde = |gsde_sample_every| NetworkConfig { gsde: true, gsde_sample_every, ..plain() };
        for (name, network) in
            [("cartpole", plain()), ("pendulum", plain()), ("pendulum", gsde(0)), ("pendulum", gsde(3)), ("taxi", plain())]
        {
            let world = registry::find(name).unwrap();
            let world = if name == "taxi" { world.one_hot() } else { world };
            let (seen, done) = (world.env().observation_space(), world.env().action_space());
            let policy = ActorCritic::new(&network, &seen, &done, 1).unwrap();
            let seeds: Vec<u64> = (0..41).map(|i| 1000 + 7 * i).collect();
            let stream = |id: usize| Stream::new(3, Purpose::Evaluation, id as u64);
            let play = |world| play_episodes(&policy, world, &seeds, (&Sampling::default(), &stream), 0).unwrap();
            let (each, few) = (play(&world), play(&world.clone().without_saving()));
            assert_eq!(each.len(), few.len());
            for (id, (each, few)) in each.iter().zip(&few).enumerate() {
                assert_eq!(
                    (&each.rewards, each.ending, &each.observation),
                    (&few.rewards, few.ending, &few.observation),
                    "{name}, episode {id}"
                );
            }
        }
    }
}
