//! Defines a custom text task by the four required methods and one for scores, and samples from it: `cargo run --example custom_text_task`.
//!
//! The prompt opens brackets, and the answer closes them: the answer to `([<` is `>])`. The reward is the sum of two rules: 0.25 if
//! the answer contains only closing brackets, and 0.75 if it is correct.

use gradus::Error;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::text::{Finish, Problem, Rule, Rules, Split, Task, Verdict, Vocabulary};
use gradus::envs::{Actions, EnvSpec, Space, checker};

const LONGEST: usize = 4;

struct Brackets {
    vocabulary: Vocabulary,
    rules: Rules,
}

impl Brackets {
    fn new() -> Result<Self, Error> {
        let rules = vec![Rule::format(0.25, r"^[)\]>]+$")?, Rule::equality(0.75, |prompt| Ok(closed(prompt)))];
        Ok(Self { vocabulary: Vocabulary::of_characters("([<)]>")?, rules: Rules(rules) })
    }
}

/// Returns the brackets that close those of `text`, the last one first.
fn closed(text: &str) -> String {
    let close = |open| match open {
        '(' => ')',
        '[' => ']',
        _ => '>',
    };
    text.chars().rev().map(close).collect()
}

impl Task for Brackets {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn max_new_tokens(&self) -> usize {
        LONGEST + 1 // EOS is a token too
    }

    /// `draw` ensures that no prompt is in two splits. The answer is for supervised learning and may be left out.
    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        split.draw(stream, |stream| {
            let length = 1 + stream.below(LONGEST as u32);
            let prompt: String = (0..length).map(|_| ['(', '[', '<'][stream.below(3) as usize]).collect();
            Problem::of(&self.vocabulary, &prompt, &closed(&prompt))
        })
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        self.rules.verdict(&self.vocabulary, prompt, completion, finish)
    }

    /// This method is needed only because each rule reports a score.
    fn score_names(&self) -> Vec<String> {
        self.rules.score_names()
    }
}

fn main() -> Result<(), Error> {
    let task = Brackets::new()?;
    for seed in 0..4 {
        let problem = task.problem(Split::Train, &mut Stream::new(seed, Purpose::Environment, 0));
        let text = |tokens: &[u32]| task.vocabulary.decode(tokens);
        println!("{:<5}-> {}", text(&problem.prompt), text(&problem.answer));
    }
    let world = EnvSpec::text("brackets", task)?;
    assert_eq!(checker::check_world(&world), []);

    // measures the mean reward and the mean scores of a policy that samples tokens uniformly
    let mut envs = world.vec_env(0..32, 1)?;
    let Space::Discrete(vocabulary) = envs.action_space() else { unreachable!("tokens are numbers") };
    let mut stream = Stream::new(1, Purpose::Action, 0);
    let (mut episodes, mut reward, mut scores) = (0.0, 0.0, vec![0.0; envs.score_names().len()]);
    while episodes < 10_000.0 {
        let tokens: Vec<u32> = (0..envs.len()).map(|_| stream.below(vocabulary)).collect();
        for finished in &envs.step(Actions::Discrete(&tokens))?.finished {
            episodes += 1.0;
            reward += finished.episode_return;
            scores.iter_mut().zip(&finished.scores).for_each(|(sum, score)| *sum += score);
        }
    }
    println!("a random policy: reward {:.3} of 1", reward / episodes);
    for (name, score) in envs.score_names().iter().zip(scores) {
        println!("  {name:<16} {:.3}", score / episodes);
    }
    Ok(())
}
