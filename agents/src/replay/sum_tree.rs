//! A tree of sums over the priorities of a replay buffer: draws an index with probability proportional to its priority.

/// Children of a node.
const WIDTH: usize = 16;

/// Numbers of at least 0, and a tree of their sums. A node is the sum of its sixteen children, added in order, so the tree depends only on the
/// numbers and not on the order in which they were set.
#[derive(Clone, Debug)]
pub(crate) struct SumTree {
    leaves: Vec<f32>,
    /// The sums of sixteen leaves, the sums of sixteen of these, and so on; the last level has one sum.
    levels: Vec<Vec<f64>>,
}

impl SumTree {
    /// Creates a tree of `n` zeros.
    pub fn new(n: usize) -> Self {
        let mut levels = vec![vec![0.0; n.div_ceil(WIDTH).max(1)]];
        while let Some(last) = levels.last()
            && last.len() > 1
        {
            levels.push(vec![0.0; last.len().div_ceil(WIDTH)]);
        }
        Self { leaves: vec![0.0; n], levels }
    }

    /// Creates a tree of these numbers.
    pub fn of(numbers: &[f32]) -> Self {
        let mut tree = Self::new(numbers.len());
        tree.leaves.copy_from_slice(numbers);
        (0..numbers.len()).step_by(WIDTH).for_each(|i| tree.levels[0][i / WIDTH] = tree.sum_of_leaves(i / WIDTH));
        for level in 1..tree.levels.len() {
            (0..tree.levels[level].len()).for_each(|node| tree.levels[level][node] = tree.sum_of_nodes(level, node));
        }
        tree
    }

    /// The numbers.
    pub fn leaves(&self) -> &[f32] {
        &self.leaves
    }

    /// The sum of all numbers.
    pub fn total(&self) -> f64 {
        self.levels.last().map_or(0.0, |root| root[0])
    }

    /// Sets number `i`.
    pub fn set(&mut self, i: usize, number: f32) {
        self.leaves[i] = number;
        let mut node = i / WIDTH;
        self.levels[0][node] = self.sum_of_leaves(node);
        for level in 1..self.levels.len() {
            node /= WIDTH;
            self.levels[level][node] = self.sum_of_nodes(level, node);
        }
    }

    fn sum_of_leaves(&self, node: usize) -> f64 {
        children(&self.leaves, node).iter().map(|x| f64::from(*x)).sum()
    }

    fn sum_of_nodes(&self, level: usize, node: usize) -> f64 {
        children(&self.levels[level - 1], node).iter().sum()
    }

    /// Returns the first index i such that the sum of the numbers up to i, inclusive, exceeds `mass`. If rounding leads past the last number
    /// above 0, returns the index of that number.
    pub fn find(&self, mut mass: f64) -> usize {
        let mut node = 0;
        for level in self.levels.iter().rev().skip(1) {
            node = node * WIDTH + within(children(level, node).iter().copied(), &mut mass);
        }
        node * WIDTH + within(children(&self.leaves, node).iter().map(|x| f64::from(*x)), &mut mass)
    }
}

fn children<T>(level: &[T], node: usize) -> &[T] {
    &level[node * WIDTH..level.len().min((node + 1) * WIDTH)]
}

/// Returns the first child whose sum with the children before it exceeds `mass`, or the last child above 0. Subtracts from `mass` the
/// children before the result.
fn within(children: impl Iterator<Item = f64>, mass: &mut f64) -> usize {
    let mut last = (0, *mass);
    for (i, child) in children.enumerate().filter(|(_, child)| *child > 0.0) {
        last = (i, *mass);
        if *mass < child {
            break;
        }
        *mass -= child;
    }
    *mass = last.1;
    last.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index that a scan over all numbers finds.
    fn scan(numbers: &[f32], mass: f64) -> usize {
        let mut sum = 0.0;
        numbers
            .iter()
            .position(|x| {
                sum += f64::from(*x);
                sum > mass
            })
            .unwrap_or(numbers.len() - 1)
    }

    #[test]
    fn an_index_is_found_where_a_scan_finds_it() {
        // eighths have exact sums
        for n in [1, 15, 16, 17, 255, 257, 4097] {
            let numbers: Vec<f32> = (0..n).map(|i| ((i * 7919) % 11) as f32 / 8.0).collect();
            let (tree, mut one_by_one) = (SumTree::of(&numbers), SumTree::new(n));
            (0..n).rev().for_each(|i| one_by_one.set(i, numbers[i]));
            assert_eq!(tree.levels, one_by_one.levels, "{n} numbers");
            for step in 0..200 {
                let mass = tree.total() * f64::from(step) / 200.0;
                assert_eq!(tree.find(mass), if tree.total() == 0.0 { 0 } else { scan(&numbers, mass) }, "{n} numbers, mass {mass}");
            }
        }
    }

    #[test]
    fn a_number_of_0_is_never_found() {
        let mut tree = SumTree::new(1000);
        tree.set(3, 0.1);
        tree.set(700, 0.2);
        for mass in [0.0, 0.05, 0.1, 0.29, 0.3, 1.0] {
            assert!([3, 700].contains(&tree.find(mass)), "mass {mass}: got {}", tree.find(mass));
        }
    }
}
