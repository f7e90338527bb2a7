//! Pictures of environments as plain data, for the programs that draw them.

/// A colour by its role. The program that draws the scene chooses the actual colour.
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
        /// Start point.
        from: [f64; 2],
        /// End point.
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

/// A picture of an environment: a rectangle and the shapes in it. The y axis points upwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Left and right edge.
    pub x: [f64; 2],
    /// Lower and upper edge.
    pub y: [f64; 2],
    /// The shapes, in drawing order.
    pub shapes: Vec<Shape>,
}
