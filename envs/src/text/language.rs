//! Worlds `chat:PATH?model=MODEL`: the problems of a file, asked in the language of a pretrained model.

use std::path::Path;

use super::FileTask;
use crate::{EnvError, EnvSpec};
use gradus_base::files::expect_file;

/// The name of a world without `chat:`: the file of the problems, and the folder or file of the model.
pub fn parts_of_chat(name: &str) -> Result<(&str, &str), EnvError> {
    let wrong = |got: &str| {
        EnvError::Text(format!("expected chat:PATH?model=MODEL, such as chat:questions.jsonl?model=models/smollm2.gguf, got {got}"))
    };
    let (problems, rest) = name.split_once('?').ok_or_else(|| wrong("no model"))?;
    let model = rest.strip_prefix("model=").ok_or_else(|| wrong(&format!("`{rest}`")))?;
    match (problems, model) {
        ("", _) => Err(wrong("no file")),
        (_, "") => Err(wrong("no model")),
        parts => Ok(parts),
    }
}

/// Returns the world `chat:REST`.
pub(crate) fn find(rest: &str) -> Result<EnvSpec, EnvError> {
    let (problems, model) = parts_of_chat(rest)?;
    if let Err(problem) = expect_file(Path::new(problems)) {
        return Err(EnvError::Text(format!("cannot read {problems}: {problem}")));
    }
    let language = open(Path::new(model))?;
    let task = FileTask::read_in(Path::new(problems), language)?;
    let world = EnvSpec::text(&format!("chat:{rest}"), task)?;
    Ok(EnvSpec { about: "problems from a file, in the language of a pretrained model".into(), ..world })
}

#[cfg(not(feature = "language"))]
fn open(_: &Path) -> Result<std::sync::Arc<dyn super::Language>, EnvError> {
    Err(EnvError::Text(
        "worlds chat: expected a program built with the feature language, got one without; build it with --features language".into(),
    ))
}

#[cfg(feature = "language")]
pub use opened::{Pretrained, open};

#[cfg(feature = "language")]
mod opened {
    use std::any::Any;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::SystemTime;

    use gradus_language::{Message, Model};

    use crate::EnvError;
    use crate::text::Language;

    /// A pretrained model as a language.
    pub struct Pretrained(pub Model);

    /// The path of a model, and the time of its last change.
    type Known = (PathBuf, Option<SystemTime>);

    /// Models that are open.
    static OPEN: Mutex<BTreeMap<Known, Arc<Pretrained>>> = Mutex::new(BTreeMap::new());

    /// Opens the folder or file of a model, without its parameters. The same model is read once.
    pub fn open(path: &Path) -> Result<Arc<Pretrained>, EnvError> {
        let changed = path.metadata().and_then(|about| about.modified()).ok();
        let key = (path.to_path_buf(), changed);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.get(&key) {
            return Ok(known.clone());
        }
        let model = Arc::new(Pretrained(Model::open(path).map_err(|error| EnvError::Text(error.to_string()))?));
        open.insert(key, model.clone());
        Ok(model)
    }

    impl Language for Pretrained {
        /// The rows of the embeddings, of which the last may belong to no token.
        fn tokens(&self) -> usize {
            self.0.shape().vocabulary
        }

        fn context(&self) -> usize {
            self.0.shape().context
        }

        fn ends(&self) -> &[u32] {
            self.0.ends()
        }

        fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
            self.0.encode(text).map_err(|error| error.to_string())
        }

        fn decode(&self, tokens: &[u32]) -> String {
            self.0.decode(tokens)
        }

        fn conversation(&self, messages: &[(String, String)]) -> Result<Vec<u32>, String> {
            let messages: Vec<Message> =
                messages.iter().map(|(role, content)| Message { role: role.clone(), content: content.clone() }).collect();
            self.0.conversation(&messages).map_err(|error| error.to_string())
        }

        /// The absolute path: a run stores paths relative to its folder.
        fn name(&self) -> String {
            let path = self.0.path();
            path.canonicalize().unwrap_or_else(|_| path.into()).display().to_string()
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }
}
