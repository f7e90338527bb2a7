//! The name of an environment, in parts.

use serde_json::{Value as Json, json};

use super::AtariEpisodes;

/// What is asked for: an identifier, arguments, wrappers and parts of observations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    id: String,
    arguments: Vec<(String, String)>,
    wrappers: Vec<String>,
    keys: Vec<String>,
    /// What an episode of an Atari game is, if the game is preprocessed.
    atari: Option<AtariEpisodes>,
}

impl Query {
    /// Reads `ID?key=value&key=value`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (id, rest) = text.split_once('?').unwrap_or((text, ""));
        if id.is_empty() || id.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("expected gym:ID, such as gym:CartPole-v1, got gym:{text}"));
        }
        let mut query = Self { id: id.into(), arguments: Vec::new(), wrappers: Vec::new(), keys: Vec::new(), atari: None };
        for pair in rest.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| format!("expected gym:ID?key=value&key=value, got `{pair}`"))?;
            match key {
                "" => return Err(format!("expected gym:ID?key=value&key=value, got `{pair}`")),
                "wrapper" => query.wrappers.push(value.into()),
                "keys" => query.keys.extend(value.split(',').map(Into::into)),
                _ if query.arguments.iter().any(|(known, _)| known == key) => {
                    return Err(format!("{key}: expected one value, got several"));
                }
                _ => query.arguments.push((key.into(), value.into())),
            }
        }
        Ok(query)
    }

    /// Whether an Atari game of this name can be preprocessed: wrappers would not be called, and screens and repeated actions are those of the preprocessing.
    pub(super) fn is_plain_game(&self) -> bool {
        let is_fixed = |(key, _): &(String, String)| ["obs_type", "frameskip"].contains(&&key[..]);
        self.wrappers.is_empty() && self.keys.is_empty() && !self.arguments.iter().any(is_fixed)
    }

    /// The same game, preprocessed.
    pub(super) fn preprocessed(&self, atari: AtariEpisodes) -> Self {
        Self { atari: Some(atari), ..self.clone() }
    }

    pub(super) fn to_json(&self) -> Json {
        let Self { id, arguments, wrappers, keys, atari } = self;
        let atari = atari.map(|episodes| match episodes {
            AtariEpisodes::Games => "games",
            AtariEpisodes::Lives => "lives",
        });
        let arguments: serde_json::Map<String, Json> = arguments.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        json!({ "id": id, "arguments": arguments, "wrappers": wrappers, "keys": keys, "atari": atari })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_arguments_wrappers_and_keys() {
        let query = Query::parse("minigrid/Empty-v0?size=5&wrapper=A(3)&wrapper=b.C&keys=image,direction").unwrap();
        assert_eq!(query.id, "minigrid/Empty-v0");
        assert_eq!(query.arguments, [("size".into(), "5".into())]);
        assert_eq!(query.wrappers, ["A(3)", "b.C"]);
        assert_eq!(query.keys, ["image", "direction"]);
        assert_eq!(
            Query::parse("A-v0").unwrap().to_json(),
            json!({ "id": "A-v0", "arguments": {}, "wrappers": [], "keys": [], "atari": null })
        );
        assert!(!query.is_plain_game() && !Query::parse("Pong-v5?obs_type=ram").unwrap().is_plain_game());
        assert!(Query::parse("Pong-v5?mode=1").unwrap().is_plain_game());
        let game = query.preprocessed(AtariEpisodes::Lives).to_json();
        assert_eq!((&game["atari"], &game["keys"]), (&json!("lives"), &json!(["image", "direction"])));
    }

    #[test]
    fn wrong_names_are_errors() {
        for (text, problem) in [
            ("", "expected gym:ID"),
            ("?a=1", "expected gym:ID"),
            ("A v0", "expected gym:ID"),
            ("A-v0?size", "expected gym:ID?key=value"),
            ("A-v0?=3", "expected gym:ID?key=value"),
            ("A-v0?size=3&size=4", "size: expected one value"),
        ] {
            let error = Query::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
