//! Freeway: cross the road.

use super::{Draws, Each, Game, LAST, Move, Plane, Rules, Screen, sprites};

const LANES: usize = 8;
/// The column of the chicken.
const COLUMN: i32 = 4;
/// Steps between two moves of the chicken.
const PACE: i32 = 3;
/// Steps of an episode but for the last one.
const STEPS: i32 = 2500;
/// The slowest car moves every fifth step.
const SLOWEST: u32 = 5;

#[derive(Clone, Copy, Debug, Default)]
struct Car {
    x: i32,
    /// Steps until it moves.
    timer: i32,
    /// Steps between two moves, and the direction: below 0 to the left.
    speed: i32,
}

/// A chicken crosses eight lanes of cars: 1 for each crossing, after which all cars get new speeds and directions. A car that hits the chicken sends it back. The
/// episode ends after 2501 steps, as in the package.
#[derive(Clone, Debug)]
pub struct Freeway {
    y: i32,
    cars: [Car; LANES],
    /// Steps until the chicken can move.
    rest: i32,
    left: i32,
}

impl Freeway {
    /// Draws the speeds and directions of all cars.
    fn hurry(&mut self, draws: &mut dyn Draws) {
        let speeds: [i32; LANES] = std::array::from_fn(|_| 1 + draws.below(SLOWEST) as i32);
        for (car, speed) in self.cars.iter_mut().zip(speeds) {
            *car = Car { x: car.x, timer: speed, speed: if draws.unit() < 0.5 { -speed } else { speed } };
        }
    }
}

impl Game for Freeway {
    const RULES: Rules = Rules {
        name: "Freeway",
        planes: &[
            Plane { name: "chicken", colour: [255, 209, 92], sprite: sprites::CHICKEN },
            Plane { name: "car", colour: [226, 92, 77], sprite: sprites::CAR },
            Plane { name: "trail of a car that moves every step", colour: [104, 70, 80], sprite: sprites::WIND },
            Plane { name: "trail of a car that moves every second step", colour: [92, 64, 76], sprite: sprites::WIND },
            Plane { name: "trail of a car that moves every third step", colour: [80, 58, 72], sprite: sprites::WIND },
            Plane { name: "trail of a car that moves every fourth step", colour: [68, 52, 66], sprite: sprites::WIND },
            Plane { name: "trail of a car that moves every fifth step", colour: [56, 46, 60], sprite: sprites::WIND },
        ],
        moves: &[Move::Stay, Move::Up, Move::Down],
    };

    fn start(draws: &mut dyn Draws) -> Self {
        let mut game = Self { y: LAST, cars: [Car::default(); LANES], rest: PACE, left: STEPS };
        game.hurry(draws);
        game
    }

    fn act(&mut self, action: Move, draws: &mut dyn Draws) -> (u32, bool) {
        if self.rest == 0 && matches!(action, Move::Up | Move::Down) {
            self.rest = PACE;
            self.y = if action == Move::Up { (self.y - 1).max(0) } else { (self.y + 1).min(LAST) };
        }
        let mut reward = 0;
        if self.y == 0 {
            reward = 1;
            self.hurry(draws);
            self.y = LAST;
        }
        for (lane, car) in (1..).zip(&mut self.cars) {
            let hits = |car: &Car, y: i32| (car.x, lane) == (COLUMN, y);
            if hits(car, self.y) {
                self.y = LAST;
            }
            if car.timer > 0 {
                car.timer -= 1;
                continue;
            }
            car.timer = car.speed.abs();
            car.x = (car.x + car.speed.signum()).rem_euclid(LAST + 1);
            if hits(car, self.y) {
                self.y = LAST;
            }
        }
        self.rest -= i32::from(self.rest > 0);
        self.left -= 1;
        (reward, self.left < 0)
    }

    fn show(&self, screen: &mut Screen<'_>) {
        screen.set(COLUMN, self.y, 0);
        for (lane, car) in (1..).zip(&self.cars) {
            screen.set(car.x, lane, 1);
            screen.set((car.x - car.speed.signum()).rem_euclid(LAST + 1), lane, 1 + car.speed.unsigned_abs() as usize);
        }
    }

    fn visit(&mut self, each: Each<'_>) {
        each(&mut self.y, 0..=LAST);
        for Car { x, timer, speed } in &mut self.cars {
            each(x, 0..=LAST);
            each(timer, 0..=SLOWEST as i32);
            each(speed, -(SLOWEST as i32)..=SLOWEST as i32);
        }
        each(&mut self.rest, 0..=PACE);
        each(&mut self.left, 0..=STEPS);
    }
}
