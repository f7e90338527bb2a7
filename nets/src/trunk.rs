//! The convolutional layers through which a network sees images: the setting `network.trunk`.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The names of trunks, with their layers.
const NAMES: [(&str, &str); 4] = [
    ("none", ""),
    // Mnih et al., Nature 518, 2015, methods
    ("nature", "32x8/4,64x4/2,64x3"),
    // the residual network of Espeholt et al., arXiv 1802.01561, figure 3, right, whose channels others double or quadruple
    ("impala-small", "section16,section32,section32"),
    // Young and Tian, arXiv 1903.03176
    ("arcade", "16x3"),
];

/// One layer, or a section of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A convolution and the activation.
    Convolution { filters: usize, window: Window },
    /// The largest number of each window.
    Pool { window: Window },
    /// A section of IMPALA's residual network: a convolution of 3 x 3, pooling of 3 x 3 with stride 2, and two residual blocks x + f(x), where
    /// f is activation, convolution, activation, convolution. The activation after the last section belongs to it.
    Section { filters: usize },
}

/// What is done to images, one after another: the layers of a trunk, with sections written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A convolution, and the activation if `is_hidden`. Inside of a section there is no normalisation.
    Convolve { filters: usize, window: Window, is_hidden: bool, in_section: bool },
    /// The largest number of each window.
    Pool(Window),
    /// The activation.
    Activate,
    /// Remembers the numbers for the next [`Add`](Step::Add).
    Keep,
    /// Adds the numbers that were kept.
    Add,
}

/// The pixels that one output of a layer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Height and width.
    pub size: usize,
    /// Pixels from one window to the next.
    pub stride: usize,
    /// Pixels of zeros around the image.
    pub padding: usize,
}

impl Window {
    /// The window that leaves the size of an image as it is.
    pub const SAME: Self = Self { size: 3, stride: 1, padding: 1 };
    /// The window that halves the size of an image.
    pub const HALF: Self = Self { size: 3, stride: 2, padding: 1 };

    /// Returns the number of windows in a row of `pixels`; `None` if not even one fits.
    pub fn outputs(self, pixels: usize) -> Option<usize> {
        Some((pixels + 2 * self.padding).checked_sub(self.size)? / self.stride + 1)
    }
}

/// The layers of a trunk, in order. Written as the name of one (`none`, `nature`, `impala-small`, `arcade`) or as a list, such as
/// `32x8/4,64x4/2,64x3`: `32x8/4` is a convolution of 32 filters of 8 x 8 pixels with stride 4, `+1` after that pads the image by 1 pixel of
/// zeros on every side, `max2/2` takes the largest number of windows of 2 x 2 with stride 2, and `section16` is a section of IMPALA's residual
/// network with 16 filters.
///
/// ```
/// use gradus_nets::Trunk;
///
/// let trunk: Trunk = "nature".parse()?;
/// assert_eq!((trunk.to_string(), trunk.layers()), ("nature".into(), "32x8/4,64x4/2,64x3".into()));
/// assert!("32y8".parse::<Trunk>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trunk {
    /// As it was written.
    text: String,
    parts: Vec<Part>,
}

impl Trunk {
    /// No convolutional layers: an image is read as one row of numbers.
    pub fn none() -> Self {
        Self { text: "none".into(), parts: Vec::new() }
    }

    /// Whether there are no layers.
    pub fn is_none(&self) -> bool {
        self.parts.is_empty()
    }

    /// The layers as a list.
    pub fn layers(&self) -> String {
        NAMES.iter().find(|(name, _)| *name == self.text).map_or_else(|| self.text.clone(), |(_, layers)| (*layers).into())
    }

    /// The layers with sections written out.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (i, part) in self.parts.iter().enumerate() {
            match *part {
                Part::Convolution { filters, window } => steps.push(Step::Convolve { filters, window, is_hidden: true, in_section: false }),
                Part::Pool { window } => steps.push(Step::Pool(window)),
                Part::Section { filters } => {
                    let convolve = |is_hidden| Step::Convolve { filters, window: Window::SAME, is_hidden, in_section: true };
                    let block = [Step::Keep, Step::Activate, convolve(true), convolve(false), Step::Add];
                    steps.extend([convolve(false), Step::Pool(Window::HALF)].into_iter().chain(block).chain(block));
                    let goes_on = matches!(self.parts.get(i + 1), Some(Part::Section { .. }));
                    steps.extend((!goes_on).then_some(Step::Activate));
                }
            }
        }
        steps
    }
}

impl fmt::Display for Trunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Trunk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let layers = NAMES.iter().find(|(name, _)| *name == text).map_or(text, |(_, layers)| layers);
        let is_none = text == NAMES[0].0;
        let parts = layers.split(',').filter(|_| !is_none).map(|layer| part(layer.trim()));
        let parts: Option<Vec<Part>> = parts.collect();
        // beginning as serde's message about an unknown name
        let names = NAMES.map(|(name, _)| name).join(", ");
        let layers = "a list of layers, such as 32x8/4,64x3+1,max2/2,section16 (filters x size / stride + padding, the padding smaller than the size)";
        let problem = || format!("unknown variant `{text}`, expected {names} or {layers}");
        Ok(Self { text: text.into(), parts: parts.ok_or_else(problem)? })
    }
}

/// The most filters, and the largest size, stride and padding.
const MOST: usize = 4096;

/// Parses one layer: `32x8/4+1`, `max2/2` or `section16`.
fn part(text: &str) -> Option<Part> {
    let number = |text: &str| text.parse().ok().filter(|number| (1..=MOST).contains(number));
    if let Some(filters) = text.strip_prefix("section") {
        return Some(Part::Section { filters: number(filters)? });
    }
    let (filters, window) = match text.strip_prefix("max") {
        Some(window) => (None, window),
        None => text.split_once('x').map(|(filters, window)| (Some(filters), window))?,
    };
    let (window, padding) = window.split_once('+').map_or((window, Some(0)), |(window, padding)| (window, number(padding)));
    let (size, stride) = window.split_once('/').map_or((window, Some(1)), |(size, stride)| (size, number(stride)));
    let window = Window { size: number(size)?, stride: stride?, padding: padding? };
    // a window that sees nothing but padding would have no largest number
    if window.padding >= window.size {
        return None;
    }
    Some(match filters {
        Some(filters) => Part::Convolution { filters: number(filters)?, window },
        None => Part::Pool { window },
    })
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Window { size, stride, padding } = self;
        write!(f, "{size}")?;
        if *stride > 1 {
            write!(f, "/{stride}")?;
        }
        if *padding > 0 { write!(f, "+{padding}") } else { Ok(()) }
    }
}

impl Default for Trunk {
    fn default() -> Self {
        Self::none()
    }
}

impl Serialize for Trunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Trunk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_parsed() {
        let layers = |text: &str| text.parse::<Trunk>().map(|trunk| trunk.parts);
        let window = |size, stride, padding| Window { size, stride, padding };
        let convolution = |filters, window| Part::Convolution { filters, window };
        assert_eq!(
            layers("nature").unwrap(),
            [convolution(32, window(8, 4, 0)), convolution(64, window(4, 2, 0)), convolution(64, window(3, 1, 0))]
        );
        assert_eq!(layers("none").unwrap(), []);
        assert_eq!(layers("5x3+1, max3/2+1").unwrap(), [convolution(5, window(3, 1, 1)), Part::Pool { window: window(3, 2, 1) }]);
        assert_eq!(layers("section8").unwrap(), [Part::Section { filters: 8 }]);
        for wrong in
            ["natur", "0x3", "16x0", "16x3/0", "16x3+3", "max2+2", "16x3,,", "x3", "16", "section", "", "99999x3", "-1x3", "16x3/2/2"]
        {
            let problem = layers(wrong).unwrap_err();
            assert!(problem.starts_with(&format!("unknown variant `{wrong}`, expected none, nature, ")), "{problem}");
        }
        assert_eq!((window(8, 4, 0).outputs(84), window(3, 2, 1).outputs(84), window(3, 1, 0).outputs(2)), (Some(20), Some(42), None));
    }
}
