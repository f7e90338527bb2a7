//! Pictures of the problems: parts that several of them have.

use crate::scene::{Ink, Scene, Shape};

/// Marks along a line, at most.
const MOST_MARKS: i32 = 60;

/// A square field with the centre `at`.
pub(super) fn field(at: [f64; 2], side: f64, ink: Ink) -> Shape {
    bar(at, side, side, ink)
}

/// An upright rectangle with the centre `at`.
pub(super) fn bar([x, y]: [f64; 2], width: f64, height: f64, ink: Ink) -> Shape {
    let (right, up) = (width / 2.0, height / 2.0);
    Shape::Polygon { corners: vec![[x - right, y - up], [x + right, y - up], [x + right, y + up], [x - right, y + up]], ink }
}

/// A triangle around `at` that points up, or down.
pub(super) fn triangle([x, y]: [f64; 2], size: f64, is_up: bool, ink: Ink) -> Shape {
    let up = if is_up { size } else { -size };
    Shape::Polygon { corners: vec![[x - size, y - 0.6 * up], [x + size, y - 0.6 * up], [x, y + up]], ink }
}

pub(super) fn disc(centre: [f64; 2], radius: f64, ink: Ink) -> Shape {
    Shape::Disc { centre, radius, ink }
}

/// A time line from 0 to 1 at this height, with a mark for each step if they are few, and the walker at its step.
pub(super) fn time_line(y: f64, steps: i32, now: i32) -> Vec<Shape> {
    let at = |step: i32| [f64::from(step.clamp(0, steps)) / f64::from(steps.max(1)), y];
    let mut shapes = vec![Shape::Line { from: at(0), to: at(steps), width: 0.01, ink: Ink::Ground }];
    if steps <= MOST_MARKS {
        shapes.extend((0..=steps).map(|step| disc(at(step), 0.008, Ink::Joint)));
    }
    shapes.push(disc(at(now), 0.025, Ink::Body));
    shapes
}

/// A scene of 0 to 1 with air around it.
pub(super) fn unit(top: f64, shapes: Vec<Shape>) -> Scene {
    Scene { x: [-0.12, 1.12], y: [-0.08, top], shapes }
}
