//! Three correct forms of each function of lesson 10.

use gradus_course::lesson_10::Answers;

fn sorted(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = numbers.collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all
}

fn drawn_means(scores: &[f64], draws: &[Vec<usize>]) -> Vec<f64> {
    draws.iter().map(|draw| draw.iter().map(|i| scores[*i]).sum::<f64>() / draw.len() as f64).collect()
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            interquartile_mean: |scores| {
                let (sorted, n) = (sorted(scores.iter().copied()), scores.len());
                let middle: Vec<f64> = sorted.into_iter().skip(n / 4).take(n - 2 * (n / 4)).collect();
                middle.iter().sum::<f64>() / middle.len() as f64
            },
            bootstrap_interval: |scores, draws, level| {
                // the ends are order statistics: no need to sort both halves
                let mut means = drawn_means(scores, draws);
                let n = means.len();
                let cut = ((1.0 - level) * n as f64 / 2.0).floor() as usize;
                let low = *means.select_nth_unstable_by(cut, f64::total_cmp).1;
                let high = *means.select_nth_unstable_by(n - cut - 1, f64::total_cmp).1;
                (low, high)
            },
            improvement_probability: |x, y| {
                let wins: usize = x.iter().map(|x| y.iter().map(|y| usize::from(x > y) + usize::from(x >= y)).sum::<usize>()).sum();
                wins as f64 / (2 * x.len() * y.len()) as f64
            },
            holm: |p| {
                // the largest of the corrected values of all tests that are as clear or clearer
                let clearer = |limit: f64, other: f64| other <= limit;
                let of = |p_i: f64| {
                    let values = p.iter().filter(|other| clearer(p_i, **other)).map(|other| {
                        let before = p.iter().filter(|q| **q < *other).count();
                        (p.len() - before) as f64 * other
                    });
                    values.fold(0.0, f64::max).min(1.0)
                };
                p.iter().map(|p| of(*p)).collect()
            },
            seeds_needed: |std, difference| {
                let effect = difference / std;
                let z = 1.96 + 0.84;
                (2.0 * z * z / (effect * effect)).ceil() as usize
            },
        },
        // single precision
        Answers {
            interquartile_mean: |scores| {
                let mut all: Vec<f32> = scores.iter().map(|x| *x as f32).collect();
                all.sort_by(f32::total_cmp);
                let cut = (0.25 * all.len() as f32).floor() as usize;
                let middle = &all[cut..all.len() - cut];
                f64::from(middle.iter().sum::<f32>() / middle.len() as f32)
            },
            bootstrap_interval: |scores, draws, level| {
                let of_draw = |draw: &Vec<usize>| draw.iter().map(|i| scores[*i] as f32).sum::<f32>() / draw.len() as f32;
                let mut means: Vec<f32> = draws.iter().map(of_draw).collect();
                means.sort_by(f32::total_cmp);
                let cut = (means.len() as f64 * 0.5 * (1.0 - level)) as usize;
                (f64::from(means[cut]), f64::from(means[means.len() - cut - 1]))
            },
            improvement_probability: |x, y| {
                let pair = |x: f64, y: f64| (((x - y) as f32).signum() * f32::from(u8::from(x != y)) + 1.0) / 2.0;
                let sum: f32 = x.iter().flat_map(|x| y.iter().map(move |y| pair(*x, *y))).sum();
                f64::from(sum / (x.len() * y.len()) as f32)
            },
            holm: |p| {
                let mut order: Vec<(f32, usize)> = p.iter().map(|p| *p as f32).zip(0..).collect();
                order.sort_by(|a, b| a.0.total_cmp(&b.0));
                let (mut all, mut least, mut left) = (vec![0.0; p.len()], 0.0_f32, p.len() as f32);
                for (p, place) in order {
                    least = least.max(p * left);
                    left -= 1.0;
                    all[place] = f64::from(least.min(1.0));
                }
                all
            },
            seeds_needed: |std, difference| {
                let ratio = (std / difference) as f32;
                (15.68 * ratio * ratio).ceil() as usize
            },
        },
        // in other steps
        Answers {
            interquartile_mean: |scores| {
                // takes the ends away one by one
                let mut rest = scores.to_vec();
                for _ in 0..scores.len() / 4 {
                    for sign in [1.0, -1.0] {
                        let place = (0..rest.len()).min_by(|a, b| (sign * rest[*a]).total_cmp(&(sign * rest[*b]))).unwrap();
                        rest.swap_remove(place);
                    }
                }
                rest.iter().sum::<f64>() / rest.len() as f64
            },
            bootstrap_interval: |scores, draws, level| {
                let mut means = drawn_means(scores, draws);
                let share = (1.0 - level) / 2.0;
                let cut = (share * means.len() as f64).floor() as usize;
                for _ in 0..cut {
                    for sign in [1.0, -1.0] {
                        let place = (0..means.len()).min_by(|a, b| (sign * means[*a]).total_cmp(&(sign * means[*b]))).unwrap();
                        means.swap_remove(place);
                    }
                }
                let end = |a: f64, b: f64| if a < b { (a, b) } else { (b, a) };
                means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (end(low, *x).0, end(high, *x).1))
            },
            improvement_probability: |x, y| {
                // Mann and Whitney's U by ranks
                let all: Vec<f64> = x.iter().chain(y).copied().collect();
                let rank = |value: f64| {
                    let (below, same) = (all.iter().filter(|v| **v < value).count(), all.iter().filter(|v| **v == value).count());
                    below as f64 + (same as f64 + 1.0) / 2.0
                };
                let n = x.len() as f64;
                let u = x.iter().map(|x| rank(*x)).sum::<f64>() - n * (n + 1.0) / 2.0;
                u / (n * y.len() as f64)
            },
            holm: |p| {
                let mut left: Vec<usize> = (0..p.len()).collect();
                let (mut all, mut least) = (vec![0.0; p.len()], 0.0_f64);
                while !left.is_empty() {
                    let place = *left.iter().min_by(|a, b| p[**a].total_cmp(&p[**b])).unwrap();
                    least = f64::min(1.0, least.max(left.len() as f64 * p[place]));
                    all[place] = least;
                    left.retain(|other| *other != place);
                }
                all
            },
            seeds_needed: |std, difference| {
                let needed = (2.8 * std / difference).powi(2) * 2.0;
                (1..).find(|n| *n as f64 >= needed).unwrap_or(1)
            },
        },
    ]
}
