//! Exercises, and what a function of a student is told.

use crate::sheet::{Sheet, Value};

/// What stands above an exercise.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Lesson and number: `1.2`.
    pub number: &'static str,
    /// Name of the function.
    pub name: &'static str,
    /// What it computes, in a few words.
    pub title: &'static str,
    /// Section of the lesson's page.
    pub section: &'static str,
    /// Hints, each of which says more than the one before.
    pub hints: &'static [&'static str],
}

/// A function that many people write instead of the right one.
#[derive(Clone, Copy)]
pub struct Mistake<F: 'static> {
    /// What is wrong with it, in a sentence that follows "This is what one gets if".
    pub says: &'static str,
    /// Section of the lesson's page.
    pub section: &'static str,
    /// The wrong function.
    pub function: F,
}

/// A check of a function: calls it, and notes what it returned beside what was expected.
pub type Check<F> = fn(Trial<F>, &mut Sheet);

/// What a check gets.
#[derive(Clone, Copy)]
pub struct Trial<F> {
    /// The function to check.
    pub function: F,
    /// A function that is right.
    pub right: F,
    /// Seed of the inputs.
    pub seed: u64,
}

/// An exercise: a function to write.
#[derive(Clone, Copy)]
pub struct Exercise<F: 'static> {
    /// What stands above it.
    pub about: About,
    /// A function that is right.
    pub right: F,
    /// Its checks, the cheapest first. A later check runs only if those before found nothing.
    pub checks: &'static [Check<F>],
    /// The mistakes that the checker knows by name.
    pub mistakes: &'static [Mistake<F>],
}

/// What the checks of a function found.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing is wrong.
    Right,
    /// The function is still the one of the template.
    NotWritten,
    /// The function returned something else.
    Wrong {
        /// With what it was called.
        place: String,
        /// What a right function returns, and what it returned.
        values: [Value; 2],
        /// The mistake that returns the same, and the section to read.
        mistake: Option<[&'static str; 2]>,
        /// Whether it returns the same in every call, and not only here and in most of them.
        everywhere: bool,
    },
}

/// An exercise with a function of a student.
pub trait Checked: Send + Sync {
    /// Returns what stands above the exercise.
    fn about(&self) -> About;

    /// Checks the function with inputs from the seed.
    fn verdict(&self, seed: u64) -> Verdict;

    /// Compares the function with examples only, and names no mistake: what a student is told of a homework.
    fn examples(&self) -> Verdict;

    /// Returns the sections of the lesson's page that its messages name.
    fn sections(&self) -> Vec<&'static str>;

    /// Returns the exercise with each of the known mistakes as its function, and what is wrong.
    fn with_mistakes(&self) -> Vec<(&'static str, Box<dyn Checked>)>;
}

/// The share of the calls in which a function must return what a mistake returns for the mistake to be named, if it does so in the first call that is
/// wrong.
const ENOUGH: f64 = 0.6;

/// An exercise and its answer.
pub(crate) struct Answered<F: 'static> {
    pub(crate) exercise: &'static Exercise<F>,
    pub(crate) function: F,
}

impl<F: Copy + Send + Sync> Checked for Answered<F> {
    fn about(&self) -> About {
        self.exercise.about
    }

    fn verdict(&self, seed: u64) -> Verdict {
        let Exercise { right, checks, mistakes, .. } = *self.exercise;
        for (number, check) in checks.iter().enumerate() {
            let sheet_of = |function: F, checks: &[Check<F>]| {
                let mut sheet = Sheet::default();
                checks.iter().for_each(|check| check(Trial { function, right, seed }, &mut sheet));
                sheet
            };
            let sheet = sheet_of(self.function, &[*check]);
            let Some(wrong) = sheet.wrong() else { continue };
            if wrong.is_not_written() {
                return Verdict::NotWritten;
            }
            // the cheap checks before this one tell mistakes apart that this one does not
            let all = &checks[..=number];
            // what a function prints is printed once
            let own = if number == 0 { sheet.clone() } else { sheet_of(self.function, all) };
            let shares: Vec<f64> = mistakes.iter().map(|mistake| own.agreement(&sheet_of(mistake.function, all))).collect();
            let best = (0..mistakes.len())
                .fold(None, |best: Option<usize>, i| if best.is_none_or(|best| shares[i] > shares[best]) { Some(i) } else { best });
            let best = best.filter(|best| shares[*best] >= ENOUGH);
            return Verdict::Wrong {
                place: wrong.place.clone(),
                values: [wrong.expected.clone(), wrong.got.clone()],
                mistake: best.map(|best| [mistakes[best].says, mistakes[best].section]),
                everywhere: best.is_some_and(|best| shares[best] == 1.0),
            };
        }
        Verdict::Right
    }

    fn examples(&self) -> Verdict {
        let Exercise { right, checks, .. } = *self.exercise;
        let mut sheet = Sheet::default();
        checks.iter().take(1).for_each(|check| check(Trial { function: self.function, right, seed: 0 }, &mut sheet));
        match sheet.wrong() {
            None => Verdict::Right,
            Some(wrong) if wrong.is_not_written() => Verdict::NotWritten,
            Some(wrong) => {
                let values = [wrong.expected.clone(), wrong.got.clone()];
                Verdict::Wrong { place: wrong.place.clone(), values, mistake: None, everywhere: false }
            }
        }
    }

    fn sections(&self) -> Vec<&'static str> {
        std::iter::once(self.exercise.about.section).chain(self.exercise.mistakes.iter().map(|mistake| mistake.section)).collect()
    }

    fn with_mistakes(&self) -> Vec<(&'static str, Box<dyn Checked>)> {
        let with = |mistake: &Mistake<F>| -> (&'static str, Box<dyn Checked>) {
            (mistake.says, Box::new(Answered { exercise: self.exercise, function: mistake.function }))
        };
        self.exercise.mistakes.iter().map(with).collect()
    }
}

/// A lesson with the functions of a student.
pub struct Lesson {
    /// Its number, such as `1`; that of a homework is `h1`.
    pub number: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its exercises.
    pub exercises: Vec<Box<dyn Checked>>,
}
