//! Pretrained language models, from a folder in Hugging Face's layout or a GGUF file: their shape, their parameters, their tokens and their chat template.
//! Nothing is downloaded.
//!
//! | source | families | tokens | template |
//! |---|---|---|---|
//! | folder: `config.json`, `model.safetensors` or its shards | `llama` (SmolLM, too), `qwen2`, `qwen3`, `gpt2` | `tokenizer.json` | `chat_template.jinja` or `tokenizer_config.json` |
//! | GGUF file, tensors in F32, F16, BF16, `Q8_0`, `Q4_0`, `Q4_1` | the same | its metadata | its metadata |
//!
//! ```no_run
//! use gradus_language::{Message, Model};
//!
//! let model = Model::open("models/SmolLM2-135M-Instruct.Q4_1.gguf".as_ref())?;
//! let prompt = model.conversation(&[Message::user("What is the capital of France?")])?;
//! println!("{} layers, {} tokens: {}", model.shape().layers, prompt.len(), model.decode(&prompt));
//! # Ok::<(), gradus_language::LanguageError>(())
//! ```

mod folder;
mod gguf;
mod peft;
mod shape;
mod template;
mod tokens;
mod write;

use std::path::{Path, PathBuf};

use gradus_base::tensors::Tensors;

use folder::Folder;
use gguf::Gguf;
pub use peft::Adapter;
pub use shape::{Family, Shape};
use template::Template;
use tokens::Tokens;

/// A model, its tokens or its template could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("model {}: {problem}", path.display())]
pub struct LanguageError {
    /// The folder or file.
    pub path: PathBuf,
    /// What was expected, and what was found, in one line.
    pub problem: String,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// Its text.
    pub content: String,
}

impl Message {
    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: "user".into(), content: content.into() }
    }
}

/// Returns the text of a conversation by a chat template with these tokens for the beginning and the end of a text.
///
/// ```
/// use gradus_language::{Message, render};
///
/// let template = "{{ bos_token }}{% for message in messages %}{{ message.role }}: {{ message.content | trim }}\n{% endfor %}";
/// assert_eq!(render(template, ("<s>", "</s>"), &[Message::user(" Hi ")])?, "<s>user: Hi\n");
/// # Ok::<(), String>(())
/// ```
pub fn render(template: &str, (bos, eos): (&str, &str), messages: &[Message]) -> Result<String, String> {
    Template::new(template.into(), bos.into(), eos.into())?.render(messages)
}

/// Where the parameters are.
enum Source {
    Folder(Folder),
    Gguf(Gguf),
}

/// A pretrained model, whose parameters are read when they are asked for.
pub struct Model {
    path: PathBuf,
    shape: Shape,
    source: Source,
    tokens: Tokens,
    template: Template,
}

impl Model {
    /// Opens the folder or GGUF file `path`. Reads everything but the parameters.
    pub fn open(path: &Path) -> Result<Self, LanguageError> {
        let opened = if path.is_dir() { Self::open_folder(path) } else { Self::open_file(path) };
        opened.map_err(|problem| LanguageError { path: path.into(), problem: problem.replace('\n', " ") })
    }

    fn open_folder(path: &Path) -> Result<Self, String> {
        let folder = Folder::open(path)?;
        let tokens = folder.tokens()?;
        let (shape, template) = (folder.shape()?, folder.template()?);
        Self { path: path.into(), shape, source: Source::Folder(folder), tokens, template }.checked()
    }

    fn open_file(path: &Path) -> Result<Self, String> {
        let file = Gguf::open(path)?;
        let tokens = file.tokens()?;
        let (shape, template) = (file.shape()?, file.template()?);
        Self { path: path.into(), shape, source: Source::Gguf(file), tokens, template }.checked()
    }

    fn checked(self) -> Result<Self, String> {
        let (tokens, rows) = (self.tokens.len(), self.shape.vocabulary);
        if tokens > rows {
            return Err(format!("tokeniser: expected at most the {rows} tokens of the model, got {tokens}"));
        }
        Ok(self)
    }

    /// The folder or file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The shape of its layers.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Reads all parameters, in f32, with the names of Llama's tensors.
    pub fn tensors(&self) -> Result<Tensors, LanguageError> {
        let read = match &self.source {
            Source::Folder(folder) => folder.tensors(&self.shape),
            Source::Gguf(file) => file.tensors(&self.shape),
        };
        read.map_err(|problem| self.error(problem))
    }

    /// The tokens that end an answer; the first is the one that is written behind a right answer.
    pub fn ends(&self) -> &[u32] {
        self.tokens.ends()
    }

    /// Returns the tokens of a text, without special tokens before or behind it. The names of special tokens in it are text, too. A character without tokens is an error.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, LanguageError> {
        self.tokens.check_whole(text).and_then(|()| self.tokens.encode(text, false)).map_err(|problem| self.error(problem))
    }

    /// Returns the text of tokens. Bytes that are no UTF-8 become the replacement character.
    pub fn decode(&self, tokens: &[u32]) -> String {
        self.tokens.decode(tokens)
    }

    /// Returns the text of a conversation by the model's chat template, up to the beginning of the assistant's next answer.
    pub fn render(&self, messages: &[Message]) -> Result<String, LanguageError> {
        self.template.render(messages).map_err(|problem| self.error(problem))
    }

    /// Returns the tokens of [`render`](Model::render).
    pub fn conversation(&self, messages: &[Message]) -> Result<Vec<u32>, LanguageError> {
        messages.iter().try_for_each(|message| self.tokens.check_whole(&message.content)).map_err(|problem| self.error(problem))?;
        let text = self.render(messages)?;
        self.tokens.encode(&text, true).map_err(|problem| self.error(problem))
    }

    fn error(&self, problem: String) -> LanguageError {
        LanguageError { path: self.path.clone(), problem: problem.replace('\n', " ") }
    }
}
