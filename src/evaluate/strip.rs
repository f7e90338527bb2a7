//! Pictures of what a policy remembers: under each frame a bar for each unit of its recurrent cell.

use gradus_envs::{Ink, Scene, Shape};

use crate::evaluate::play::Played;

/// Height of the strip, as a share of the scene's.
const SHARE: f64 = 0.2;
/// Width of a bar, as a share of its place.
const BAR: f64 = 0.8;

/// Draws under each frame of an episode what the policy remembered at that step: for each of the first `units` numbers of its memory, which are h
/// of the actor's cell, a bar upwards from the middle for a positive one and downwards for a negative one. A bar of 1, the most that h can be,
/// ends at the edge of the strip. Changes nothing if the policy has no memory.
pub fn show_memory(played: &mut Played, units: usize) {
    let Played { frames, memories, .. } = played;
    if units == 0 || memories.is_empty() || memories.iter().any(|memory| memory.len() < units) {
        return;
    }
    // before the first step nothing is remembered
    let nothing = vec![0.0; units];
    for (frame, memory) in frames.iter_mut().zip(std::iter::once(&nothing).chain(memories.iter())) {
        add_strip(&mut frame.scene, &memory[..units]);
    }
}

fn add_strip(scene: &mut Scene, numbers: &[f32]) {
    let ([left, right], [bottom, top]) = (scene.x, scene.y);
    let (height, place) = (SHARE * (top - bottom), (right - left) / numbers.len() as f64);
    // a gap of a tenth of the strip separates it from the scene
    let middle = bottom - 0.6 * height;
    scene.y[0] = middle - 0.55 * height;
    let width = 0.02 * height;
    scene.shapes.push(Shape::Line { from: [left, middle], to: [right, middle], width, ink: Ink::Ground });
    for (k, number) in numbers.iter().enumerate() {
        let begin = left + (k as f64 + (1.0 - BAR) / 2.0) * place;
        let end = middle + f64::from(number.clamp(-1.0, 1.0)) * height / 2.0;
        let corners = vec![[begin, middle], [begin + BAR * place, middle], [begin + BAR * place, end], [begin, end]];
        scene.shapes.push(Shape::Polygon { corners, ink: if *number > 0.0 { Ink::Body } else { Ink::Goal } });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Frame;

    #[test]
    fn bars_are_under_the_scene_and_as_high_as_the_numbers() {
        let scene = Scene { x: [0.0, 10.0], y: [0.0, 5.0], shapes: Vec::new() };
        let frame = |step| Frame { scene: scene.clone(), step, return_so_far: 0.0 };
        let memories = vec![vec![0.5, -1.0, 9.0]];
        let mut played = Played { frames: vec![frame(0), frame(1)], memories, ..Played::default() };
        show_memory(&mut played, 2);
        let bars = |frame: &Frame| -> Vec<([f64; 2], Ink)> {
            let bar = |shape: &Shape| match shape {
                Shape::Polygon { corners, ink } => Some(([corners[0][1], corners[2][1]], *ink)),
                _ => None,
            };
            frame.scene.shapes.iter().filter_map(bar).collect()
        };
        assert_eq!(bars(&played.frames[0]), [([-0.6, -0.6], Ink::Goal); 2]);
        assert_eq!(bars(&played.frames[1]), [([-0.6, -0.35], Ink::Body), ([-0.6, -1.1], Ink::Goal)]);
        assert!(played.frames[1].scene.y[0] < -1.1);
    }
}
