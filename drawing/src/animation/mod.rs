//! Episodes as animated GIFs.
//!
//! All frames share one table of colours: the paper, the inks, the letters, and blends of any two of these for smooth edges; where scenes are
//! pictures of pixels, the paper, the letters, their blends, and the colours that represent the pictures best. So frames
//! differ only where something moved. Each frame stores the rectangle that changed, with unchanged pixels transparent.

use gif::{DisposalMethod, Encoder, Frame as GifFrame, Repeat};
use gradus_envs::{Ink, Picture, Scene, Shape};

use crate::fonts::{self, Lettering};
use crate::numbers::{common_decimals, rounded};
use crate::raster::{View, coverage};
use crate::{Frame, ink_colour};
use colours::Colours;

mod colours;

/// Width of the picture. The height of the scene in it follows from the scene's aspect ratio, within `SCENE_HEIGHTS`.
const WIDTH: usize = 480;
const SCENE_HEIGHTS: [f64; 2] = [60.0, 480.0];
const CAPTION_HEIGHT: usize = 34;
const MARGIN: f64 = 14.0;
const EM: f64 = 15.0;
/// Minimum width of a line in pixels.
const THINNEST: f64 = 1.5;
/// Extra time of the last frame before the animation repeats, in hundredths of a second.
const REST: u16 = 100;

/// Number of steps in a blend from one colour to another.
const STEPS: usize = 10;
const COLOURS: usize = 7;
const PAPER: usize = 0;
const LETTERS: usize = 6;
/// Colour index that leaves a pixel unchanged.
const TRANSPARENT: u8 = 255;

/// The colours of the paper, the five inks and the letters.
const PALETTE: [[u8; 3]; COLOURS] = [
    [255, 255, 255],
    ink_colour(Ink::Ground),
    ink_colour(Ink::Body),
    ink_colour(Ink::Limb),
    ink_colour(Ink::Joint),
    ink_colour(Ink::Goal),
    [70, 70, 70],
];

fn colour(ink: Ink) -> usize {
    match ink {
        Ink::Ground => 1,
        Ink::Body => 2,
        Ink::Limb => 3,
        Ink::Joint => 4,
        Ink::Goal => 5,
    }
}

/// An animation that cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum AnimationError {
    /// The animation has no frames.
    #[error("expected at least one frame, got none")]
    Empty,
    /// The frame rate is out of range.
    #[error("expected 1 to 50 frames per second, got {rate}")]
    Rate {
        /// Frames per second.
        rate: u32,
    },
    /// The rectangle of a scene is empty or not finite.
    #[error("frame {frame}: expected a scene with a finite rectangle, got x in {x:?} and y in {y:?}")]
    Scene {
        /// Index of the frame, from 0.
        frame: usize,
        /// The scene's left and right edge.
        x: [f64; 2],
        /// The scene's lower and upper edge.
        y: [f64; 2],
    },
    /// The encoder failed.
    #[error("cannot encode: {0}")]
    Encoder(#[from] gif::EncodingError),
}

/// The contents of a GIF.
#[derive(Clone, Debug, PartialEq)]
pub struct Animation<'a> {
    /// Title above the scene on the left, such as `CartPole-v1`; step and return are on the right.
    pub title: String,
    /// Titles that replace `title`, each from the frame of this number on, in order. For an animation of several episodes.
    pub chapters: &'a [(usize, String)],
    /// Frames in order; the first frame's rectangle determines the aspect ratio of the picture.
    pub frames: &'a [Frame],
    /// Frame rate, 1 to 50; browsers slow down faster animations.
    pub frames_per_second: u32,
}

impl Animation<'_> {
    /// Returns the bytes of a GIF that repeats forever.
    pub fn encode(&self) -> Result<Vec<u8>, AnimationError> {
        let rate = self.frames_per_second;
        if !(1..=50).contains(&rate) {
            return Err(AnimationError::Rate { rate });
        }
        let Some(first) = self.frames.first() else { return Err(AnimationError::Empty) };
        let unit = [WIDTH as f64, WIDTH as f64];
        let bad = |frame: &Frame| View::fit(&frame.scene, unit).is_none();
        if let Some(frame) = self.frames.iter().position(bad) {
            let Scene { x, y, .. } = self.frames[frame].scene;
            return Err(AnimationError::Scene { frame, x, y });
        }
        let aspect = (first.scene.y[1] - first.scene.y[0]) / (first.scene.x[1] - first.scene.x[0]);
        let height = (WIDTH as f64 * aspect).clamp(SCENE_HEIGHTS[0], SCENE_HEIGHTS[1]).round() as usize;
        Ok(encode(self, height)?)
    }
}

fn encode(animation: &Animation, scene_height: usize) -> Result<Vec<u8>, gif::EncodingError> {
    let mut painter = Painter::new(animation, scene_height);
    let mut chapters = animation.chapters.iter().peekable();
    let height = painter.height;
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, WIDTH as u16, height as u16, &painter.inks.palette)?;
    encoder.set_repeat(Repeat::Infinite)?;
    let mut shown = Vec::new();
    for (number, frame) in animation.frames.iter().enumerate() {
        if let Some((_, title)) = chapters.next_if(|(first, _)| *first <= number) {
            painter.caption(title);
        }
        let pixels = painter.paint(frame);
        let mut delta = difference(&shown, &pixels);
        // frames begin at whole hundredths of a second: rounding the start times keeps the average rate right
        let begins = |frame: usize| (200 * frame as u64 / u64::from(animation.frames_per_second)).div_ceil(2);
        delta.delay = (begins(number + 1) - begins(number)) as u16;
        if number + 1 == animation.frames.len() {
            delta.delay += REST;
        }
        encoder.write_frame(&delta)?;
        shown = pixels;
    }
    drop(encoder);
    Ok(bytes)
}

/// Returns the frame that changes the picture `before` into `after`: the whole picture if `before` is empty.
fn difference(before: &[u8], after: &[u8]) -> GifFrame<'static> {
    let height = after.len() / WIDTH;
    let changed = |pixel: usize| before.get(pixel) != Some(&after[pixel]);
    let (mut left, mut right, mut top, mut bottom) = (WIDTH, 0, height, 0);
    for (pixel, (row, column)) in (0..after.len()).map(|pixel| (pixel, (pixel / WIDTH, pixel % WIDTH))) {
        if changed(pixel) {
            (left, right, top, bottom) = (left.min(column), right.max(column + 1), top.min(row), bottom.max(row + 1));
        }
    }
    if right == 0 {
        // a frame cannot be empty, so store one unchanged pixel
        (left, right, top, bottom) = (0, 1, 0, 1);
    }
    let inside = (top..bottom).flat_map(|row| (left..right).map(move |column| row * WIDTH + column));
    let buffer: Vec<u8> = inside.map(|pixel| if changed(pixel) { after[pixel] } else { TRANSPARENT }).collect();
    GifFrame {
        dispose: DisposalMethod::Keep,
        transparent: Some(TRANSPARENT),
        left: left as u16,
        top: top as u16,
        width: (right - left) as u16,
        height: (bottom - top) as u16,
        buffer: buffer.into(),
        ..GifFrame::default()
    }
}

/// The colour table.
struct Inks {
    /// Red, green and blue of every colour index.
    palette: Vec<u8>,
    /// Colour index of each blend: `blends[from][to][step]`.
    blends: [[[u8; STEPS + 1]; COLOURS]; COLOURS],
    /// Main colour of each index: of the two colours of a blend, the one with the greater share, or the second at equal shares.
    main: Vec<usize>,
}

impl Inks {
    /// With blends of these colours.
    fn new(colours: &[usize]) -> Self {
        let (mut palette, mut main) = (Vec::new(), Vec::new());
        let mut blends = [[[0; STEPS + 1]; COLOURS]; COLOURS];
        let mut add = |from: usize, to: usize, step: usize| {
            let mix = |from: u8, to: u8| ((usize::from(from) * (STEPS - step) + usize::from(to) * step + STEPS / 2) / STEPS) as u8;
            palette.extend((0..3).map(|channel| mix(PALETTE[from][channel], PALETTE[to][channel])));
            main.push(if 2 * step < STEPS { from } else { to });
            (main.len() - 1) as u8
        };
        for pure in colours.iter().copied() {
            blends[pure][pure] = [add(pure, pure, 0); STEPS + 1];
        }
        for (i, from) in colours.iter().copied().enumerate() {
            for to in colours[i + 1..].iter().copied() {
                for step in 0..=STEPS {
                    let index = match step {
                        0 => blends[from][from][0],
                        STEPS => blends[to][to][0],
                        _ => add(from, to, step),
                    };
                    blends[from][to][step] = index;
                    blends[to][from][STEPS - step] = index;
                }
            }
        }
        Self { palette, blends, main }
    }

    /// Blends a colour over a pixel with opacity `part`. A pixel that is already a blend counts as its main colour. Overlapping edges are
    /// only one or two pixels wide, so their exact shade is not visible.
    fn lay(&self, pixel: &mut u8, colour: usize, part: f64) {
        let step = (part * STEPS as f64).round() as usize;
        if step > 0 {
            *pixel = self.blends[self.main[usize::from(*pixel)]][colour][step];
        }
    }
}

/// Paints frames as indices into the colour table.
struct Painter {
    inks: Inks,
    /// The colours of pictures, behind the inks in the table.
    colours: Option<Colours>,
    lettering: Lettering,
    height: usize,
    scene_height: usize,
    /// The picture with the caption's text, without numbers and scene.
    empty: Vec<u8>,
    /// The x coordinates at which the return and the step end, and those at which they begin.
    ends: [f64; 2],
    starts: [f64; 2],
    /// Number of decimals of the return.
    decimals: usize,
}

const RETURN: &str = "return ";
const STEP: &str = "step ";

impl Painter {
    fn new(animation: &Animation, scene_height: usize) -> Self {
        let height = scene_height + CAPTION_HEIGHT;
        let widest = |texts: &mut dyn Iterator<Item = String>| texts.map(|text| fonts::width(&text, EM)).fold(0.0, f64::max);
        let decimals = common_decimals(animation.frames.iter().map(|frame| frame.return_so_far));
        let returns = widest(&mut animation.frames.iter().map(|frame| number(frame.return_so_far, decimals)));
        let steps = widest(&mut animation.frames.iter().map(|frame| frame.step.to_string()));
        let return_end = WIDTH as f64 - MARGIN;
        let return_start = return_end - returns - fonts::width(RETURN, EM);
        let step_end = return_start - 1.2 * EM;
        let step_start = step_end - steps - fonts::width(STEP, EM);
        let pictures: Vec<&Picture> = animation.frames.iter().flat_map(|frame| pictures(&frame.scene)).collect();
        let mut inks = if pictures.is_empty() { Inks::new(&[0, 1, 2, 3, 4, 5, 6]) } else { Inks::new(&[PAPER, LETTERS]) };
        let first = inks.main.len();
        let colours = (!pictures.is_empty()).then(|| Colours::of(&pictures, usize::from(TRANSPARENT) - first));
        inks.palette.extend(colours.iter().flat_map(|colours| colours.palette().concat()));
        let mut painter = Self {
            inks,
            colours,
            lettering: Lettering::new(EM),
            height,
            scene_height,
            empty: Vec::new(),
            ends: [return_end, step_end],
            starts: [return_start, step_start],
            decimals,
        };
        painter.caption(&animation.title);
        painter
    }

    /// Writes the caption's text with this title.
    fn caption(&mut self, title: &str) {
        let [return_start, step_start] = self.starts;
        let mut empty = vec![PAPER as u8; WIDTH * self.height];
        self.write(&mut empty, &fonts::shorten(title, EM, step_start - 2.0 * MARGIN), MARGIN);
        self.write(&mut empty, RETURN, return_start);
        self.write(&mut empty, STEP, step_start);
        self.empty = empty;
    }

    fn write(&mut self, pixels: &mut [u8], text: &str, x: f64) {
        let baseline = (CAPTION_HEIGHT as f64 / 2.0 + 0.36 * EM).round();
        let inks = &self.inks;
        self.lettering.draw(text, [x, baseline], |x, y, part| {
            if let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y))
                && x < WIDTH
                && let Some(pixel) = pixels.get_mut(y * WIDTH + x)
            {
                inks.lay(pixel, LETTERS, part);
            }
        });
    }

    fn paint(&mut self, frame: &Frame) -> Vec<u8> {
        let mut pixels = self.empty.clone();
        for (text, end) in [number(frame.return_so_far, self.decimals), frame.step.to_string()].iter().zip(self.ends) {
            self.write(&mut pixels, text, end - fonts::width(text, EM));
        }
        let Some(view) = View::fit(&frame.scene, [WIDTH as f64, self.scene_height as f64]) else { return pixels };
        let scene = &mut pixels[CAPTION_HEIGHT * WIDTH..];
        for picture in pictures(&frame.scene) {
            let Some(colours) = &mut self.colours else { continue };
            let first = self.inks.main.len();
            view.visit_picture(picture, [WIDTH, self.scene_height], |x, y, [column, row]| {
                scene[y * WIDTH + x] = (first + colours.nearest(picture.colour(column, row))) as u8;
            });
        }
        for shape in &frame.scene.shapes {
            if self.colours.is_some() {
                continue; // the table has no inks
            }
            let (Shape::Line { ink, .. } | Shape::Polygon { ink, .. } | Shape::Disc { ink, .. }) = shape else { continue };
            view.outline(shape, THINNEST).visit([WIDTH, self.scene_height], |x, y, distance| {
                self.inks.lay(&mut scene[y * WIDTH + x], colour(*ink), coverage(distance));
            });
        }
        pixels
    }
}

/// The pictures in a scene.
fn pictures(scene: &Scene) -> impl Iterator<Item = &Picture> {
    scene.shapes.iter().filter_map(|shape| if let Shape::Picture(picture) = shape { Some(&**picture) } else { None })
}

/// Formats a return, with a typographic minus sign.
fn number(value: f64, decimals: usize) -> String {
    rounded(value, decimals).replace('-', "−")
}

#[cfg(test)]
mod tests;
