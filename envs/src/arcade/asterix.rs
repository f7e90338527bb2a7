//! Asterix: catch gold and avoid enemies.

use super::{Draws, Each, Game, LAST, Move, Mover, Plane, Rules, Screen, side, sprites};

/// Rows in which something may move: 1 to 8.
const ROWS: usize = 8;
/// Steps between two entries at the start of an episode.
const ENTRY: i32 = 10;
/// Steps between two moves of enemies and gold at the start of an episode.
const PACE: i32 = 5;
/// Steps between two rises of the difficulty.
const RISE: i32 = 100;

/// Enemies and gold enter a free row from either side, gold with probability 1/3. The player gets 1 for each piece of gold it touches; an enemy ends the
/// episode. Every hundred steps they enter more often, and every second time also move faster.
#[derive(Clone, Debug)]
pub struct Asterix {
    x: i32,
    y: i32,
    /// What moves in each row: gold if its other number is 1. A direction of 0 is none.
    rows: [Mover; ROWS],
    entry: i32,
    next_entry: i32,
    pace: i32,
    next_move: i32,
    next_rise: i32,
    rises: i32,
}

impl Asterix {
    fn enter(&mut self, draws: &mut dyn Draws) {
        let direction = if draws.unit() < 0.5 { 1 } else { -1 };
        let is_gold = draws.unit() < 1.0 / 3.0;
        let free: Vec<usize> = (0..ROWS).filter(|row| self.rows[*row].direction == 0).collect();
        if !free.is_empty() {
            let row = free[draws.below(free.len() as u32) as usize];
            self.rows[row] = Mover { x: side(direction), y: row as i32 + 1, direction, timer: 0, other: is_gold.into() };
        }
    }

    /// What the player touches in a row, which is taken away if it is gold: the reward, and whether it was an enemy.
    fn touch(&mut self, row: usize) -> (u32, bool) {
        let own = &mut self.rows[row];
        if own.direction == 0 || !own.is_at(self.x, self.y) {
            return (0, false);
        }
        if own.other == 0 {
            return (0, true);
        }
        *own = Mover::default();
        (1, false)
    }
}

impl Game for Asterix {
    const RULES: Rules = Rules {
        name: "Asterix",
        planes: &[
            Plane { name: "player", colour: [240, 240, 245], sprite: sprites::PLAYER },
            Plane { name: "enemy", colour: [226, 92, 77], sprite: sprites::ENEMY },
            Plane { name: "trail", colour: [72, 66, 84], sprite: sprites::TRAIL },
            Plane { name: "gold", colour: [255, 209, 92], sprite: sprites::GOLD },
        ],
        moves: &[Move::Stay, Move::Left, Move::Up, Move::Right, Move::Down],
    };

    fn start(_: &mut dyn Draws) -> Self {
        Self {
            x: 5,
            y: 5,
            rows: [Mover::default(); ROWS],
            entry: ENTRY,
            next_entry: ENTRY,
            pace: PACE,
            next_move: PACE,
            next_rise: RISE,
            rises: 0,
        }
    }

    fn act(&mut self, action: Move, draws: &mut dyn Draws) -> (u32, bool) {
        if self.next_entry == 0 {
            self.enter(draws);
            self.next_entry = self.entry;
        }
        [self.x, self.y] = action.applied([self.x, self.y], 1..=LAST - 1);
        let (mut reward, mut is_over) = (0, false);
        for row in 0..ROWS {
            let (more, ends) = self.touch(row);
            (reward, is_over) = (reward + more, is_over | ends);
        }
        if self.next_move == 0 {
            self.next_move = self.pace;
            for row in 0..ROWS {
                self.rows[row].x += self.rows[row].direction;
                if !self.rows[row].is_inside() {
                    self.rows[row] = Mover::default();
                }
                let (more, ends) = self.touch(row);
                (reward, is_over) = (reward + more, is_over | ends);
            }
        }
        self.next_entry -= 1;
        self.next_move -= 1;
        if self.entry > 1 || self.pace > 1 {
            if self.next_rise >= 0 {
                self.next_rise -= 1;
            } else {
                if self.pace > 1 && self.rises % 2 == 1 {
                    self.pace -= 1;
                }
                self.entry = (self.entry - 1).max(1);
                self.rises += 1;
                self.next_rise = RISE;
            }
        }
        (reward, is_over)
    }

    fn show(&self, screen: &mut Screen<'_>) {
        screen.set(self.x, self.y, 0);
        for own in self.rows.iter().filter(|own| own.direction != 0) {
            screen.set(own.x, own.y, if own.other == 1 { 3 } else { 1 });
            screen.set(own.behind(), own.y, 2);
        }
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.x, 0..=LAST);
        each(&mut self.y, 0..=LAST);
        self.rows.iter_mut().for_each(|own| own.visit(&mut *each));
        each(&mut self.entry, 1..=ENTRY);
        each(&mut self.next_entry, 0..=ENTRY);
        each(&mut self.pace, 1..=PACE);
        each(&mut self.next_move, 0..=PACE);
        each(&mut self.next_rise, -1..=RISE);
        each(&mut self.rises, 0..=i32::MAX);
    }
}
