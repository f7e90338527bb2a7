//! Pictures of what a network sees: a frame, and beside it what the filters of the first convolutional layer answer to.

use std::sync::Arc;

use gradus_envs::{Picture, Scene, Shape};
use gradus_nets::{Behaviour, FeatureMaps};

use crate::evaluate::play::Played;

/// The colour between maps.
const BETWEEN: [u8; 3] = [255, 255, 255];
/// Pixels between maps.
const GAP: usize = 3;

/// Puts the feature maps of the policy beside the frames of an episode. A map is dark where its filter does not answer, and bright where it answers most
/// in the whole episode. Returns what was expected, and what was there, if this cannot be done.
pub fn show_features(policy: &mut dyn Behaviour, played: &mut Played) -> Result<(), (&'static str, &'static str)> {
    let needed = ("a policy that sees images through convolutional layers (network.trunk), on the device cpu", "another policy");
    let mut maps_of = |observation: &[f32]| policy.feature_maps(observation).pop();
    // of each filter the largest answer of the episode
    let mut largest: Vec<f32> = Vec::new();
    for observation in &played.observations {
        let all = maps_of(observation).ok_or(needed)?;
        largest.resize(all.maps.len(), f32::MIN_POSITIVE);
        largest.iter_mut().zip(&all.maps).for_each(|(largest, map)| *largest = map.iter().copied().fold(*largest, f32::max));
    }
    let last = played.observations.len().saturating_sub(1);
    for frame in &mut played.frames {
        let [Shape::Picture(picture)] = &frame.scene.shapes[..] else {
            return Err(("an environment that is drawn as one picture", "another drawing"));
        };
        // the last frame is that of the end, before which the policy saw nothing new
        let observation = played.observations.get(frame.step.min(last)).ok_or(needed)?;
        let maps = maps_of(observation).ok_or(needed)?;
        frame.scene = beside(picture, &maps, &largest);
    }
    Ok(())
}

/// Puts maps beside a picture, in a square of about its height.
fn beside(picture: &Arc<Picture>, FeatureMaps { height, width, maps }: &FeatureMaps, largest: &[f32]) -> Scene {
    let columns = (1..=maps.len()).find(|columns| columns * columns >= maps.len()).unwrap_or(1);
    // a map is at most one row's share of the height, and each of its numbers a square of pixels
    let scale = ((picture.height.div_ceil(columns).saturating_sub(GAP)) / (*height).max(*width).max(1)).max(1);
    let (across, down) = (width * scale + GAP, height * scale + GAP);
    let rows = maps.len().div_ceil(columns);
    let (all_width, all_height) = (picture.width + columns * across, picture.height.max(rows * down));
    let mut rgb = BETWEEN.repeat(all_width * all_height);
    let mut put = |x: usize, y: usize, colour: [u8; 3]| rgb[3 * (y * all_width + x)..][..3].copy_from_slice(&colour);
    for y in 0..picture.height {
        (0..picture.width).for_each(|x| put(x, y, picture.colour(x, y)));
    }
    for (k, map) in maps.iter().enumerate() {
        let (left, top) = (picture.width + k % columns * across + GAP, k / columns * down);
        for (y, x) in (0..height * scale).flat_map(|y| (0..width * scale).map(move |x| (y, x))) {
            let answer = (map[y / scale * width + x / scale] / largest[k]).clamp(0.0, 1.0);
            // from night to yellow
            let colour =
                [(24.0, 255.0), (27.0, 214.0), (38.0, 90.0)].map(|(dark, bright): (f32, f32)| (dark + (bright - dark) * answer) as u8);
            put(left + x, top + y, colour);
        }
    }
    Picture { width: all_width, height: all_height, rgb }.into_scene()
}
