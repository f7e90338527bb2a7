//! A bounded stack machine for integers.
//!
//! | instruction | what it does |
//! |---|---|
//! | `0` ... `9` | pushes the digit |
//! | `x` | pushes the input |
//! | `+` `-` `*` | pops two numbers and pushes the result; `-` subtracts the top from the number below it |
//! | `d` | duplicates the top of the stack |
//! | `s` | swaps the two top numbers |
//! | `p` | pops the top |
//! | `[` ... `]` | repeats the instructions inside while the top is not 0; the test does not pop the top |
//!
//! The result is the top of the stack at the end. A run stops with an error after [`STEPS`] instructions, so loops are bounded.

/// Maximum number of instructions of a run.
pub const STEPS: usize = 200;
/// Maximum number of numbers on the stack.
const DEPTH: usize = 64;

/// Why a run has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The run took more than [`STEPS`] instructions.
    Steps,
    /// There were too few numbers on the stack for an instruction, or none at the end.
    Empty,
    /// There were too many numbers on the stack.
    Full,
    /// A number overflowed.
    Large,
}

/// A parsed program.
///
/// ```
/// use gradus_envs::text::machine::{Halt, Machine};
///
/// let triple_and_one = Machine::new("3x*1+").unwrap();
/// assert_eq!(triple_and_one.run(5), Ok(16));
/// assert_eq!(Machine::new("1[]").unwrap().run(0), Err(Halt::Steps));
/// assert!(Machine::new("1[").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    instructions: Vec<u8>,
    /// For each bracket, the index of the matching bracket.
    jumps: Vec<usize>,
}

impl Machine {
    /// Parses a program; `None` if `text` has characters that are not instructions, or unmatched brackets.
    pub fn new(text: &str) -> Option<Self> {
        let instructions = text.as_bytes().to_vec();
        let (mut jumps, mut open) = (vec![0; instructions.len()], Vec::new());
        for (place, instruction) in instructions.iter().enumerate() {
            match instruction {
                b'[' => open.push(place),
                b']' => {
                    let start = open.pop()?;
                    (jumps[start], jumps[place]) = (place, start);
                }
                b'0'..=b'9' | b'x' | b'+' | b'-' | b'*' | b'd' | b's' | b'p' => {}
                _ => return None,
            }
        }
        open.is_empty().then_some(Self { instructions, jumps })
    }

    /// Runs the program on `input` and returns its result.
    pub fn run(&self, input: i64) -> Result<i64, Halt> {
        let mut stack: Vec<i64> = Vec::new();
        let (mut place, mut steps) = (0, 0);
        while let Some(instruction) = self.instructions.get(place) {
            steps += 1;
            if steps > STEPS {
                return Err(Halt::Steps);
            }
            let top = stack.last().copied().ok_or(Halt::Empty);
            match instruction {
                b'x' => stack.push(input),
                b'd' => stack.push(top?),
                b'p' => _ = stack.pop().ok_or(Halt::Empty)?,
                b'[' if top? == 0 => place = self.jumps[place],
                b']' if top? != 0 => place = self.jumps[place],
                b'[' | b']' => {}
                digit @ b'0'..=b'9' => stack.push(i64::from(digit - b'0')),
                operator => {
                    let (above, below) = (stack.pop().ok_or(Halt::Empty)?, stack.pop().ok_or(Halt::Empty)?);
                    match operator {
                        b's' => stack.extend([above, below]),
                        b'+' => stack.push(below.checked_add(above).ok_or(Halt::Large)?),
                        b'-' => stack.push(below.checked_sub(above).ok_or(Halt::Large)?),
                        _ => stack.push(below.checked_mul(above).ok_or(Halt::Large)?),
                    }
                }
            }
            if stack.len() > DEPTH {
                return Err(Halt::Full);
            }
            place += 1;
        }
        stack.pop().ok_or(Halt::Empty)
    }
}
