//! Rasterisation: the position of a scene's shapes in the picture, and how much of each pixel they cover.

use gradus_envs::{Picture, Scene, Shape};

/// A shape in pixel coordinates; y points downwards.
#[derive(Clone, Debug)]
pub(crate) enum Outline {
    /// All points closer than `half` to the segment from `from` to `to`.
    Stroke { from: [f64; 2], to: [f64; 2], half: f64 },
    /// A convex polygon. Its corners are in clockwise order on the screen.
    Convex(Vec<[f64; 2]>),
    /// A circle.
    Disc { centre: [f64; 2], radius: f64 },
}

impl Outline {
    /// Returns the signed distance from `point` to the outline, negative inside. Outside a corner of a polygon, the result is less
    /// than the distance: it is the greatest distance to the line of an edge.
    pub(crate) fn distance(&self, point: [f64; 2]) -> f64 {
        match self {
            Outline::Stroke { from, to, half } => {
                let (along, off) = ([to[0] - from[0], to[1] - from[1]], [point[0] - from[0], point[1] - from[1]]);
                let square = along[0] * along[0] + along[1] * along[1];
                let part = if square > 0.0 { ((off[0] * along[0] + off[1] * along[1]) / square).clamp(0.0, 1.0) } else { 0.0 };
                (off[0] - part * along[0]).hypot(off[1] - part * along[1]) - half
            }
            Outline::Convex(corners) => {
                let edges = corners.iter().zip(corners.iter().cycle().skip(1));
                let beyond = edges.filter(|(a, b)| a != b).map(|(a, b)| {
                    let edge = [b[0] - a[0], b[1] - a[1]];
                    ((point[0] - a[0]) * edge[1] - (point[1] - a[1]) * edge[0]) / edge[0].hypot(edge[1])
                });
                beyond.reduce(f64::max).unwrap_or(f64::INFINITY)
            }
            Outline::Disc { centre, radius } => (point[0] - centre[0]).hypot(point[1] - centre[1]) - radius,
        }
    }

    /// Returns the bounding rectangle: left, top, right, bottom.
    fn bounds(&self) -> [f64; 4] {
        let (points, margin): (&[[f64; 2]], f64) = match self {
            Outline::Stroke { from, to, half } => (&[*from, *to], *half),
            Outline::Convex(corners) => (corners, 0.0),
            Outline::Disc { centre, radius } => (&[*centre], *radius),
        };
        points.iter().fold([f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY], |[left, top, right, bottom], [x, y]| {
            [left.min(x - margin), top.min(y - margin), right.max(x + margin), bottom.max(y + margin)]
        })
    }

    /// Calls `visit` for every pixel that the shape may touch, row by row: with its column, its row and the signed distance of its centre.
    pub(crate) fn visit(&self, [width, height]: [usize; 2], mut visit: impl FnMut(usize, usize, f64)) {
        let [left, top, right, bottom] = self.bounds();
        // conversion to usize saturates, so a shape far outside gives an empty range
        let (columns, rows) =
            ((left - 1.0) as usize..width.min((right + 2.0) as usize), (top - 1.0) as usize..height.min((bottom + 2.0) as usize));
        for row in rows {
            for column in columns.clone() {
                visit(column, row, self.distance([column as f64 + 0.5, row as f64 + 0.5]));
            }
        }
    }
}

/// Approximates the fraction of a pixel that is covered, from the signed distance of its centre to the outline.
pub(crate) fn coverage(distance: f64) -> f64 {
    (0.5 - distance).clamp(0.0, 1.0)
}

/// The position of a scene's rectangle in a picture: as large as fits, centred, without distortion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Pixels per unit of the scene.
    pub(crate) scale: f64,
    /// Pixel coordinates of the scene's origin.
    origin: [f64; 2],
}

impl View {
    /// Fits `scene` into a picture of this width and height. Returns `None` if the scene's rectangle is empty or not finite.
    pub(crate) fn fit(scene: &Scene, [width, height]: [f64; 2]) -> Option<View> {
        let (across, up) = (scene.x[1] - scene.x[0], scene.y[1] - scene.y[0]);
        let scale = (width / across).min(height / up);
        let usable = across > 0.0 && up > 0.0 && scale > 0.0 && scale.is_finite();
        let middle = [(scene.x[0] + scene.x[1]) / 2.0, (scene.y[0] + scene.y[1]) / 2.0];
        usable.then(|| View { scale, origin: [width / 2.0 - scale * middle[0], height / 2.0 + scale * middle[1]] })
    }

    fn place(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [self.origin[0] + self.scale * x, self.origin[1] - self.scale * y]
    }

    /// Calls `visit` for every pixel that the scene's rectangle covers, with its column, its row and the pixel of `picture` that lies there.
    pub(crate) fn visit_picture(&self, picture: &Picture, [width, height]: [usize; 2], mut visit: impl FnMut(usize, usize, [usize; 2])) {
        let [left, top] = self.place([0.0, picture.height as f64]);
        let at = |pixel: usize, start: f64, most: usize| {
            let place = (pixel as f64 + 0.5 - start) / self.scale;
            (place >= 0.0 && place < most as f64).then_some(place as usize)
        };
        for row in 0..height {
            let Some(from_row) = at(row, top, picture.height) else { continue };
            for column in 0..width {
                if let Some(from_column) = at(column, left, picture.width) {
                    visit(column, row, [from_column, from_row]);
                }
            }
        }
    }

    /// Returns the shape in pixels. Lines are at least `thinnest` pixels wide, so that none disappears.
    pub(crate) fn outline(&self, shape: &Shape, thinnest: f64) -> Outline {
        match shape {
            Shape::Line { from, to, width, .. } => {
                Outline::Stroke { from: self.place(*from), to: self.place(*to), half: (self.scale * width).max(thinnest) / 2.0 }
            }
            Shape::Polygon { corners, .. } => {
                let mut corners: Vec<_> = corners.iter().map(|corner| self.place(*corner)).collect();
                let turns = corners.iter().zip(corners.iter().cycle().skip(1)).map(|(a, b)| a[0] * b[1] - a[1] * b[0]);
                if turns.sum::<f64>() < 0.0 {
                    corners.reverse();
                }
                Outline::Convex(corners)
            }
            Shape::Disc { centre, radius, .. } => Outline::Disc { centre: self.place(*centre), radius: self.scale * radius },
            Shape::Picture(_) => Outline::Convex(Vec::new()), // it has no outline
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_envs::Ink;

    fn area(outline: &Outline) -> f64 {
        let mut area = 0.0;
        outline.visit([100, 100], |_, _, distance| area += coverage(distance));
        area
    }

    #[test]
    fn covered_areas_match_geometry() {
        for radius in [3.0, 10.0, 30.0] {
            let disc = Outline::Disc { centre: [50.2, 49.7], radius };
            let exact = std::f64::consts::PI * radius * radius;
            assert!((area(&disc) - exact).abs() < 0.01 * exact, "radius {radius}: expected {exact}, got {}", area(&disc));
        }
        let stroke = Outline::Stroke { from: [20.0, 30.0], to: [50.0, 70.0], half: 4.0 };
        let exact = 8.0 * 50.0 + std::f64::consts::PI * 16.0;
        assert!((area(&stroke) - exact).abs() < 0.01 * exact, "stroke: expected {exact}, got {}", area(&stroke));
        assert_eq!(area(&Outline::Convex(vec![[10.0, 20.0], [40.0, 20.0], [40.0, 60.0], [10.0, 60.0]])), 1200.0);
    }

    #[test]
    fn shapes_outside_the_picture_cover_nothing() {
        assert_eq!(area(&Outline::Disc { centre: [-50.0, 50.0], radius: 10.0 }), 0.0);
        assert_eq!(area(&Outline::Disc { centre: [1e300, f64::NAN], radius: 10.0 }), 0.0);
        assert_eq!(area(&Outline::Convex(Vec::new())), 0.0);
    }

    #[test]
    fn a_scene_is_centred_and_upright() {
        let scene = Scene { x: [-1.0, 1.0], y: [0.0, 1.0], shapes: Vec::new() };
        let view = View::fit(&scene, [100.0, 100.0]).expect("a scene with an area");
        assert_eq!((view.scale, view.place([-1.0, 0.0]), view.place([1.0, 1.0])), (50.0, [0.0, 75.0], [100.0, 25.0]));
        for corners in [vec![[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], vec![[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]] {
            let triangle = view.outline(&Shape::Polygon { corners, ink: Ink::Body }, 1.0);
            assert!((area(&triangle) - 1250.0).abs() < 15.0, "area in either orientation: expected 1250, got {}", area(&triangle));
        }
        assert!(View::fit(&Scene { x: [1.0, 1.0], ..scene.clone() }, [10.0, 10.0]).is_none());
        assert!(View::fit(&Scene { y: [0.0, f64::NAN], ..scene }, [10.0, 10.0]).is_none());
    }
}
