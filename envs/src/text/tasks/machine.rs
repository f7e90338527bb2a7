//! A bounded stack machine for whole numbers.
//!
//! | instruction | what it does |
//! |---|---|
//! | `0` ... `9` | puts the digit on the stack |
//! | `x` | puts the input on the stack |
//! | `+` `-` `*` | takes two numbers off the stack and puts the result there: below - above |
//! | `d` `s` `p` | doubles the top, swaps the two top numbers, takes the top off |
//! | `[` ... `]` | repeats what is inside while the top is not 0; the top stays where it is |
//!
//! The result is the top of the stack at the end. A program may loop for ever; its run is cut after [`STEPS`] instructions.

/// After how many instructions a run is cut.
pub const STEPS: usize = 200;
/// How many numbers the stack may hold.
const DEPTH: usize = 64;

/// Why a run came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// It took more instructions than it may.
    Steps,
    /// An instruction found too few numbers on the stack, or there was none at the end.
    Empty,
    /// There were too many numbers on the stack.
    Full,
    /// A number became too large.
    Large,
}

/// A program, ready to run.
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
    /// For each bracket where its other half is.
    jumps: Vec<usize>,
}

impl Machine {
    /// The program that `text` is; nothing where it has other characters or brackets that do not match.
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

    /// What the program makes of `input`.
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
