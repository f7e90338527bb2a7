//! Mutated input never panics: every parser returns a result or an error of one line.
//!
//! `GRADUS_MUTATIONS` sets the number of mutations of each input; `.ci/long` tries many.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gradus::evaluate::{Mode, evaluate, trace};
use gradus::figure::Format;
use gradus::nets::tensors::decode;
use gradus::saved::load_behaviour;
use gradus::{Config, Run, Show, run};
use gradus_cli::pages;
use gradus_compare::{Comparison, Statistic, plot_results};
use hmac_sha256::Hash;

/// Mutations of each input, unless `GRADUS_MUTATIONS` says otherwise.
const MUTATIONS: u64 = 40;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Texts that parsers may not expect.
const WORDS: [&str; 34] = [
    "1",
    "2",
    "3",
    "64",
    "0.5",
    "0.1",
    "true",
    "cartpole",
    "",
    "-1",
    "0",
    "1e400",
    "-1e400",
    "NaN",
    "inf",
    "18446744073709551616",
    "9223372036854775807",
    "4294967296",
    "1e9",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "[[",
    "=",
    ",",
    "\n",
    "\r\n",
    "#",
    "\u{feff}",
    "é\u{0}",
    "  ",
];

/// Returns a copy of `bytes` with one to three changes, which are mostly small.
fn mutated(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(6).saturating_sub(3) {
        let at = random.below(bytes.len());
        // a number or a word of a text, or a few bytes
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        let start = bytes[..at].iter().rposition(|byte| !is_part(byte)).map_or(0, |start| start + 1);
        let end = at + bytes[at..].iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len() - at);
        let word = WORDS[random.below(WORDS.len())].as_bytes().to_vec();
        match random.below(12) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.below(256) as u8,
            2..=7 => drop(bytes.splice(start..end.max(start), word)),
            8 => drop(bytes.splice(at..at, word)),
            9 => drop(bytes.drain(at..(at + 1 + random.below(40)).min(bytes.len()))),
            10 => bytes.truncate(at),
            _ => {
                let copy = bytes[at..(at + 1 + random.below(200)).min(bytes.len())].to_vec();
                let to = random.below(bytes.len());
                drop(bytes.splice(to..to, copy));
            }
        }
    }
    bytes
}

/// Gives a mutated tensor file the right hash, so that its contents are read.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let mark = b"# sha256 ";
    if let Some(at) = bytes.windows(mark.len()).position(|window| window == mark).map(|at| at + mark.len())
        && at + 64 <= bytes.len()
    {
        bytes[at..at + 64].fill(b'0');
        let hash: String = Hash::hash(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        bytes[at..at + 64].copy_from_slice(hash.as_bytes());
    }
    bytes
}

/// Calls `parse` with mutations of `input`. Returns how many of them were refused.
fn sweep(name: &str, input: &[u8], parse: impl Fn(Vec<u8>) -> Result<(), String>) -> usize {
    let number = std::env::var("GRADUS_MUTATIONS").ok().map_or(MUTATIONS, |text| text.parse().expect("a number of mutations"));
    parse(input.to_vec()).expect("the input itself is valid");
    let mut refused = 0;
    for seed in 0..number {
        let bytes = mutated(input, &mut Random(seed));
        match catch_unwind(AssertUnwindSafe(|| parse(bytes.clone()))) {
            Ok(Ok(())) => {}
            Ok(Err(message)) => {
                refused += 1;
                assert!(message.lines().count() == 1, "{name}, mutation {seed}: expected one line, got {message:?}");
            }
            Err(_) => panic!("{name}: mutation {seed} panics:\n{}", String::from_utf8_lossy(&bytes)),
        }
    }
    println!("{name}: {number} mutations, {refused} refused");
    refused
}

fn shown(error: impl ToString) -> String {
    error.to_string()
}

const STUDY: &str = "name = \"a\"\nenvironments = [\"cartpole\", \"pendulum\"]\nseeds = [1, 2]\nsteps = { cartpole = \"5k\", pendulum = 1000 }\n\
    evaluations = 3\nevaluation_episodes = 2\nstatistic = \"mean\"\nscore = { cartpole = [0, 500], pendulum = [-1500, 0] }\n\
    [[agents]]\nname = \"PPO\"\nagent = \"ppo\"\npreset = \"default\"\nsettings = { \"ppo.clip\" = 0.2 }\n\
    environments.pendulum = { settings = { envs = 4 } }\n[[agents]]\nagent = \"a2c\"\n";

const RESULTS: &str = "agent,env,seed,step,return,std,min,max,length\n\
    PPO,cartpole,1,0,20.5,1,9,40,20.5\nPPO,cartpole,1,100,200,1,9,400,200\nPPO,cartpole,2,0,21,1,9,40,21\nPPO,cartpole,2,100,100,1,9,400,100\n\
    \"A, B\",cartpole,1,0,10,1,9,40,10\n\"A, B\",cartpole,1,100,90,1,9,40,90\n\"A, B\",cartpole,2,0,30,1,9,40,30\n\"A, B\",cartpole,2,100,60,1,9,40,60\n";

const TRACE: &str = "{\"format\":1,\"env\":\"cartpole\",\"episode_seed\":1,\"dynamics_seed\":7,\"actions\":[0,1],\
    \"observations\":[[0.1,0,0,0],[0,0,0,0],[0,0,0,0]],\"rewards\":[1,1],\"terminated\":false,\"truncated\":false}\n";

const PAGE: &str = "# A page\n\nThe mean is 12.5 <!-- t.csv: mean(return where agent = PPO and step = 100) --> and 20.5 <!-- t.csv: min(return) -->.\n\n\
    | agent | return |\n| --- | --- |\n| PPO | 20.5 |\n";

#[test]
fn mutated_texts_are_refused_in_one_line() {
    let folder = gradus_testing::tempdir().unwrap();
    let file = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let settings = Config::preset("grpo", "addition", None).unwrap().to_toml();
    let with = |bytes: Vec<u8>| Config::from_toml(&String::from_utf8_lossy(&bytes)).map(|_| ());
    assert!(sweep("settings", settings.as_bytes(), with) > 0);
    let study = |bytes| Comparison::read(&file("study.toml", bytes)).map(|_| ()).map_err(shown);
    assert!(sweep("comparison", STUDY.as_bytes(), study) > 0);
    let replay = |bytes| {
        let path = file("trace.jsonl", bytes);
        trace::read(&path).map_err(shown)?;
        trace::check_file(&gradus::envs::registry::find("cartpole").unwrap(), &path).map(|_| ()).map_err(shown)
    };
    assert!(sweep("trace", TRACE.as_bytes(), replay) > 0);
    let page = |bytes| {
        file("t.csv", RESULTS.into());
        pages::check(&file("page.md", bytes), true).map(|_| ()).map_err(shown)
    };
    sweep("page", PAGE.as_bytes(), page);
    let table_of_page = |bytes| {
        file("t.csv", bytes);
        pages::check(&file("page.md", PAGE.into()), false).map(|_| ()).map_err(shown)
    };
    sweep("table of a page", RESULTS.as_bytes(), table_of_page);
    let out = folder.path().join("figures");
    let table = |bytes| {
        plot_results(&file("results.csv", bytes), &out, Some(Statistic::Iqm), &Format::USUAL, Show::Nothing).map(|_| ()).map_err(shown)
    };
    assert!(sweep("results", RESULTS.as_bytes(), table) > 0);
}

#[test]
fn mutated_run_folders_are_refused_in_one_line() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    let settings = ["steps=256", "ppo.rollout_steps=32", "envs=2", "wrappers.normalise_observations=true"];
    let config = settings.iter().fold(Config::preset("ppo", "cartpole", None).unwrap(), |config, one| config.with_setting(one).unwrap());
    Run::create(config, &dir).unwrap().train(Show::Nothing).unwrap();
    let names = ["config.toml", "policy.safetensors", "state.safetensors", "metrics.csv", "episodes.csv"];
    let intact = names.map(|name| fs::read(dir.join(name)).unwrap());
    let restore = || names.iter().zip(&intact).for_each(|(name, bytes)| fs::write(dir.join(name), bytes).unwrap());
    let resume = || Run::resume(&dir).and_then(|mut run| run.train(Show::Nothing)).map_err(shown);
    let act = || {
        let (_, world, policy) = load_behaviour(&dir).map_err(shown)?;
        evaluate(policy.as_ref(), &world, 1, 1, Mode::Greedy).map(|_| ()).map_err(shown)
    };
    for (name, intact) in names.iter().zip(&intact).take(3) {
        let use_both = |bytes| {
            restore();
            fs::write(dir.join(name), sealed(bytes)).unwrap();
            let _ = decode(&fs::read(dir.join(name)).unwrap());
            act().and_then(|()| resume())
        };
        assert!(sweep(name, intact, use_both) > 0);
    }
    restore();
    let figure = folder.path().join("figure.svg");
    for name in &names[3..] {
        let bytes = fs::read(dir.join(name)).unwrap();
        let draw = |mutated| {
            fs::write(dir.join(name), mutated).unwrap();
            run::plot(&[&dir], &[&figure])
                .and_then(|()| {
                    gradus_compare::runs::plot_runs(
                        &[&dir],
                        &gradus_compare::runs::Plot { metrics: vec!["train/loss".into()], ..gradus_compare::runs::Plot::default() },
                        &[&figure],
                    )
                })
                .map(drop)
                .map_err(shown)
        };
        sweep(name, &bytes, draw);
        fs::write(dir.join(name), &bytes).unwrap();
    }
}
