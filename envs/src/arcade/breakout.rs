//! Breakout: hold the ball in play and break the bricks.

use super::{Draws, Each, Game, LAST, Move, Plane, Rules, Screen, sprites};

/// A row of bricks.
const BRICKS: u16 = (1 << super::SIZE) - 1;
/// Rows of bricks, from row 1 on.
const ROWS: usize = 3;

/// A paddle on the last row returns a ball, which flies diagonally, to three rows of bricks: 1 for each brick. When all are broken, a new wall is built
/// as soon as the ball comes back. The episode ends when the paddle misses the ball.
#[derive(Clone, Debug)]
pub struct Breakout {
    paddle: i32,
    ball: [i32; 2],
    /// Where the ball was before.
    trail: [i32; 2],
    /// -1 or 1: to the left or the right, up or down.
    course: [i32; 2],
    /// Bit x is the brick in column x.
    bricks: [i32; ROWS],
    /// Whether the last step struck a brick. A ball that strikes another one in the next step breaks none.
    has_struck: i32,
}

impl Breakout {
    fn has_brick(&self, x: i32, y: i32) -> bool {
        usize::try_from(y - 1).ok().and_then(|row| self.bricks.get(row)).is_some_and(|row| *row >> x & 1 != 0)
    }
}

impl Game for Breakout {
    const RULES: Rules = Rules {
        name: "Breakout",
        planes: &[
            Plane { name: "paddle", colour: [240, 240, 245], sprite: sprites::PADDLE },
            Plane { name: "ball", colour: [255, 209, 92], sprite: sprites::BALL },
            Plane { name: "trail", colour: [120, 104, 62], sprite: sprites::TRAIL },
            Plane { name: "brick", colour: [226, 92, 77], sprite: sprites::BRICK },
        ],
        moves: &[Move::Stay, Move::Left, Move::Right],
    };

    fn start(draws: &mut dyn Draws) -> Self {
        let right = draws.below(2) == 1;
        let (ball, course) = if right { ([LAST, 3], [-1, 1]) } else { ([0, 3], [1, 1]) };
        Self { paddle: 4, ball, trail: ball, course, bricks: [BRICKS.into(); ROWS], has_struck: 0 }
    }

    fn act(&mut self, action: Move, _: &mut dyn Draws) -> (u32, bool) {
        [self.paddle, _] = action.applied([self.paddle, LAST], LAST..=LAST);
        let [x, y] = self.ball;
        self.trail = self.ball;
        let [mut to_x, mut to_y] = [x + self.course[0], y + self.course[1]];
        let (mut reward, mut strikes, mut is_over) = (0, false, false);
        if !(0..=LAST).contains(&to_x) {
            to_x = to_x.clamp(0, LAST);
            self.course[0] = -self.course[0];
        }
        if to_y < 0 {
            to_y = 0;
            self.course[1] = -self.course[1];
        } else if self.has_brick(to_x, to_y) {
            strikes = true;
            if self.has_struck == 0 {
                reward = 1;
                self.bricks[to_y as usize - 1] &= !(1 << to_x);
                self.has_struck = 1;
                to_y = y;
                self.course[1] = -self.course[1];
            }
        } else if to_y == LAST {
            if self.bricks == [0; ROWS] {
                self.bricks = [BRICKS.into(); ROWS];
            }
            if x == self.paddle {
                self.course[1] = -self.course[1];
                to_y = y;
            } else if to_x == self.paddle {
                self.course = [-self.course[0], -self.course[1]];
                to_y = y;
            } else {
                is_over = true;
            }
        }
        if !strikes {
            self.has_struck = 0;
        }
        self.ball = [to_x, to_y];
        (reward, is_over)
    }

    fn show(&self, screen: &mut Screen<'_>) {
        screen.set(self.paddle, LAST, 0);
        screen.set(self.ball[0], self.ball[1], 1);
        screen.set(self.trail[0], self.trail[1], 2);
        self.bricks.iter().enumerate().for_each(|(row, bricks)| screen.set_row(row + 1, *bricks as u16, 3));
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.paddle, 0..=LAST);
        self.ball.iter_mut().chain(&mut self.trail).for_each(|number| each(number, 0..=LAST));
        self.course.iter_mut().for_each(|number| each(number, -1..=1));
        self.bricks.iter_mut().for_each(|row| each(row, 0..=BRICKS.into()));
        each(&mut self.has_struck, 0..=1);
    }
}
