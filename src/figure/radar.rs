//! Radar charts: several scores of several agents, a spoke for each score.

use gradus_drawing::fonts;
use plotters::style::text_anchor::HPos;

use super::brush::Brush;
use super::frame::{Margins, Rect};
use super::lines::Series;
use super::style::{GRID, Look, QUIET, SLACK, TEXT, TICK_EM};

/// Closed lines around a centre, which cross a spoke for each score. The first spoke points upwards, and the others follow clockwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Radar {
    /// Names of the spokes.
    pub spokes: Vec<String>,
    /// The lines. A point is the number of a spoke, from 0, and the score, from 0 in the centre to 1 at the rim; other scores are drawn at the nearer of the two.
    pub series: Vec<Series>,
}

/// Height in parts of the width.
const ASPECT: f64 = 0.84;

impl Radar {
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        self.series.iter().flat_map(|series| series.points.iter().map(|(spoke, score)| (series.label.as_str(), *spoke, *score)))
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        ASPECT * width
    }

    pub(super) fn margins(&self) -> Margins {
        Margins { left: 4.0, right: 4.0, below: 4.0 }
    }

    pub(super) fn draw(&self, rect: Rect, looks: &[Look], brush: &mut impl Brush) -> Result<(), String> {
        let turn = |spoke: f64| std::f64::consts::TAU * spoke / self.spokes.len().max(1) as f64;
        let centre = [(rect.left + rect.right) / 2.0, (rect.top + rect.bottom) / 2.0];
        // names stand outside the rim, in two lines where they have two words
        let (above, gap) = (2.4 * TICK_EM, 8.0);
        let beside = |name: &String| name.split(' ').map(|word| SLACK * fonts::width(word, TICK_EM)).fold(0.0, f64::max);
        let room = |(spoke, name): (usize, &String)| {
            let sideways = turn(spoke as f64).sin().abs();
            if sideways < 0.1 { f64::INFINITY } else { (rect.width() / 2.0 - beside(name) - gap) / sideways }
        };
        let radius = self.spokes.iter().enumerate().map(room).fold((rect.bottom - rect.top) / 2.0 - above, f64::min).max(20.0);
        let at = |spoke: f64, part: f64| {
            let (part, turn) = (radius * part.clamp(0.0, 1.0), turn(spoke));
            [centre[0] + part * turn.sin(), centre[1] - part * turn.cos()]
        };
        for ring in [0.25, 0.5, 0.75, 1.0] {
            let circle: Vec<[f64; 2]> = (0..=120).map(|part| at(self.spokes.len() as f64 * f64::from(part) / 120.0, ring)).collect();
            brush.line(&circle, 1.0, GRID)?;
        }
        for spoke in 0..self.spokes.len() {
            brush.line(&[centre, at(spoke as f64, 1.0)], 1.0, GRID)?;
        }
        for (series, look) in self.series.iter().zip(looks) {
            let mut corners: Vec<[f64; 2]> = series.points.iter().map(|(spoke, score)| at(*spoke, *score)).collect();
            brush.area(&corners, look.colour, 0.08)?;
            corners.extend(corners.first().copied());
            brush.curve(&corners, 2.5, *look)?;
        }
        // over the lines, between two spokes
        for ring in [0.5, 1.0] {
            let [x, y] = at(0.5, ring);
            brush.write(format!("{ring}"), 0.85 * TICK_EM, [x, y + 0.3 * TICK_EM], HPos::Center, QUIET)?;
        }
        for (spoke, name) in self.spokes.iter().enumerate() {
            let (turn, words) = (turn(spoke as f64), name.split(' ').collect::<Vec<_>>());
            let anchor = match turn.sin() {
                side if side.abs() < 0.1 => HPos::Center,
                side if side > 0.0 => HPos::Left,
                _ => HPos::Right,
            };
            let height = 1.15 * TICK_EM * words.len() as f64;
            let edge = [centre[0] + (radius + gap) * turn.sin(), centre[1] - (radius + gap) * turn.cos()];
            // the middle of the text lies further out at the top and the bottom
            let top = edge[1] - height / 2.0 - turn.cos() * height / 2.0;
            for (line, word) in words.into_iter().enumerate() {
                brush.write(word, TICK_EM, [edge[0], top + (line as f64 + 0.85) * 1.15 * TICK_EM], anchor, TEXT)?;
            }
        }
        Ok(())
    }
}
