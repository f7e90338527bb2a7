//! Learning curves of run folders.

use std::io::{self, Write};
use std::path::Path;

use super::logs::read_episodes;
use crate::Error;
use crate::figure::{self, Chart, Curve, LearningCurves, Lines};
use crate::saved::read_config;

/// Draws the learning curves of run folders into the given files. Where a return cannot be drawn, because it is infinite or too large, the
/// curve has a gap, and a warning is printed.
pub fn plot<D: AsRef<Path>, F: AsRef<Path>>(dirs: &[D], files: &[F]) -> Result<(), Error> {
    let mut curves = Vec::new();
    let mut worlds = Vec::new();
    let mut planned = 0;
    for dir in dirs {
        let config = read_config(dir.as_ref())?;
        let name = dir.as_ref().file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let label = if dirs.len() == 1 { format!("{}, seed {}", config.agent, config.seed) } else { name };
        planned = planned.max(config.steps);
        curves.push(Curve::new(label, read_episodes(dir.as_ref())?));
        if !worlds.contains(&config.environment) {
            worlds.push(config.environment);
        }
    }
    let threshold = match worlds.as_slice() {
        [world] => gradus_envs::registry::find(world).ok().and_then(|world| world.solved_at),
        _ => None,
    };
    let title = |name: &String| gradus_envs::registry::find(name).map_or(name.clone(), |world| world.title());
    let title = worlds.iter().map(title).collect::<Vec<_>>().join(", ");
    for (dir, curve) in dirs.iter().zip(&mut curves) {
        let gaps = curve.make_gaps();
        if gaps > 0 {
            let what = format!("{gaps} of {} episodes have a return that cannot be drawn", curve.episodes.len());
            let _ = writeln!(io::stderr(), "warning: {}: {what}; the learning curve has gaps there", dir.as_ref().display());
        }
    }
    let mut figure = LearningCurves { title, curves: &curves, threshold }.figure();
    let is_text = |name: &String| gradus_envs::registry::find(name).is_ok_and(|world| world.text.is_some());
    if worlds.iter().all(is_text) {
        figure.panels.iter_mut().for_each(|panel| {
            if let Chart::Lines(lines) = &mut panel.chart {
                lines.x_label = "generated tokens".into();
            }
        });
    }
    for panel in &mut figure.panels {
        if let Chart::Lines(Lines { x_range: Some((_, last)), .. }) = &mut panel.chart {
            *last = reach(*last, planned as f64);
        }
    }
    for file in files {
        figure::write(&figure, file.as_ref())?;
    }
    Ok(())
}

/// Returns the end of an axis of steps: the `planned` steps if the last point is just before them.
pub fn reach(last: f64, planned: f64) -> f64 {
    if last < planned && last > 0.9 * planned { planned } else { last }
}
