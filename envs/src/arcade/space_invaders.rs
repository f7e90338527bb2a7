//! Space Invaders: shoot the aliens before they land.

use super::{Draws, Each, Game, LAST, Move, Plane, Rules, SIZE, Screen, sprites};

/// Steps between two shots of the cannon.
const RELOAD: i32 = 5;
/// Steps between two shots of an alien.
const SHOT: i32 = 10;
/// The most steps between two moves of the aliens, of the first wave; each later wave has one less.
const PACE: i32 = 12;
/// The least of them.
const FASTEST: i32 = 6;
/// The aliens of a row of a wave: columns 2 to 7.
const WAVE: i32 = 0b00_1111_1100;
/// Rows of a wave.
const ROWS: usize = 4;
/// A row of pixels.
const ROW: i32 = (1 << SIZE) - 1;

/// Rows of pixels; bit x is column x.
type Map = [i32; SIZE];

/// Aliens move to the side until one is at the edge, then down and back, and faster the fewer they are. The cannon gets 1 for each that it
/// shoots. The episode ends when an alien or a bullet of the nearest one hits the cannon. After the last alien comes a faster wave.
#[derive(Clone, Debug)]
pub struct SpaceInvaders {
    x: i32,
    reload: i32,
    bullets: Map,
    enemy_bullets: Map,
    aliens: Map,
    direction: i32,
    pace: i32,
    next_move: i32,
    next_shot: i32,
}

/// The aliens of a new wave.
fn wave() -> Map {
    std::array::from_fn(|row| if row < ROWS { WAVE } else { 0 })
}

impl SpaceInvaders {
    fn is_alien(&self, x: i32, y: usize) -> bool {
        self.aliens[y] >> x & 1 != 0
    }

    /// The lowest alien of the nearest column that has one; of two, of the left one.
    fn nearest(&self) -> Option<(i32, usize)> {
        let mut columns: [i32; SIZE] = std::array::from_fn(|x| x as i32);
        columns.sort_by_key(|x| (x - self.x).abs());
        columns.into_iter().find_map(|x| Some((x, (0..SIZE).rev().find(|y| self.is_alien(x, *y))?)))
    }

    fn count(&self) -> i32 {
        self.aliens.iter().map(|row| row.count_ones() as i32).sum()
    }

    /// Moves the aliens. Returns whether one has landed.
    fn march(&mut self) -> bool {
        self.next_move = self.count().min(self.pace);
        let edge = if self.direction < 0 { 0 } else { LAST };
        if !(0..SIZE).any(|y| self.is_alien(edge, y)) {
            let rotated = |row: i32| if self.direction > 0 { row << 1 | row >> LAST } else { row >> 1 | row << LAST };
            self.aliens = self.aliens.map(|row| rotated(row) & ROW);
            return false;
        }
        self.direction = -self.direction;
        let has_landed = self.aliens[SIZE - 1] != 0;
        self.aliens.rotate_right(1);
        has_landed
    }
}

impl Game for SpaceInvaders {
    const RULES: Rules = Rules {
        name: "SpaceInvaders",
        planes: &[
            Plane { name: "cannon", colour: [120, 200, 130], sprite: sprites::CANNON },
            Plane { name: "alien", colour: [226, 92, 77], sprite: sprites::ALIEN },
            Plane { name: "alien that moves left", colour: [226, 92, 77], sprite: sprites::ALIEN },
            Plane { name: "alien that moves right", colour: [220, 120, 90], sprite: sprites::ALIEN },
            Plane { name: "bullet", colour: [240, 240, 245], sprite: sprites::SHOT },
            Plane { name: "enemy bullet", colour: [255, 209, 92], sprite: sprites::SHOT },
        ],
        moves: &[Move::Stay, Move::Left, Move::Right, Move::Fire],
    };

    fn start(_: &mut dyn Draws) -> Self {
        Self {
            x: 5,
            reload: 0,
            bullets: [0; SIZE],
            enemy_bullets: [0; SIZE],
            aliens: wave(),
            direction: -1,
            pace: PACE,
            next_move: PACE,
            next_shot: SHOT,
        }
    }

    fn act(&mut self, action: Move, _: &mut dyn Draws) -> (u32, bool) {
        if action == Move::Fire && self.reload == 0 {
            self.bullets[SIZE - 1] |= 1 << self.x;
            self.reload = RELOAD;
        }
        [self.x, _] = action.applied([self.x, LAST], LAST..=LAST);
        self.bullets.rotate_left(1);
        self.bullets[SIZE - 1] = 0;
        self.enemy_bullets.rotate_right(1);
        self.enemy_bullets[0] = 0;
        let hits = |map: &Map, x: i32| map[SIZE - 1] >> x & 1 != 0;
        let mut is_over = hits(&self.enemy_bullets, self.x) | hits(&self.aliens, self.x);
        if self.next_move == 0 {
            is_over |= self.march() | hits(&self.aliens, self.x);
        }
        if self.next_shot == 0 {
            self.next_shot = SHOT;
            if let Some((x, y)) = self.nearest() {
                self.enemy_bullets[y] |= 1 << x;
            }
        }
        let mut reward = 0;
        for (aliens, bullets) in self.aliens.iter_mut().zip(&mut self.bullets) {
            let struck = *aliens & *bullets;
            reward += struck.count_ones();
            (*aliens, *bullets) = (*aliens & !struck, *bullets & !struck);
        }
        self.reload -= i32::from(self.reload > 0);
        self.next_move -= 1;
        self.next_shot -= 1;
        if self.count() == 0 {
            self.pace = (self.pace - 1).max(FASTEST);
            self.aliens = wave();
        }
        (reward, is_over)
    }

    fn show(&self, screen: &mut Screen<'_>) {
        screen.set(self.x, LAST, 0);
        for y in 0..SIZE {
            if self.aliens[y] != 0 {
                screen.set_row(y, self.aliens[y] as u16, 1);
                screen.set_row(y, self.aliens[y] as u16, if self.direction < 0 { 2 } else { 3 });
            }
            if self.bullets[y] != 0 {
                screen.set_row(y, self.bullets[y] as u16, 4);
            }
            if self.enemy_bullets[y] != 0 {
                screen.set_row(y, self.enemy_bullets[y] as u16, 5);
            }
        }
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.x, 0..=LAST);
        each(&mut self.reload, 0..=RELOAD);
        let maps = self.bullets.iter_mut().chain(&mut self.enemy_bullets).chain(&mut self.aliens);
        maps.for_each(|row| each(row, 0..=ROW));
        each(&mut self.direction, -1..=1);
        each(&mut self.pace, FASTEST..=PACE);
        each(&mut self.next_move, -1..=PACE);
        each(&mut self.next_shot, -1..=SHOT);
    }
}
