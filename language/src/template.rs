//! Chat templates: Jinja, with what Hugging Face's templates expect.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, context};

use crate::Message;

/// The template of a model, with its special tokens; empty if the model has none.
pub(crate) struct Template {
    pub text: String,
    pub bos: String,
    pub eos: String,
}

impl Template {
    /// Checks that the text is a template.
    pub fn new(text: String, bos: String, eos: String) -> Result<Self, String> {
        let template = Self { text, bos, eos };
        template.environment().map(|_| ()).map_err(|error| template.problem(&error))?;
        Ok(template)
    }

    fn problem(&self, error: &Error) -> String {
        let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
        let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        format!("chat template{line}: {}{detail}", error.kind())
    }

    fn environment(&self) -> Result<Environment<'_>, Error> {
        let mut environment = Environment::new();
        // as in transformers
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |text: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, text))
        });
        environment.add_template("chat", &self.text)?;
        Ok(environment)
    }

    /// Returns the text of a conversation, up to the beginning of the next answer.
    pub fn render(&self, messages: &[Message]) -> Result<String, String> {
        if self.text.is_empty() {
            return Err("expected a model with a chat template, got none".into());
        }
        let messages: Vec<_> = messages.iter().map(|Message { role, content }| context! { role, content }).collect();
        let values = context! { messages, add_generation_prompt => true, bos_token => &self.bos, eos_token => &self.eos };
        let rendered = self.environment().and_then(|environment| environment.get_template("chat")?.render(values));
        rendered.map_err(|error| self.problem(&error))
    }
}
