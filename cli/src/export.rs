//! `gradus export --hub`: a folder with a policy and its model card, as Hugging Face's hub shows them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use gradus::agents::registry as agents;
use gradus::config::{Atari, Network};
use gradus::envs::random::episode_seed;
use gradus::envs::{EnvSpec, gym, registry};
use gradus::evaluate::play::{Played, play};
use gradus::evaluate::{Evaluation, Mode};
use gradus::files::exists;
use gradus::nets::{Cell, tensors};
use gradus::numbers::short;
use gradus::{Config, Error, Policy, program_name};

use crate::arguments::number_within;
use crate::eval::to_json;
use crate::folder::{self, io};
use crate::output::{quoted, say, warn};

/// The file of the settings.
const CONFIG: &str = "config.toml";
/// Name of the program that plays a policy in Python.
const LOADER: &str = "gradus_policy.py";

#[derive(Args)]
pub(crate) struct Export {
    /// Run folder, or a policy file.
    dir: PathBuf,
    /// Folder to write, which must be new or empty: README.md (the model card), the policy, its settings, its evaluation, an animation and
    /// the learning curve. Nothing is uploaded.
    #[arg(long, value_name = "FOLDER", required_unless_present = "transformers")]
    hub: Option<PathBuf>,
    /// Folder to write, which must be new or empty: a fine-tuned language model as a whole, with the adapters added to its matrices, as `transformers` opens it.
    #[arg(long, value_name = "FOLDER")]
    transformers: Option<PathBuf>,
    /// Number of episodes of the evaluation; on a text task, of problems.
    #[arg(long, default_value = "100", allow_hyphen_values = true)]
    episodes: String,
    /// Name of the model [default: AGENT-ENVIRONMENT]
    #[arg(long)]
    name: Option<String>,
}

pub(crate) fn run(arguments: &Export) -> Result<u8, Error> {
    let episodes = number_within("--episodes", &arguments.episodes, 1, 1 << 20)? as usize;
    let policy = Policy::load(&arguments.dir)?;
    if let Some(folder) = &arguments.transformers {
        folder::create(folder, |to| policy.save_for_transformers(to))?;
        say(format!("{}: transformers opens it with AutoModelForCausalLM.from_pretrained", folder.display()));
    }
    let Some(hub) = &arguments.hub else { return Ok(0) };
    folder::expect_policy(&arguments.dir)?;
    let default = hub_name(&policy.config().short_name());
    let name = arguments.name.as_deref().unwrap_or(&default);
    check_name(name)?;
    // the settings of a folder without a checkpoint, such as that of `gradus sft`, may not be those of a training
    let state = arguments.dir.join("state.safetensors");
    let has_state = exists(&state)?;
    let was_trained = arguments.dir.is_file() || has_state;
    // a run may have been stopped, by a signal or by an evaluation
    let bytes = if has_state { Some(fs::read(&state).map_err(|source| io("read", &state, source))?) } else { None };
    let done = bytes.and_then(|bytes| tensors::decode(&bytes).ok());
    let done = done.and_then(|(tensors, _)| tensors::get_u64(&tensors, "steps").ok()?.first().copied());
    folder::create(hub, |to| {
        let evaluation = policy.evaluate(episodes, Mode::Greedy)?;
        policy.save_into(to)?;
        // the episode that `gradus play` shows
        let seed = episode_seed(1, u64::from(u32::MAX), 0);
        let world = policy.normalised_world();
        let played = match play(policy.behaviour(), &world, seed) {
            // a machine without a screen may have no pictures; the policy is worth more than they are
            Err(error) if gym::is_gym(&policy.config().environment) => {
                warn(&format!("no animation: {error}"));
                gym::draw_nothing();
                play(policy.behaviour(), &world, seed)?
            }
            played => played?,
        };
        let has_frames = !played.frames.is_empty();
        if has_frames {
            policy.write_gif(to.join("replay.gif"), seed)?;
        }
        let curve = arguments.dir.join("curve.png");
        let has_curve = exists(&curve)?;
        if has_curve {
            fs::copy(&curve, to.join("curve.png")).map_err(|source| io("copy", &curve, source))?;
        }
        let write = |name: &str, text: &str| fs::write(to.join(name), text).map_err(|source| io("write", &to.join(name), source));
        if is_for_python(policy.config(), policy.world()) {
            write(LOADER, include_str!("gradus_policy.py"))?;
        }
        write("results.json", &(to_json(&evaluation) + "\n"))?;
        let is_final = done.is_some_and(|done| done >= policy.config().steps);
        let is_best = arguments.dir.file_name().is_some_and(|name| name == "best_policy.safetensors");
        let card =
            Card { name, policy: &policy, evaluation: &evaluation, played: &played, was_trained, done, is_final, is_best, has_curve };
        write("README.md", &card.text(to)?)
    })?;
    for problem in policy.config().lost_inputs() {
        warn(&format!("{problem}; the policy of {} works without it, but cannot be trained again from there", hub.display()));
    }
    let shown = hub.display();
    say(format!("{shown}: README.md is the model card"));
    let owner = if name.contains('/') { "" } else { "YOU/" };
    say(format!("upload it with: hf upload {owner}{} {}", quoted(name), quoted(&shown.to_string())));
    Ok(0)
}

/// Most letters of the name of a model.
const LONGEST_NAME: usize = 96;

/// Returns a text as the name of a model: letters, digits, `_`, and single `-` or `.` between them.
fn hub_name(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars().take(LONGEST_NAME) {
        match letter {
            letter if letter.is_ascii_alphanumeric() || letter == '_' => name.push(letter),
            _ if name.is_empty() || name.ends_with(['-', '.']) => {}
            '.' => name.push('.'),
            _ => name.push('-'),
        }
    }
    name.trim_end_matches(['-', '.']).into()
}

/// Checks that the hub accepts the name of a model, which may follow that of its owner.
fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |part: &str| {
        let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let letters = part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
        letters
            && is_end(part.chars().next())
            && is_end(part.chars().last())
            && !part.contains("--")
            && !part.contains("..")
            && !part.ends_with(".git")
            && !part.ends_with(".ipc")
    };
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() <= 2 && parts.iter().all(|part| is_plain(part)) && parts.iter().all(|part| part.len() <= LONGEST_NAME) {
        return Ok(());
    }
    let expected =
        format!("at most {LONGEST_NAME} letters, digits and single -, _ or . between them, such as ppo-cartpole or OWNER/ppo-cartpole");
    Err(Error::Parse { what: "--name".into(), expected, got: format!("`{name}`") })
}

/// Whether `gradus_policy.py` can load the policy.
fn is_for_python(config: &Config, world: &EnvSpec) -> bool {
    let is_network = config.foreign(world).iter().all(|(key, _)| key != "network.");
    world.text.is_none()
        && is_network
        && config.wrappers.atari == Atari::Off
        && config.wrappers.frame_stack == 1
        && !config.wrappers.time_aware
}

/// What the model card tells.
struct Card<'a> {
    name: &'a str,
    policy: &'a Policy,
    evaluation: &'a Evaluation,
    played: &'a Played,
    /// Whether the settings are those of the policy's training.
    was_trained: bool,
    /// Environment steps of the training, if a checkpoint tells them.
    done: Option<u64>,
    /// Whether it is the policy at the end of the training that the settings describe.
    is_final: bool,
    /// Whether it is the policy of a training's best evaluation.
    is_best: bool,
    has_curve: bool,
}

impl Card<'_> {
    /// Returns the text of the card: the data that the hub reads, then a page for people.
    fn text(&self, folder: &Path) -> Result<String, Error> {
        let (config, evaluation) = (self.policy.config(), self.evaluation);
        let title = self.policy.world().title();
        let settings = fs::read_to_string(folder.join(CONFIG)).map_err(|source| io("read", &folder.join(CONFIG), source))?;
        // a string of JSON is one of YAML
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        let (agent, steps) = (&config.agent, self.done.unwrap_or(config.steps));
        let (most, whole) = match self.done {
            Some(_) => ("", ""),
            None if config.stop_at.is_finite() => ("at most ", " (rounded up to whole rollouts)"),
            None => ("", " (rounded up to whole rollouts)"),
        };
        let spread = if evaluation.std.is_nan() { String::new() } else { format!(" +/- {:.2}", evaluation.std) };
        let score = format!("{:.2}{spread}", evaluation.mean);
        let unit = if self.policy.world().text.is_some() { "tokens" } else { "environment steps" };
        let mut card = format!(
            "---\nlibrary_name: gradus\ntags:\n- reinforcement-learning\n- deep-reinforcement-learning\n- {}\n- {}\nmodel-index:\n- name: {}\n  results:\n  \
             - task:\n      type: reinforcement-learning\n      name: reinforcement-learning\n    dataset:\n      name: {}\n      type: {}\n    metrics:\n    \
             - type: mean_reward\n      value: {score}\n      name: mean_reward\n      verified: false\n---\n\n",
            quote(agent),
            quote(&title),
            quote(self.name),
            quote(&title),
            quote(&title),
        );
        let mut add = |text: &str| card.push_str(text);
        let training = match self.was_trained {
            true if self.is_best => format!(", the best evaluation's in a training with the agent `{agent}`, with seed {}", config.seed),
            true => format!(", trained with the agent `{agent}` for {most}{steps} {unit}{whole}, with seed {}", config.seed),
            false => ", made with Gradus".into(),
        };
        add(&format!("# {}\n\nA policy for {title}{training}.\n\n", self.name));
        if !self.played.frames.is_empty() {
            add("![An episode of the policy](replay.gif)\n\n");
        } else if let Some(text) = self.played.texts.last() {
            // longer than any fence in the text
            let runs = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(3.max(runs + 1));
            add(&format!("An episode:\n\n{fence}text\n{text}\n{fence}\n\n"));
        }
        add(&self.results());
        if self.has_curve {
            add("![Learning curve](curve.png)\n\n");
        }
        let program = program_name();
        let has_own = agents::is_registered(agent) || registry::is_registered(&config.environment);
        add("## How to use it\n\n");
        if has_own {
            add(&format!("The agent or the environment is one of the program `{program}`.\n\n"));
        }
        if let Some((_, model)) = config.environment.split_once("?model=").filter(|(problems, _)| problems.starts_with("chat:")) {
            let model = Path::new(model).file_name().unwrap_or_default().display();
            add(&format!("The policy needs the pretrained model {model}, at the path behind `?model=` in `config.toml`.\n\n"));
            if let (true, Network::Transformer(network)) = (exists(&folder.join("adapter_config.json"))?, &config.network) {
                add(&format!(
                    "In Python, with `BASE` the same model for transformers:\n\n```python\nfrom peft import PeftModel\nfrom transformers import AutoModelForCausalLM\n\n\
                     model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(BASE), \".\")\n```\n\nThe training sampled at temperature {}.\n\n",
                    network.temperature
                ));
            }
        }
        let play = format!("{program} play .");
        add(&format!("```sh\n{play:<29} # shows an episode in the terminal\n{program} eval . --episodes 100\n```\n\n"));
        let remembers = matches!(&config.network, Network::Perceptron(network) if network.cell != Cell::None);
        let (rust, python) = if self.has_masks() && !remembers {
            (
                "// `mask` is true for the actions that may be chosen\n\
                 let action = policy.predict_masked(&observation, Some(&mask), gradus::Mode::Greedy)?;",
                "action = load(\".\").act(observation, info[\"action_mask\"])",
            )
        } else if remembers {
            (
                "let mut memory = policy.memory(); // at the beginning of every episode\n\
                 let action = policy.predict_with(&observation, &mut memory, None, gradus::Mode::Greedy)?;",
                "policy = load(\".\")\nmemory = policy.memory()  # at the beginning of every episode\naction = policy.act(observation, memory=memory)",
            )
        } else {
            ("let action = policy.predict(&observation, gradus::Mode::Greedy)?;", "action = load(\".\").act(observation)")
        };
        add(&format!("```rust\nlet mut policy = gradus::Policy::load(\".\")?;\n{rust}\n```\n\n"));
        if exists(&folder.join(LOADER))? {
            add(&format!("In Python, with NumPy alone:\n\n```python\nfrom gradus_policy import load\n\n{python}\n```\n\n"));
        }
        let what = if self.is_final { ", which trains the policy again, bit for bit" } else { "" };
        add(&format!("## Settings\n\n`config.toml`{what}:\n\n```toml\n{}\n```\n", settings.trim_end()));
        Ok(card)
    }

    /// Whether the environment says which actions may be chosen.
    fn has_masks(&self) -> bool {
        let mut env = self.policy.world().env();
        let mut mask = vec![true; env.action_space().mask_width()];
        env.reset(0, &mut vec![0.0; env.observation_space().width()]);
        !mask.is_empty() && env.action_mask(&mut mask)
    }

    fn results(&self) -> String {
        let Evaluation { mean, std, min, max, returns, lengths, scores, problems, .. } = self.evaluation;
        let length = lengths.iter().map(|steps| f64::from(*steps)).sum::<f64>() / lengths.len().max(1) as f64;
        let what =
            problems.as_ref().map_or_else(|| format!("{} episodes that the training did not see", returns.len()), ToString::to_string);
        let mut text =
            format!("## Results\n\nThe most probable actions in {what}. One training run is not a comparison of algorithms.\n\n");
        let mut row = |name: &str, value: f64| writeln!(text, "| {name} | {} |", short(value)).expect("writing to a string does not fail");
        row("mean return", *mean);
        if std.is_finite() {
            row("standard deviation", *std);
        }
        row("lowest", *min);
        row("highest", *max);
        row("mean length", length);
        scores.iter().for_each(|score| row(&score.name, score.mean));
        let head = text.find("| mean").unwrap_or(0);
        text.insert_str(head, "| | |\n| --- | --- |\n");
        text.push('\n');
        text
    }
}
