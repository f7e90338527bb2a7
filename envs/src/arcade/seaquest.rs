//! Seaquest: rescue divers, and shoot what is in the way.

use super::{Draws, Each, Game, LAST, Move, Mover, Movers, Plane, Rules, Screen, side, sprites};

/// Steps under water with full tanks.
const OXYGEN: i32 = 200;
/// Steps between two entries of enemies at the start of an episode.
const ENTRY: i32 = 20;
/// Steps between two entries of divers.
const DIVER_ENTRY: i32 = 30;
/// Steps between two moves of enemies at the start of an episode.
const PACE: i32 = 5;
/// The fastest of them.
const FASTEST: i32 = 2;
/// Steps between two moves of divers.
const DIVER_PACE: i32 = 5;
/// Steps between two shots of the player.
const RELOAD: i32 = 5;
/// Steps between two shots of an enemy.
const SHOT: i32 = 10;
/// More than the times that a submarine comes up in an episode.
const LONG: i32 = 1_000_000;
/// The most divers on board.
const PLACES: i32 = 6;
/// The most things of a kind at once. At most one enters in a step, and the slowest have left the screen after sixty; when one enters in every
/// step, enemies leave it after thirty.
const MOST: usize = 64;

/// A submarine shoots fish and enemy submarines, 1 for each, and picks up divers. It must come up with a diver before its oxygen is used up:
/// with six, each tenth of the oxygen that is left is worth 1 and all go ashore, with fewer one does. Each time enemies become more frequent, and every
/// second time faster. The episode ends when an enemy or its bullet hits the submarine, or when it comes up without a diver.
#[derive(Clone, Debug)]
pub struct Seaquest {
    x: i32,
    y: i32,
    direction: i32,
    oxygen: i32,
    divers_on_board: i32,
    is_up: i32,
    reload: i32,
    bullets: Movers<MOST>,
    enemy_bullets: Movers<MOST>,
    fish: Movers<MOST>,
    submarines: Movers<MOST>,
    divers: Movers<MOST>,
    entry: i32,
    next_entry: i32,
    next_diver: i32,
    pace: i32,
    rises: i32,
}

impl Seaquest {
    fn enemy_enters(&mut self, draws: &mut dyn Draws) {
        let direction = if draws.unit() < 0.5 { 1 } else { -1 };
        let shoots = draws.unit() < 1.0 / 3.0;
        let y = 1 + draws.below(8) as i32;
        // two that swim towards each other in a row would meet
        if self.submarines.iter().chain(self.fish.iter()).any(|other| other.y == y && other.direction != direction) {
            return;
        }
        let enemy = Mover { x: side(direction), y, direction, timer: self.pace, other: SHOT };
        if shoots { self.submarines.push(enemy) } else { self.fish.push(enemy) }
    }

    fn diver_enters(&mut self, draws: &mut dyn Draws) {
        let direction = if draws.unit() < 0.5 { 1 } else { -1 };
        let y = 1 + draws.below(8) as i32;
        self.divers.push(Mover { x: side(direction), y, direction, timer: DIVER_PACE, other: 0 });
    }

    /// Moves the player's bullets; returns how many enemies they strike.
    fn move_bullets(&mut self) -> u32 {
        let mut struck = 0;
        for i in (0..self.bullets.len).rev() {
            let bullet = &mut self.bullets.all[i];
            bullet.x += bullet.direction;
            let Mover { x, y, .. } = *bullet;
            if !bullet.is_inside() {
                self.bullets.remove(i);
            } else if self.fish.take(x, y) || self.submarines.take(x, y) {
                self.bullets.remove(i);
                struck += 1;
            }
        }
        struck
    }

    fn move_divers(&mut self) {
        for i in (0..self.divers.len).rev() {
            let has_room = self.divers_on_board < PLACES;
            let diver = &mut self.divers.all[i];
            let mut comes = diver.is_at(self.x, self.y) && has_room;
            let mut leaves = false;
            if !comes && diver.timer == 0 {
                diver.timer = DIVER_PACE;
                diver.x += diver.direction;
                leaves = !diver.is_inside();
                comes = diver.is_at(self.x, self.y) && has_room;
            } else if !comes {
                diver.timer -= 1;
            }
            self.divers_on_board += i32::from(comes);
            if comes || leaves {
                self.divers.remove(i);
            }
        }
    }

    /// Moves the fish, or the enemy submarines; returns how many swim into a bullet, and whether one hits the player.
    fn move_enemies(&mut self, shoot: bool) -> (u32, bool) {
        let (mut struck, mut hits) = (0, false);
        let Self { x, y, pace, bullets, enemy_bullets, .. } = self;
        let enemies = if shoot { &mut self.submarines } else { &mut self.fish };
        for i in (0..enemies.len).rev() {
            let enemy = &mut enemies.all[i];
            hits |= enemy.is_at(*x, *y);
            let mut is_gone = false;
            if enemy.timer == 0 {
                enemy.timer = *pace;
                enemy.x += enemy.direction;
                if !enemy.is_inside() {
                    is_gone = true;
                } else if enemy.is_at(*x, *y) {
                    hits = true;
                } else if bullets.take(enemy.x, enemy.y) {
                    is_gone = true;
                    struck += 1;
                }
            } else {
                enemy.timer -= 1;
            }
            if shoot && enemy.other == 0 {
                enemy.other = SHOT;
                enemy_bullets.push(Mover { timer: 0, other: 0, ..*enemy });
            } else if shoot {
                enemy.other -= 1;
            }
            if is_gone {
                enemies.remove(i);
            }
        }
        (struck, hits)
    }

    /// Moves the enemies' bullets; returns whether one hits the player.
    fn move_enemy_bullets(&mut self) -> bool {
        let mut hits = false;
        for i in (0..self.enemy_bullets.len).rev() {
            let bullet = &mut self.enemy_bullets.all[i];
            hits |= bullet.is_at(self.x, self.y);
            bullet.x += bullet.direction;
            hits |= bullet.is_at(self.x, self.y);
            if !bullet.is_inside() {
                self.enemy_bullets.remove(i);
            }
        }
        hits
    }

    /// The submarine comes up with a diver. Returns the reward.
    fn come_up(&mut self) -> u32 {
        self.is_up = 1;
        let mut reward = 0;
        if self.divers_on_board == PLACES {
            self.divers_on_board = 0;
            reward = (self.oxygen * 10 / OXYGEN).max(0) as u32;
        }
        // as in the package also after all six have gone ashore, so that the next one to be picked up is not counted
        self.divers_on_board -= 1;
        self.oxygen = OXYGEN;
        if self.entry > 1 || self.pace > FASTEST {
            if self.pace > FASTEST && self.rises % 2 == 1 {
                self.pace -= 1;
            }
            self.entry = (self.entry - 1).max(1);
            self.rises += 1;
        }
        reward
    }
}

impl Game for Seaquest {
    const RULES: Rules = Rules {
        name: "Seaquest",
        planes: &[
            Plane { name: "front", colour: [255, 209, 92], sprite: sprites::FRONT },
            Plane { name: "back", colour: [200, 160, 70], sprite: sprites::BACK },
            Plane { name: "bullet", colour: [240, 240, 245], sprite: sprites::BULLET },
            Plane { name: "trail", colour: [56, 66, 92], sprite: sprites::TRAIL },
            Plane { name: "enemy bullet", colour: [250, 150, 120], sprite: sprites::BULLET },
            Plane { name: "fish", colour: [120, 200, 130], sprite: sprites::FISH },
            Plane { name: "enemy submarine", colour: [226, 92, 77], sprite: sprites::SUBMARINE },
            Plane { name: "oxygen", colour: [110, 170, 230], sprite: sprites::GAUGE },
            Plane { name: "diver on board", colour: [200, 140, 220], sprite: sprites::DIVER },
            Plane { name: "diver", colour: [200, 140, 220], sprite: sprites::DIVER },
        ],
        moves: &[Move::Stay, Move::Left, Move::Up, Move::Right, Move::Down, Move::Fire],
    };

    fn start(_: &mut dyn Draws) -> Self {
        Self {
            x: 5,
            y: 0,
            direction: -1,
            oxygen: OXYGEN,
            divers_on_board: 0,
            is_up: 1,
            reload: 0,
            bullets: Movers::new(),
            enemy_bullets: Movers::new(),
            fish: Movers::new(),
            submarines: Movers::new(),
            divers: Movers::new(),
            entry: ENTRY,
            next_entry: ENTRY,
            next_diver: DIVER_ENTRY,
            pace: PACE,
            rises: 0,
        }
    }

    fn act(&mut self, action: Move, draws: &mut dyn Draws) -> (u32, bool) {
        if self.next_entry == 0 {
            self.enemy_enters(draws);
            self.next_entry = self.entry;
        }
        if self.next_diver == 0 {
            self.diver_enters(draws);
            self.next_diver = DIVER_ENTRY;
        }
        match action {
            Move::Fire if self.reload == 0 => {
                self.bullets.push(Mover { x: self.x, y: self.y, direction: self.direction, timer: 0, other: 0 });
                self.reload = RELOAD;
            }
            Move::Left => self.direction = -1,
            Move::Right => self.direction = 1,
            _ => {}
        }
        [self.x, self.y] = action.applied([self.x, self.y], 0..=LAST - 1);
        let mut reward = self.move_bullets();
        self.move_divers();
        let (struck, hit_by_submarine) = self.move_enemies(true);
        let hit_by_bullet = self.move_enemy_bullets();
        let (more, hit_by_fish) = self.move_enemies(false);
        reward += struck + more;
        let mut is_over = hit_by_submarine | hit_by_bullet | hit_by_fish;
        for timer in [&mut self.next_entry, &mut self.next_diver, &mut self.reload] {
            *timer -= i32::from(*timer > 0);
        }
        // as in the package also if it comes up in this step
        is_over |= self.oxygen <= 0;
        if self.y > 0 {
            self.oxygen -= 1;
            self.is_up = 0;
        } else if self.is_up == 0 {
            if self.divers_on_board == 0 {
                is_over = true;
            } else {
                reward += self.come_up();
            }
        }
        (reward, is_over)
    }

    fn show(&self, screen: &mut Screen<'_>) {
        screen.set(self.x, self.y, 0);
        screen.set(self.x - self.direction, self.y, 1);
        (0..self.oxygen * 10 / OXYGEN).for_each(|x| screen.set(x, LAST, 7));
        (LAST - self.divers_on_board..LAST).for_each(|x| screen.set(x, LAST, 8));
        self.bullets.iter().for_each(|own| screen.set(own.x, own.y, 2));
        self.enemy_bullets.iter().for_each(|own| screen.set(own.x, own.y, 4));
        for (plane, all) in [(5, &self.fish), (6, &self.submarines), (9, &self.divers)] {
            for own in all.iter() {
                screen.set(own.x, own.y, plane);
                screen.set(own.behind(), own.y, 3);
            }
        }
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.x, 0..=LAST);
        each(&mut self.y, 0..=LAST);
        each(&mut self.direction, -1..=1);
        each(&mut self.oxygen, -1..=OXYGEN);
        each(&mut self.divers_on_board, -LONG..=PLACES);
        each(&mut self.is_up, 0..=1);
        each(&mut self.reload, 0..=RELOAD);
        let all = [&mut self.bullets, &mut self.enemy_bullets, &mut self.fish, &mut self.submarines, &mut self.divers];
        all.into_iter().for_each(|some| some.visit(&mut *each));
        each(&mut self.entry, 1..=ENTRY);
        each(&mut self.next_entry, 0..=ENTRY);
        each(&mut self.next_diver, 0..=DIVER_ENTRY);
        each(&mut self.pace, FASTEST..=PACE);
        each(&mut self.rises, 0..=i32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use gradus_base::random::{Purpose, Stream};

    use super::*;

    /// What the package says of a submarine with two divers (version 1.0.15): oxygen and depth before a step, the action, whether the step ends the episode, and oxygen
    /// and divers after it.
    #[test]
    fn the_last_breath_is_that_of_the_package() {
        for (oxygen, y, action, is_over, left, divers) in [
            (2, 1, Move::Stay, false, 1, 2),
            (1, 1, Move::Stay, false, 0, 2),
            (1, 1, Move::Up, false, OXYGEN, 1),
            (1, 2, Move::Up, false, 0, 2),
            (0, 0, Move::Stay, true, 0, 2),
            (0, 1, Move::Stay, true, -1, 2),
            (0, 1, Move::Up, true, OXYGEN, 1),
            (0, 2, Move::Up, true, -1, 2),
        ] {
            let draws = &mut Stream::new(1, Purpose::Environment, 0);
            let mut game = Seaquest { oxygen, y, divers_on_board: 2, is_up: i32::from(y == 0), ..Seaquest::start(draws) };
            let (_, ends) = game.act(action, draws);
            assert_eq!((ends, game.oxygen, game.divers_on_board), (is_over, left, divers), "oxygen {oxygen}, depth {y}");
        }
    }
}
