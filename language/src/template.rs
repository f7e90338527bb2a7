//! Chat templates: Jinja, with what Hugging Face's templates expect.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value, context};

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
        environment.add_filter("tojson", |value: Value, options: Kwargs| -> Result<Value, Error> {
            let indent: Option<usize> = options.get("indent")?;
            options.assert_all_used()?;
            let mut text = String::new();
            write_json(&value, indent, 0, &mut text)?;
            Ok(Value::from_safe_string(text))
        });
        environment.add_template_owned("chat", without_generation(&self.text))?;
        Ok(environment)
    }

    /// Returns the text of a conversation, up to the beginning of the next answer.
    pub fn render(&self, messages: &[Message]) -> Result<String, String> {
        if self.text.is_empty() {
            return Err("expected a model with a chat template, got none".into());
        }
        let messages: Vec<_> = messages.iter().map(|Message { role, content }| context! { role, content }).collect();
        let values = context! { messages, add_generation_prompt => true, bos_token => &self.bos, eos_token => &self.eos, tools => (), documents => () };
        let rendered = self.environment().and_then(|environment| environment.get_template("chat")?.render(values));
        rendered.map_err(|error| self.problem(&error))
    }
}

/// Replaces transformers' blocks `generation`, which mark what an assistant has written, by blocks that change nothing.
fn without_generation(text: &str) -> String {
    let (mut found, mut rest) = (String::new(), text);
    while let Some((before, (tag, after))) = rest.split_once("{%").and_then(|(before, tag)| Some((before, tag.split_once("%}")?))) {
        let name = tag.trim_matches(['-', '+']).trim();
        let tag = match name {
            "generation" => tag.replace(name, "if true"),
            "endgeneration" => tag.replace(name, "endif"),
            _ => tag.to_owned(),
        };
        found.extend([before, "{%", &tag, "%}"]);
        rest = after;
    }
    found + rest
}

/// Writes a value as Python's `json.dumps(value, ensure_ascii=False, indent=indent)` does, which is the filter `tojson` of transformers.
fn write_json(value: &Value, indent: Option<usize>, depth: usize, out: &mut String) -> Result<(), Error> {
    let (first, between, last) = match indent {
        Some(n) => (format!("\n{:1$}", "", n * (depth + 1)), format!(",\n{:1$}", "", n * (depth + 1)), format!("\n{:1$}", "", n * depth)),
        None => (String::new(), ", ".into(), String::new()),
    };
    let [open, close] = match value.kind() {
        ValueKind::Map => ["{", "}"],
        ValueKind::Seq | ValueKind::Iterable => ["[", "]"],
        _ => {
            match value.as_str() {
                Some(text) => out.push_str(&serde_json::Value::from(text).to_string()),
                None if value.is_none() || value.is_undefined() => out.push_str("null"),
                None => out.push_str(&value.to_string()),
            }
            return Ok(());
        }
    };
    out.push_str(open);
    let is_map = value.kind() == ValueKind::Map;
    let mut is_empty = true;
    for item in value.try_iter()? {
        out.push_str(if is_empty { &first } else { &between });
        is_empty = false;
        if is_map {
            write_json(&Value::from(item.to_string()), None, 0, out)?;
            out.push_str(": ");
            write_json(&value.get_item(&item)?, indent, depth + 1, out)?;
        } else {
            write_json(&item, indent, depth + 1, out)?;
        }
    }
    if !is_empty {
        out.push_str(&last);
    }
    out.push_str(close);
    Ok(())
}
