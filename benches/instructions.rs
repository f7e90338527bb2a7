//! Repeats one kernel a given number of times on one thread, so that `scripts/instructions.sh` can count its instructions:
//! `instructions KERNEL REPEATS`. Without arguments it lists the kernels with their repeats, and with `level` the instruction set.

mod work;

use gradus::envs::Image;
use gradus::envs::simd::Level;
use gradus::nets::threads;
use work::{Controlling, Learning, Valuing, Worlds, Writing};

/// Breakout's observations.
const GAME: Image = Image { frames: 1, height: 10, width: 10, channels: 4, largest: 1 };
/// Those of Atari games.
const SCREENS: Image = Image { frames: 4, height: 84, width: 84, channels: 1, largest: 255 };

/// Each kernel's name, its number of repeats, and the function that prepares its input and repeats it.
const KERNELS: [(&str, usize, Prepare); 20] = [
    ("gradient_32", 4, |n| repeat(n, Learning::new(32, 2, 128), Learning::gradient)),
    ("gradient_64", 3, |n| repeat(n, Learning::new(64, 2, 128), Learning::gradient)),
    ("gradient_128", 2, |n| repeat(n, Learning::new(128, 2, 128), Learning::gradient)),
    ("gradient_256", 1, |n| repeat(n, Learning::new(256, 2, 128), Learning::gradient)),
    ("gradient_64_of_1024", 1, |n| repeat(n, Learning::new(64, 2, 1024), Learning::gradient)),
    ("adam_64", 40, |n| {
        let mut learning = Learning::new(64, 2, 128);
        learning.gradient();
        repeat(n, learning, Learning::apply);
    }),
    ("minibatch_64", 3, |n| {
        repeat(n, Learning::new(64, 2, 128), |learning| {
            learning.gradient();
            learning.apply();
        });
    }),
    ("act_64_of_64", 10, |n| repeat(n, Learning::new(64, 2, 128).acting(64), |acting| acting.act())),
    ("values_64_of_512", 3, |n| repeat(n, Learning::new(64, 2, 128), Learning::values)),
    ("log_softmax_16_of_2048", 2, |n| repeat(n, Learning::new(0, 16, 512), Learning::distributions)),
    ("q_gradient_256_of_64", 1, |n| repeat(n, Valuing::new(256, 64), Valuing::gradient)),
    ("q_update_64_of_128", 2, |n| {
        repeat(n, Valuing::new(64, 128), |valuing| {
            valuing.gradient();
            valuing.apply();
        });
    }),
    ("q_values_256_of_64", 2, |n| repeat(n, Valuing::new(256, 64), Valuing::values)),
    ("games_gradient_32", 1, |n| repeat(n, Valuing::seeing("arcade", GAME, 128, 32), Valuing::gradient)),
    ("atari_gradient_4", 1, |n| repeat(n, Valuing::seeing("nature", SCREENS, 512, 4), Valuing::gradient)),
    ("critic_gradient_256_of_64", 1, |n| repeat(n, Controlling::new(256, 64), Controlling::critic_gradient)),
    ("actor_gradient_256_of_64", 1, |n| repeat(n, Controlling::new(256, 64), Controlling::actor_gradient)),
    ("cartpole_4096_by_16", 1, |n| repeat(n, Worlds::new("cartpole", 4096), Worlds::run)),
    ("text_gradient_4", 1, |n| repeat(n, Writing::new(4), Writing::gradient)),
    ("text_generate_4", 1, |n| repeat(n, Writing::new(4), |writing| writing.generate())),
];

type Prepare = fn(usize);

fn repeat<T>(n: usize, mut with: T, kernel: impl Fn(&mut T)) {
    (0..n).for_each(|_| kernel(&mut with));
}

fn main() {
    // `cargo bench` adds arguments that begin with `--`
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    match &arguments[..] {
        [] => KERNELS.iter().for_each(|(name, repeats, _)| println!("{name} {repeats}")),
        [level] if level == "level" => println!("{:?}", Level::best()),
        [name, repeats] => {
            let (_, _, run) = KERNELS.iter().find(|(known, _, _)| known == name).expect("one of the kernels that are listed");
            let repeats = repeats.parse().expect("a whole number of repeats");
            threads::with(1, || run(repeats));
        }
        _ => panic!("expected KERNEL REPEATS, got {arguments:?}"),
    }
}
