//! Answers questions about a model's tokens and templates, for programs that check them: one JSON object per line in, one value per line out.
//!
//! `{"text": "..."}` gives the tokens of a text, `{"ids": [...]}` the text of tokens, `{"messages": [...]}` a conversation by the model's template, and
//! `{"messages": [...], "template": "...", "bos": "...", "eos": "..."}` by another.

use std::io::{BufRead, Write};

use gradus_language::{Message, Model, render};
use serde_json::{Value, json};

fn answer(model: &Model, question: &Value) -> Result<Value, String> {
    let text = |key: &str| question[key].as_str().unwrap_or_default();
    if let Some(ids) = question["ids"].as_array() {
        let ids: Vec<u32> = ids.iter().filter_map(Value::as_u64).map(|id| id as u32).collect();
        return Ok(model.decode(&ids).into());
    }
    let Some(messages) = question["messages"].as_array() else {
        return model.encode(text("text")).map(|ids| json!(ids)).map_err(|error| error.to_string());
    };
    let of = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let messages: Vec<Message> = messages.iter().map(|one| Message { role: of(one, "role"), content: of(one, "content") }).collect();
    let rendered = match question["template"].as_str() {
        Some(template) => render(template, (text("bos"), text("eos")), &messages),
        None => model.render(&messages).map_err(|error| error.problem),
    };
    rendered.map(Value::from)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected a model, got none")?;
    let model = Model::open(path.as_ref())?;
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for line in std::io::stdin().lock().lines() {
        let found = answer(&model, &serde_json::from_str(&line?)?).unwrap_or_else(|error| json!({ "error": error }));
        writeln!(out, "{found}")?;
    }
    Ok(())
}
