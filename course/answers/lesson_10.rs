//! Lesson 10: comparing algorithms, with answers.

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// 10.1
pub fn interquartile_mean(scores: &[f64]) -> f64 {
    let cut = scores.len() / 4;
    mean(&sorted(scores)[cut..scores.len() - cut])
}

/// 10.2
pub fn bootstrap_interval(scores: &[f64], draws: &[Vec<usize>], level: f64) -> (f64, f64) {
    let of_draw = |draw: &Vec<usize>| mean(&draw.iter().map(|i| scores[*i]).collect::<Vec<_>>());
    let means = sorted(&draws.iter().map(of_draw).collect::<Vec<_>>());
    // 1 - 0.9 is a little less than 0.1
    let cut = ((1.0 - level) / 2.0 * means.len() as f64 + 1e-9) as usize;
    (means[cut], means[means.len() - 1 - cut])
}

/// 10.3
pub fn improvement_probability(x: &[f64], y: &[f64]) -> f64 {
    let mut wins = 0.0;
    for x in x {
        for y in y {
            wins += if x > y {
                1.0
            } else if x == y {
                0.5
            } else {
                0.0
            };
        }
    }
    wins / (x.len() * y.len()) as f64
}

/// 10.4
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut corrected = vec![0.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, place) in order.into_iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        least = least.max((factor * p_values[place]).min(1.0));
        corrected[place] = least;
    }
    corrected
}

/// 10.5
pub fn seeds_needed(std: f64, difference: f64) -> usize {
    (2.0 * (1.96_f64 + 0.84).powi(2) * (std / difference).powi(2)).ceil() as usize
}
