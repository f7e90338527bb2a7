//! `gradus sample`: generates completions of a prompt and shows them token by token.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gradus::agents::Advantages;
use gradus::envs::EnvError;
use gradus::envs::text::Finish;
use gradus::evaluate::sample::{Completion, Drawn, Token, sample};
use gradus::nets::{Policy, Sampling};
use gradus::numbers::short;
use gradus::run::{load_reward, load_reward_of};
use gradus::saved::{load_first_policy, load_policy};
use gradus::{Error, LearnedReward, draw, plain};

use crate::arguments::{number, number_within};
use crate::output::say;

/// Complete a prompt and show every token's log-probability, entropy, KL divergence, value, reward and advantage.
#[derive(Args)]
pub(crate) struct Sample {
    /// Run folder.
    dir: PathBuf,
    /// Prompt, such as `37+45=`.
    #[arg(long, allow_hyphen_values = true)]
    prompt: String,
    /// Number of completions.
    #[arg(long, short, default_value = "1", allow_hyphen_values = true)]
    n: String,
    #[command(flatten)]
    chosen: Chosen,
    /// Random seed of the completions.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    seed: String,
    /// Folder written by `gradus reward-model`, whose model gives the rewards [default: the run's reward model, if it has one]
    #[arg(long, value_name = "DIR")]
    reward_model: Option<PathBuf>,
    /// What colours the tokens: the advantage (green: above 0; red: below 0; if there is none, yellow and magenta show improbable tokens), the entropy, or the KL divergence from
    /// the policy at the beginning of the training (both darker for larger numbers).
    #[arg(long, value_enum, default_value = "advantage")]
    color_by: ColorBy,
}

/// What the colours of tokens mean.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColorBy {
    Advantage,
    Entropy,
    Kl,
}

/// How tokens are chosen.
#[derive(Args)]
pub(crate) struct Chosen {
    /// Sampling temperature, by which the logits of the policy are divided, beside transformer.temperature of its training; 0: always the most probable token.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    temperature: String,
    /// Sample only from this many of the most probable tokens; 0: all tokens.
    #[arg(long, default_value = "0", allow_hyphen_values = true)]
    top_k: String,
    /// Sample only from the most probable tokens that together have this probability; 1: all tokens.
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    top_p: String,
    /// Sample only from tokens with at least this fraction of the highest probability; 0: all tokens.
    #[arg(long, default_value = "0", allow_hyphen_values = true)]
    min_p: String,
    /// Always take the most probable token.
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "min_p"])]
    greedy: bool,
}

pub(crate) fn run(arguments: &Sample) -> Result<u8, Error> {
    let n = number_within("-n", &arguments.n, 1, 1 << 20)? as usize;
    let seed = number("--seed", &arguments.seed, 0)?;
    let sampling = arguments.chosen.sampling()?;
    let (config, world, mut policy) = load_policy(&arguments.dir)?;
    let Some(text) = &world.text else {
        return Err(Error::Parse { what: "sample".into(), expected: "a run on a text task".into(), got: format!("one on {}", world.name) });
    };
    let vocabulary = text.task.vocabulary();
    let prompt = text.task.prompt_of(&arguments.prompt).map_err(EnvError::Text)?;
    let (compared, mut learned) = (config.algorithm.advantages(), reward_of(arguments.reward_model.as_deref(), &arguments.dir)?);
    let mut first = load_first_policy(&arguments.dir)?;
    let policies = (policy.as_mut(), first.as_deref_mut().map(|first| first as &mut dyn Policy));
    let completions = sample(policies, text, &prompt, Drawn { n, sampling, seed }, compared, learned.as_mut())?;

    let paint = Paint::for_stdout(arguments.color_by, &completions);
    let (names, prompt) = (text.score_names(), vocabulary.decode(&prompt));
    for completion in &completions {
        let symbols: Vec<(String, &Token)> =
            completion.tokens.iter().map(|token| (plain(&vocabulary.symbol(token.token)), token)).collect();
        print(&plain(&prompt), &symbols, completion, &names, paint);
    }
    // for example that addition's digits begin with the least significant one
    let about = world.about.split(" (").next().unwrap_or_default();
    if !about.is_empty() {
        say(paint.dim(&format!("{}: {about}", world.name)));
    }
    if let (1, Advantages::OfGroup(..) | Advantages::AgainstOthers { .. }) = (n, compared) {
        say(paint.dim(&format!("{} compares completions with each other: -n 8, for example, shows advantages", config.agent)));
    }
    Ok(0)
}

/// Loads the reward model in the folder `model`, or without one the reward model of the run in `dir`, if it has one.
pub(crate) fn reward_of(model: Option<&Path>, dir: &Path) -> Result<Option<LearnedReward>, Error> {
    model.map_or_else(|| load_reward(dir), |model| load_reward_of(model, dir).map(Some))
}

impl Chosen {
    /// Returns the sampling.
    pub fn sampling(&self) -> Result<Sampling, Error> {
        if self.greedy {
            return Ok(Sampling::GREEDY);
        }
        let real = |what: &str, text: &str| -> Result<f32, Error> {
            text.parse().map_err(|_| Error::Parse { what: what.into(), expected: "a number".into(), got: text.into() })
        };
        let sampling = Sampling {
            temperature: real("--temperature", &self.temperature)?,
            top_k: number("--top-k", &self.top_k, 0)? as usize,
            top_p: real("--top-p", &self.top_p)?,
            min_p: real("--min-p", &self.min_p)?,
        };
        sampling.check().map_err(|error| Error::Parse {
            what: format!("--{}", error.key.replace('_', "-")),
            expected: error.expected.into(),
            got: error.got.to_string(),
        })?;
        Ok(sampling)
    }
}

/// How to print in colour.
#[derive(Clone, Copy)]
struct Paint {
    is_on: bool,
    by: ColorBy,
    /// The largest number of the tokens, if they are coloured by a number.
    most: f32,
}

/// The backgrounds of tokens by their number, from the smallest to the largest, in the palette of 256 colours.
const HEAT: [u8; 6] = [0, 17, 18, 54, 90, 160];

impl Paint {
    /// Colours the output of a terminal, unless [it has no colours](draw::has_colours).
    fn for_stdout(by: ColorBy, completions: &[Completion]) -> Self {
        let numbers = completions.iter().flat_map(|completion| &completion.tokens).map(|token| by.number(token));
        Self { is_on: draw::has_colours(), by, most: numbers.fold(0.0, f32::max) }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Colours a token green for a positive advantage and red for a negative one. Without an advantage, a token is yellow below
    /// probability 0.9 and magenta below 0.5. By entropy or KL divergence, the background is one of six.
    fn token(self, text: &str, token: &Token) -> String {
        if self.by != ColorBy::Advantage {
            let share = self.by.number(token) / self.most.max(f32::MIN_POSITIVE);
            let step = (share * HEAT.len() as f32).clamp(0.0, HEAT.len() as f32 - 1.0) as usize;
            return if step == 0 { text.into() } else { self.with(&format!("97;48;5;{}", HEAT[step]), text) };
        }
        let code = match token.advantage {
            Some(advantage) if advantage > 1e-6 => "32",
            Some(advantage) if advantage < -1e-6 => "31",
            Some(_) => "39",
            None if token.log_prob > -0.105 => "39", // probability 0.9
            None if token.log_prob > -0.693 => "33", // probability 0.5
            None => "35",
        };
        self.with(code, text)
    }
}

impl ColorBy {
    fn number(self, token: &Token) -> f32 {
        match self {
            Self::Kl => token.kl.unwrap_or(0.0),
            _ => token.entropy,
        }
    }
}

fn print(prompt: &str, symbols: &[(String, &Token)], completion: &Completion, names: &[String], paint: Paint) {
    let tokens: String = symbols.iter().map(|(symbol, token)| paint.token(symbol, token)).collect();
    let cut = if completion.finish == Finish::Length { paint.dim(" (cut)") } else { String::new() };
    let verdict = match &completion.verdict {
        Ok((reward, scores)) => {
            let scores: String = names.iter().zip(scores).map(|(name, score)| format!(", {name} {}", short(*score))).collect();
            match completion.learned {
                Some(learned) => format!("learned reward {}, true {}{scores}", short(learned), short(*reward)),
                None => format!("reward {}{scores}", short(*reward)),
            }
        }
        Err(why) => match completion.learned {
            Some(learned) => format!("learned reward {}, no true reward: {why}", short(learned)),
            None => format!("no reward: {why}"),
        },
    };
    say(format!("{}{tokens}{cut}  {}", paint.with("1", prompt), paint.dim(&plain(&verdict))));
    let width = symbols.iter().map(|(symbol, _)| symbol.chars().count()).max().unwrap_or_default().max(5);
    let is_learned = completion.learned.is_some();
    let names = if is_learned { "  learned      true" } else { "   reward" };
    say(paint
        .dim(&format!("  {:<width$}  {:>8}  {:>8}  {:>8}  {:>8}{names}  {:>9}", "token", "log pi", "entropy", "KL", "value", "advantage")));
    let shown = |number: Option<f32>| number.map_or_else(|| "-".into(), |number| format!("{number:.3}"));
    for (symbol, token) in symbols {
        let padded = format!("{symbol:<width$}");
        let advantage = token.advantage.map_or_else(|| "-".into(), |advantage| format!("{advantage:+.3}"));
        let Token { log_prob, entropy, value, reward, true_reward, .. } = token;
        let true_reward = if is_learned { format!("  {:>8}", shown(*true_reward)) } else { String::new() };
        let kl = shown(token.kl);
        let numbers = format!("{log_prob:>8.3}  {entropy:>8.3}  {kl:>8}  {value:>8.3} {:>8}{true_reward}  {advantage:>9}", shown(*reward));
        say(format!("  {}  {numbers}", paint.token(&padded, token)));
    }
}
