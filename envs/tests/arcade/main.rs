//! The games against records of the package `minatar`, which `scripts/arcade_traces.py` has written: every observation, reward and end of 10,000 steps
//! of five seeds.

mod numpy;

use gradus_envs::arcade::{self, Asterix, Breakout, Freeway, Game, Move, Screen, Seaquest, SpaceInvaders};
use gradus_envs::{Action, Env, registry};

use numpy::RandomState;

const TRACES: &str = include_str!("traces.txt");
/// Steps between two hashes.
const EVERY: usize = 250;

/// FNV-1a of what is seen.
struct Hash(u64);

impl Hash {
    fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }

    fn show<G: Game>(&mut self, game: &G) {
        let planes = G::RULES.planes.len();
        let mut pixels = vec![0.0; arcade::SIZE * arcade::SIZE * planes];
        game.show(&mut Screen::new(&mut pixels, planes));
        // eight pixels in a byte, the first in its highest bit, as NumPy's `packbits`
        for eight in pixels.chunks(8) {
            self.add(eight.iter().enumerate().fold(0, |byte, (i, pixel)| byte | u8::from(*pixel > 0.0) << (7 - i)));
        }
    }
}

/// Plays the recorded episodes of a game; returns the number of ends and the rewards.
fn replay<G: Game>(name: &str) -> (usize, u32) {
    let (mut ends, mut rewards) = (0, 0);
    for line in TRACES.lines().filter(|line| line.split(' ').next() == Some(name)) {
        let [_, seed, actions, hashes] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let hashes: Vec<&str> = hashes.split(',').collect();
        let mut random = RandomState::new(seed.parse().unwrap());
        let (mut game, mut before) = (G::start(&mut random), Move::Stay);
        let mut hash = Hash(0xcbf2_9ce4_8422_2325);
        assert_eq!((actions.len(), hashes.len()), (10_000, 10_000 / EVERY));
        for (step, action) in actions.bytes().enumerate() {
            let action = arcade::taken(G::RULES.moves[usize::from(action - b'0')], &mut before, &mut random);
            let (reward, is_over) = game.act(action, &mut random);
            hash.show(&game);
            hash.add(reward as u8);
            hash.add(is_over.into());
            rewards += reward;
            if is_over {
                ends += 1;
                game = G::start(&mut random);
                hash.show(&game);
            }
            if (step + 1) % EVERY == 0 {
                assert_eq!(format!("{:016x}", hash.0), hashes[step / EVERY], "{name}, seed {seed}: before step {}", step + 1);
            }
        }
    }
    (ends, rewards)
}

#[test]
fn games_are_those_of_the_package() {
    let played = [
        replay::<Asterix>("asterix"),
        replay::<Breakout>("breakout"),
        replay::<Freeway>("freeway"),
        replay::<Seaquest>("seaquest"),
        replay::<SpaceInvaders>("space_invaders"),
    ];
    // the records have many ends and rewards
    assert!(played.iter().all(|(ends, rewards)| *ends >= 15 && *rewards >= 100), "{played:?}");
}

/// An episode is a function of the seed and the actions; a game that was saved goes on as the one that was not; words that are no state are refused.
#[test]
fn episodes_repeat_and_can_be_saved() {
    for name in ["asterix", "breakout", "freeway", "seaquest", "space-invaders"] {
        let world = registry::find(name).unwrap();
        let (mut env, mut other) = (world.env(), world.env());
        let width = env.observation_space().width();
        let (mut row, mut again) = (vec![f32::NAN; width], vec![f32::NAN; width]);
        env.reset(5, &mut row);
        let n = env.action_space().elements().unwrap();
        for step in 0..300_u32 {
            if step == 17 {
                other.load(&env.save()).unwrap();
            }
            let action = Action::Discrete(step * 7 % n);
            let taken = env.step(action, &mut row);
            if step >= 17 {
                assert_eq!((other.step(action, &mut again), &again), (taken, &row), "{name}, step {step}");
            }
            assert!(row.iter().all(|number| [0.0, 1.0].contains(number)), "{name}");
            if taken.done() {
                env.reset(u64::from(step), &mut row);
                other.reset(u64::from(step), &mut again);
                assert!(step < 17 || row == again, "{name}");
            }
        }
        let saved = env.save();
        let mut damaged = vec![saved[..saved.len() - 1].to_vec(), [&saved[..], &[0]].concat(), Vec::new()];
        damaged.extend((2..saved.len()).map(|i| {
            let mut words = saved.clone();
            words[i] = 1 << 40;
            words
        }));
        for words in damaged {
            let problem = env.load(&words).unwrap_err().to_string();
            assert!(!problem.contains('\n') && env.save() == saved, "{name}: {problem}");
        }
    }
}
