//! What a worker says of an environment.

use serde_json::Value as Json;

use super::atari::Screens;
use super::worker::PROTOCOL;
use crate::{Image, Space};

/// What is known of an environment of Gymnasium.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The name of its class.
    pub class: String,
    /// Its identifier with the version, if Gymnasium tells it.
    pub id: Option<String>,
    /// The observation space: a box, in which discrete parts are one-hot codes.
    pub observation_space: Space,
    /// The action space.
    pub action_space: Space,
    /// The names of the parts of an observation, in order, and how many numbers each has.
    pub parts: Vec<(String, usize)>,
    /// The parts of an observation that have no numbers and are left out.
    pub left_out: Vec<String>,
    /// The number of states, if observations are one-hot codes of a [`Discrete`](Space::Discrete) space.
    pub states: Option<usize>,
    /// The kind of Gymnasium's observation space, such as `Dict`.
    pub kind: Option<String>,
    /// The first state, if observations are those of a [`Discrete`](Space::Discrete) space.
    pub start: Option<i64>,
    /// The number of steps after which episodes are truncated, if there is a limit.
    pub max_episode_steps: Option<u32>,
    /// The mean return at which Gymnasium counts it as solved.
    pub reward_threshold: Option<f64>,
    /// The steps per second at which an episode is shown, if the environment says it.
    pub render_fps: Option<u32>,
    /// The interpreter.
    pub executable: String,
    /// The versions of Python, NumPy, Gymnasium and the environment's package.
    pub versions: Vec<(String, String)>,
    /// Whether all numbers of an observation are bytes.
    pub(super) is_byte: bool,
    /// The screens that an observation of an Atari game is made of, if it is preprocessed.
    pub(super) screens: Option<Screens>,
}

impl Description {
    /// Returns the name of the environment with its version: `gym:LunarLander-v3` for `gym:LunarLander`.
    pub(super) fn versioned(&self, name: &str) -> String {
        let (asked, rest) = name.split_at(name.find('?').unwrap_or(name.len()));
        let version = self.id.as_deref().and_then(|id| id.rsplit_once("-v")).filter(|(base, version)| {
            // the identifier may stand behind a module
            asked.ends_with(base) && version.bytes().all(|byte| byte.is_ascii_digit())
        });
        version.map_or_else(|| name.into(), |(_, version)| format!("{asked}-v{version}{rest}"))
    }

    pub(super) fn parse(json: &Json) -> Result<Self, String> {
        let unexpected = |what: &str| format!("the worker's description: expected {what}, got {}", json[what]);
        let number = |json: &Json, what: &str| json[what].as_u64().ok_or_else(|| unexpected(what));
        match json["protocol"].as_u64() {
            Some(PROTOCOL) => {}
            _ => return Err(format!("expected a worker of protocol {PROTOCOL}, got {}", json["protocol"])),
        }
        let width = |json: &Json| {
            number(json, "width").and_then(|width| match width {
                1..=WIDEST => Ok(width as usize),
                _ => Err(format!("the worker's description: width: expected 1 to {WIDEST} numbers, got {width}")),
            })
        };
        let own_width = width(json)?;
        let (low, high) = (bounds(json, "low", own_width)?, bounds(json, "high", own_width)?);
        let is_byte = json["is_byte"].as_bool().ok_or_else(|| unexpected("is_byte"))?;
        let shape: Vec<usize> = json["shape"].as_array().into_iter().flatten().filter_map(|n| Some(n.as_u64()? as usize)).collect();
        let screens =
            if json["is_atari"] == true { Some(Screens::of(&shape, own_width).ok_or_else(|| unexpected("shape"))?) } else { None };
        let image = image_of(&shape)
            .filter(|image| is_byte && image.len() == own_width && low.iter().all(|x| *x == 0.0) && high.iter().all(|x| *x == 255.0));
        let observation_space = match (&screens, image) {
            (Some(_), _) => Space::Image(Screens::IMAGE),
            (None, Some(image)) => Space::Image(image),
            (None, None) => Space::Box { low, high },
        };
        let actions = &json["actions"];
        let action_space = match actions["kind"].as_str() {
            Some("discrete") => Space::Discrete(u32::try_from(number(actions, "n")?).map_err(|_| unexpected("actions"))?),
            Some("box") => {
                let width = width(actions)?;
                Space::Box { low: bounds(actions, "low", width)?, high: bounds(actions, "high", width)? }
            }
            Some("multi_discrete") => {
                let size = |json: &Json| json.as_u64().and_then(|size| u32::try_from(size).ok());
                let sizes = actions["sizes"].as_array().and_then(|sizes| sizes.iter().map(size).collect());
                Space::MultiDiscrete(sizes.ok_or_else(|| unexpected("actions"))?)
            }
            _ => return Err(unexpected("actions")),
        };
        observation_space.check("observations")?;
        action_space.check("actions")?;
        let texts = |json: &Json| json.as_str().map(Into::into);
        let list = |what: &str| json[what].as_array().ok_or_else(|| unexpected(what));
        let parts = list("parts")?.iter().map(|part| Some((texts(&part[0])?, part[1].as_u64()? as usize)));
        let versions = json["versions"].as_object().ok_or_else(|| unexpected("versions"))?;
        Ok(Self {
            class: texts(&json["class"]).unwrap_or_default(),
            id: texts(&json["id"]),
            observation_space,
            action_space,
            parts: parts.collect::<Option<_>>().ok_or_else(|| unexpected("parts"))?,
            left_out: list("left_out")?.iter().filter_map(texts).collect(),
            states: json["states"].as_u64().map(|states| states as usize),
            kind: texts(&json["kind"]),
            start: json["start"].as_i64(),
            max_episode_steps: json["max_episode_steps"].as_u64().and_then(|steps| u32::try_from(steps).ok()),
            reward_threshold: json["reward_threshold"].as_f64(),
            render_fps: json["render_fps"].as_u64().and_then(|rate| u32::try_from(rate).ok()).filter(|rate| *rate > 0),
            executable: texts(&json["executable"]).unwrap_or_default(),
            versions: versions.iter().filter_map(|(name, version)| Some((name.clone(), texts(version)?))).collect(),
            is_byte,
            screens,
        })
    }
}

/// The most colours of a pixel.
const MOST_CHANNELS: usize = 4;
/// The least pixels in a direction of a picture: smaller arrays of bytes are maps, whose numbers are codes.
const SMALLEST: usize = 10;

/// Returns the picture or pictures that an array of bytes of this shape is: height x width, with one to four colours behind; or several frames of either. A shape that can be read
/// in two ways, such as 4 x 84 x 84, is read as the one with large pictures.
fn image_of(shape: &[usize]) -> Option<Image> {
    let (frames, height, width, channels) = match *shape {
        [height, width] => (1, height, width, 1),
        [height, width, channels] if channels <= MOST_CHANNELS => (1, height, width, channels),
        [frames, height, width] => (frames, height, width, 1),
        [frames, height, width, channels] if channels <= MOST_CHANNELS => (frames, height, width, channels),
        _ => return None,
    };
    let image = Image { frames, height, width, channels, largest: u8::MAX };
    (height.min(width) >= SMALLEST && Space::Image(image).check("").is_ok()).then_some(image)
}

/// The most numbers of an observation or an action.
const WIDEST: u64 = 1 << 28;

/// Bounds of a box: one number for all of its dimensions, or one for each. Infinities are texts.
fn bounds(json: &Json, what: &str, width: usize) -> Result<Vec<f32>, String> {
    let unexpected = || format!("the worker's description: {what}: expected {width} numbers");
    let number = |json: &Json| json.as_f64().or_else(|| json.as_str()?.parse().ok()).map(|number| number as f32);
    let numbers: Vec<f32> = json[what].as_array().and_then(|all| all.iter().map(number).collect()).ok_or_else(unexpected)?;
    match numbers[..] {
        [one] => Ok(vec![one; width]),
        _ if numbers.len() == width => Ok(numbers),
        _ => Err(unexpected()),
    }
}

#[cfg(test)]
mod tests {
    use gradus_base::random::{Purpose, Stream};
    use serde_json::json;

    use super::*;

    fn valid() -> Json {
        json!({
            "protocol": PROTOCOL, "class": "Env", "width": 3, "low": [-1.0, "-inf", 0], "high": [1.0], "is_byte": false, "shape": [3], "is_atari": false, "states": null,
            "actions": {"kind": "multi_discrete", "sizes": [3, 2]}, "parts": [["a", 3]], "left_out": ["b"], "versions": {"python": "3.12.0"},
            "max_episode_steps": 20, "reward_threshold": 1.5, "render_fps": 30, "executable": "python"
        })
    }

    /// Replaces or removes one value at a random place.
    fn damage(json: &mut Json, stream: &mut Stream) {
        let below = |stream: &mut Stream, n: usize| stream.below(n.max(1) as u32) as usize;
        let children = match json {
            Json::Object(all) => all.len(),
            Json::Array(all) => all.len(),
            _ => 0,
        };
        if children > 0 && stream.below(3) > 0 {
            let i = below(stream, children);
            match json {
                Json::Object(all) => damage(all.values_mut().nth(i).unwrap(), stream),
                Json::Array(all) => damage(&mut all[i], stream),
                _ => {}
            }
            return;
        }
        let others = [
            json!(null),
            json!(-1),
            json!(0),
            json!(1e300),
            json!(u64::MAX),
            json!("box"),
            json!("nan"),
            json!([]),
            json!([[]]),
            json!({}),
            json!(true),
            json!("inf"),
        ];
        *json = others[below(stream, others.len())].clone();
    }

    #[test]
    fn arrays_of_bytes_are_pictures() {
        let image = |frames, height, width, channels| Some(Image { frames, height, width, channels, largest: 255 });
        for (shape, expected) in [
            (vec![210, 160, 3], image(1, 210, 160, 3)),
            (vec![96, 96], image(1, 96, 96, 1)),
            (vec![4, 84, 84], image(4, 84, 84, 1)),
            (vec![4, 96, 96, 3], image(4, 96, 96, 3)),
            (vec![7, 7, 3], None), // the codes of MiniGrid
            (vec![128], None),
            (vec![4, 96, 96, 5], None),
            (vec![5000, 5000], None),
        ] {
            assert_eq!(image_of(&shape), expected, "{shape:?}");
        }
        let mut json = valid();
        (json["width"], json["low"], json["high"]) = (json!(1200), json!([0]), json!([255]));
        (json["is_byte"], json["shape"]) = (json!(true), json!([20, 20, 3]));
        assert_eq!(Description::parse(&json).unwrap().observation_space, Space::Image(image(1, 20, 20, 3).unwrap()));
        json["high"] = json!([1]);
        assert!(matches!(Description::parse(&json).unwrap().observation_space, Space::Box { .. }));
    }

    /// No answer of a worker, however wrong, is a panic or an absurd allocation.
    #[test]
    fn damaged_descriptions_are_errors_of_one_line() {
        assert!(Description::parse(&valid()).is_ok());
        let mut stream = Stream::new(1, Purpose::Environment, 0);
        let (mut wrong, mut right) = (0, 0);
        for _ in 0..20_000 {
            let mut json = valid();
            (0..=stream.below(3)).for_each(|_| damage(&mut json, &mut stream));
            match Description::parse(&json) {
                Ok(_) => right += 1,
                Err(problem) => {
                    assert!(!problem.contains('\n') && problem.len() < 300, "{problem}");
                    wrong += 1;
                }
            }
        }
        assert!(wrong > 5000 && right > 500, "{wrong} wrong and {right} right");
    }
}
