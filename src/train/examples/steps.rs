//! Labelled steps of completions. The label says whether the step is right, by the task's verifier or by completions that continue it.

use gradus_agents::process_reward::{LabelledSteps, StepLabel};
use gradus_base::random::{Purpose, Stream, episode_seed};
use gradus_base::tensors::{Tensor, TensorsError};
use gradus_envs::EnvError;
use gradus_envs::text::{SolutionStep, Split, TextWorld};
use gradus_nets::{Behaviour, Sampling};
use gradus_rollouts::{Start, continue_from};

use super::{Completions, Questions};
use crate::config::{Labelling, StepLabels};

/// A prompt with a completion, and the labels of the completion's steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelledText {
    pub text: Vec<u32>,
    pub steps: Vec<StepLabel>,
}

/// Number of completions for labels that are in memory at once.
const AT_ONCE: usize = 1 << 16;

/// Samples completions and labels their steps.
pub(super) fn draw(
    policy: &dyn Behaviour,
    world: &TextWorld,
    split: Split,
    questions: Questions,
    labelling: &Labelling,
    seed: u64,
) -> Result<Vec<LabelledText>, EnvError> {
    let completions = Completions::sample(policy, world, split, questions, seed)?;
    let of = |i| completions.get(i);
    let steps = (0..completions.len()).map(|i| world.steps(of(i).0, of(i).1)).collect::<Result<Vec<_>, _>>()?;
    let labels = match labelling.labels {
        // rewards of steps are sums of floating-point numbers, so that a reward of 0 may have a rounding error
        StepLabels::Verifier => steps.iter().flatten().map(|step| f32::from(u8::from(step.reward > 1e-9))).collect(),
        StepLabels::Hard | StepLabels::Soft => by_rollouts(policy, world, &completions, &steps, labelling, episode_seed(seed, 1, 0))?,
    };
    let mut labels = labels.into_iter();
    let of_text = |(i, steps): (usize, Vec<SolutionStep>)| {
        let begin = of(i).0.len();
        let label = |step: SolutionStep| StepLabel { tokens: begin + step.tokens, label: labels.next().expect("one for each step") };
        LabelledText { text: completions.text(i), steps: steps.into_iter().map(label).collect() }
    };
    Ok(steps.into_iter().enumerate().map(of_text).collect())
}

/// Labels steps by the success of completions that `policy` samples from the end of each step (Wang et al., arXiv 2312.08935, section
/// 3.3): whether one of them succeeds (hard), or the fraction of them that succeed (soft). The label of the last step is the success of the
/// completion itself. Returns the labels of all steps, completion after completion.
fn by_rollouts(
    policy: &dyn Behaviour,
    world: &TextWorld,
    completions: &Completions,
    steps: &[Vec<SolutionStep>],
    labelling: &Labelling,
    seed: u64,
) -> Result<Vec<f32>, EnvError> {
    let Labelling { labels, rollouts, success } = labelling;
    let names = world.task.score_names();
    let score = names.iter().position(|name| name == success).ok_or_else(|| {
        EnvError::Text(format!("reward_model.success: expected a score of the task ({}), got `{success}`", names.join(", ")))
    })?;
    let succeeds = |prompt: &[u32], completion: &[u32]| world.verify(prompt, completion).map(|(_, scores)| scores[score] >= 1.0 - 1e-9);
    // the number of each step's completion, and the end of the step
    let ends: Vec<(usize, usize)> =
        steps.iter().enumerate().flat_map(|(i, steps)| steps.iter().map(move |step| (i, step.tokens))).collect();
    let mut found = Vec::with_capacity(ends.len());
    for (chunk, ends) in ends.chunks((AT_ONCE / rollouts).max(1)).enumerate() {
        let is_last = |(i, tokens): &(usize, usize)| *tokens == completions.get(*i).1.len();
        let continued = || ends.iter().filter(|end| !is_last(end));
        let start = |(i, tokens): &(usize, usize)| {
            let (prompt, completion) = completions.get(*i);
            vec![Start { prompt, completion: &completion[..*tokens] }; *rollouts]
        };
        let starts: Vec<Start<'_>> = continued().flat_map(start).collect();
        let stream = |i: usize| Stream::new(episode_seed(seed, 0, chunk as u64), Purpose::Action, i as u64);
        let ended = continue_from(policy, world, &starts, &stream, &Sampling::default());
        let mut successes = starts.iter().zip(&ended).map(|(start, completion)| succeeds(start.prompt, completion));
        for end in ends {
            found.push(if is_last(end) {
                let (prompt, completion) = completions.get(end.0);
                f32::from(u8::from(succeeds(prompt, completion)?))
            } else {
                let mut of_step = 0_u32;
                for success in successes.by_ref().take(*rollouts) {
                    of_step += u32::from(success?);
                }
                if *labels == StepLabels::Soft { of_step as f32 / *rollouts as f32 } else { f32::from(u8::from(of_step > 0)) }
            });
        }
    }
    Ok(found)
}

/// Returns a random fraction `share` of the texts.
pub(super) fn share<'a>(texts: &'a [LabelledText], share: f32, stream: &mut Stream) -> impl Iterator<Item = &'a LabelledText> {
    let wanted = (f64::from(share) * texts.len() as f64).round() as usize;
    let mut order: Vec<usize> = (0..texts.len()).collect();
    stream.shuffle(&mut order);
    order.into_iter().take(wanted).map(|i| &texts[i])
}

/// Returns the texts in the form that a process reward model learns from.
pub(super) fn labelled<'a>(texts: impl IntoIterator<Item = &'a LabelledText>, context: usize) -> LabelledSteps {
    LabelledSteps::new(context, texts.into_iter().map(|text| (&text.text[..], &text.steps[..])))
}

/// Name of the tensor with the labelled texts.
pub(super) const STEPS: &str = "steps";

/// Encodes labelled texts as integers: for each text, its length, the number of its steps, its tokens, and for each step its end and the
/// bits of its label.
pub(super) fn save(texts: &[LabelledText]) -> Tensor {
    let words = |LabelledText { text, steps }: &LabelledText| {
        let header = [text.len() as u64, steps.len() as u64];
        let of_steps = steps.iter().flat_map(|step| [step.tokens as u64, u64::from(step.label.to_bits())]);
        header.into_iter().chain(text.iter().map(|token| u64::from(*token))).chain(of_steps).collect::<Vec<_>>()
    };
    Tensor::u64(texts.iter().flat_map(words).collect())
}

/// Decodes texts that [`save`] encoded.
pub(super) fn load(mut words: &[u64], vocabulary: u32, context: usize) -> Result<Vec<LabelledText>, TensorsError> {
    let mut texts = Vec::new();
    while !words.is_empty() {
        let (text, rest) = load_one(words, vocabulary, context).ok_or_else(|| {
            TensorsError::State("labelled steps: expected texts with the labels of their steps, got something else".into())
        })?;
        texts.push(text);
        words = rest;
    }
    Ok(texts)
}

/// Decodes one text. Returns the text and the words after it, or `None` if the text is damaged.
fn load_one(words: &[u64], vocabulary: u32, context: usize) -> Option<(LabelledText, &[u64])> {
    let ([length, count], rest) = words.split_first_chunk()?;
    let length = usize::try_from(*length).ok().filter(|length| *length <= context)?;
    let count = usize::try_from(*count).ok().filter(|count| *count <= length)?;
    let (tokens, rest) = rest.split_at_checked(length)?;
    let (steps, rest) = rest.split_at_checked(2 * count)?;
    let text = tokens.iter().map(|token| u32::try_from(*token).ok().filter(|token| *token < vocabulary)).collect::<Option<_>>()?;
    let mut before = 0;
    let step = |[tokens, label]: &[u64; 2]| {
        let tokens = usize::try_from(*tokens).ok().filter(|tokens| (before + 1..=length).contains(tokens))?;
        before = tokens;
        let label = f32::from_bits(u32::try_from(*label).ok()?);
        (0.0..=1.0).contains(&label).then_some(StepLabel { tokens, label })
    };
    Some((LabelledText { text, steps: steps.as_chunks().0.iter().map(step).collect::<Option<_>>()? }, rest))
}
