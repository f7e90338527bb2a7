//! What an environment looks like, as plain data: drawing is the business of whoever shows it.

/// A colour by its role, so that every page and terminal can choose its own shade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The ground, a track, an axis.
    Ground,
    /// The body that the agent moves.
    Body,
    /// The part that is balanced or swung.
    Limb,
    /// A joint or a small mark.
    Joint,
    /// A goal or a limit.
    Goal,
}

/// One shape, in the scene's coordinates.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A straight line with round ends.
    Line {
        /// Where it begins.
        from: [f64; 2],
        /// Where it ends.
        to: [f64; 2],
        /// Its width, in the scene's unit.
        width: f64,
        /// Its colour.
        ink: Ink,
    },
    /// A filled convex polygon.
    Polygon {
        /// The corners, in order.
        corners: Vec<[f64; 2]>,
        /// Its colour.
        ink: Ink,
    },
    /// A filled circle.
    Disc {
        /// Its centre.
        centre: [f64; 2],
        /// Its radius, in the scene's unit.
        radius: f64,
        /// Its colour.
        ink: Ink,
    },
}

/// A picture of an environment: a rectangle of the world, y upwards, and the shapes in it, the first one lowest.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Left and right edge.
    pub x: [f64; 2],
    /// Lower and upper edge.
    pub y: [f64; 2],
    /// What is in it.
    pub shapes: Vec<Shape>,
}
