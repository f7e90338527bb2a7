//! The convolutional layers in front of a perceptron.

use std::sync::Arc;

use gradus_base::simd::Level;
use gradus_envs::Image;

use super::view::{Grid, View};
use super::{Dense, Kind, Observed, Order, Perceptron, Tile, padded};
use crate::store::Numbers;
use crate::trunk::{Step, Window};
use crate::{FeatureMaps, NetworkConfig};

impl Perceptron {
    /// Reads an image, through the convolutional layers of the configuration if it has some, which are those of the part `name`. Returns the last one.
    ///
    /// # Panics
    /// If an image is too small for a window; [`NetworkConfig`] checks that.
    pub fn see(&mut self, config: &NetworkConfig, name: &str, image: Option<Image>) -> Option<usize> {
        self.image = image;
        let image = image.filter(|_| !config.trunk.is_none())?;
        let planes = image.planes();
        let mut seen = Seen {
            perceptron: self,
            name,
            has_norm: config.layer_norm,
            grid: Grid { height: image.height, width: image.width, channels: planes, stride: planes },
            last: None,
            convolutions: 0,
        };
        let mut kept = None;
        for step in config.trunk.steps() {
            match step {
                Step::Convolve { filters, window, is_hidden, in_section } => seen.convolve(filters, window, is_hidden, in_section),
                Step::Pool(window) => seen.pool(window),
                Step::Activate => seen.pass(Kind::Same, seen.grid.pixels(), true),
                Step::Keep => kept = seen.last,
                Step::Add => {
                    if let Some(last) = seen.last {
                        seen.perceptron.layers[last].adds = kept;
                    }
                }
            }
        }
        seen.last
    }

    /// Returns the outputs of the first convolutional layer for each of some observations; nothing without one.
    pub fn feature_maps(&self, level: Level, parameters: &[f32], observations: &[f32]) -> Vec<FeatureMaps> {
        let first = self.layers.iter().position(|dense| matches!(dense.kind, Kind::Convolution(_)));
        let Some(layer) = first else { return Vec::new() };
        let dense = &self.layers[layer];
        let Kind::Convolution(view) = &dense.kind else { return Vec::new() };
        let ([height, width], mut tile) = (view.to, Tile::new(self, 1));
        let mut look = |observation: &[f32]| {
            tile.read(self, Observed::Block(Numbers::F32(observation)));
            tile.forward(level, self, parameters);
            let pixels = tile.outputs(layer).chunks_exact(dense.stride());
            let map = |filter: usize| pixels.clone().map(|pixel| pixel[filter]).collect();
            FeatureMaps { height, width, maps: (0..dense.layer.outputs).map(map).collect() }
        };
        observations.chunks_exact(self.width).map(&mut look).collect()
    }
}

/// The layers so far.
struct Seen<'a> {
    perceptron: &'a mut Perceptron,
    name: &'a str,
    has_norm: bool,
    /// The outputs of the last layer.
    grid: Grid,
    last: Option<usize>,
    convolutions: usize,
}

impl Seen<'_> {
    fn push(&mut self, dense: Dense, has_norm: bool) {
        let [height, width] = match &dense.kind {
            Kind::Convolution(view) | Kind::Pool(view) => view.to,
            Kind::Dense | Kind::Same | Kind::Cell(_) => [self.grid.height, self.grid.width],
        };
        let channels = dense.layer.outputs;
        self.grid = Grid { height, width, channels, stride: padded(channels) };
        let dense = Dense { reads: self.last, ..dense };
        self.last = Some(self.perceptron.push(dense, has_norm));
    }

    fn view(&self, window: Window) -> Arc<View> {
        Arc::new(View::new(window, self.grid).expect("a window that fits into the image"))
    }

    fn convolve(&mut self, filters: usize, window: Window, is_hidden: bool, in_section: bool) {
        let view = self.view(window);
        let order = Order { channels: view.from.channels, pixels: window.size * window.size, stride: view.from.channels };
        let names = ["convolutions", "norms"].map(|kind| format!("{}.{kind}.{}", self.name, self.convolutions));
        self.convolutions += 1;
        let (shape, pixels) = ((view.inputs(), filters), view.windows());
        let dense = Dense { is_hidden, ..Dense::new(Kind::Convolution(view), shape, order, pixels, names) };
        self.push(dense, self.has_norm && !in_section);
    }

    /// A layer without weights.
    fn pass(&mut self, kind: Kind, pixels: usize, is_hidden: bool) {
        let channels = self.grid.channels;
        let order = Order { channels, pixels: 1, stride: 0 };
        let dense = Dense { is_hidden, ..Dense::new(kind, (channels, channels), order, pixels, [String::new(), String::new()]) };
        self.push(dense, false);
    }

    fn pool(&mut self, window: Window) {
        // what windows of the input have is not stored as the outputs of layers are
        if self.last.is_none() {
            self.pass(Kind::Same, self.grid.pixels(), false);
        }
        let view = self.view(window);
        let windows = view.windows();
        self.pass(Kind::Pool(view), windows, false);
    }
}
