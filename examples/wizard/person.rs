//! Whoever answers: a person at a terminal, or lines from a script.

use std::io::{self, Read};

use inquire::autocompletion::Replacement;
use inquire::{Autocomplete, Confirm, CustomUserError, InquireError, Select, Text};
use tokio::runtime::Handle;
use workflow::guided::{Actions, Guide};

use crate::project::{Project, ProjectStage};

pub(crate) type Wizard = Guide<Project, ProjectStage>;

/// What the person said.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    /// An answer to what was asked.
    Text(String),
    /// A button.
    Press(Button),
    /// Nothing any more: they left, and will come back.
    Left,
}

/// What a person may press instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Button {
    Next,
    Back,
    Skip,
    Retry,
    Cancel,
    /// Everything is taken back.
    Undo,
}

const BUTTONS: [(Button, &str); 6] = [
    (Button::Next, "next"),
    (Button::Back, "back"),
    (Button::Skip, "skip"),
    (Button::Retry, "retry"),
    (Button::Cancel, "cancel"),
    (Button::Undo, "undo"),
];

/// How it is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Line,
    YesOrNo,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// By a button only.
    Button,
}

/// Asks a person at a terminal. Every keystroke of a line is kept in the guide before the next one.
pub(crate) fn ask_at_the_terminal(
    wizard: &Wizard,
    title: &str,
    answer: Answer,
) -> Result<Said, InquireError> {
    let view = wizard.view();
    let stage = view.stages.iter().find(|stage| Some(stage.name) == view.at);
    let help = stage.and_then(|stage| stage.help.clone());
    let help = format!("{}  (Esc: back and more)", help.unwrap_or_default());
    let said = match answer {
        Answer::Line => Text::new(title)
            .with_help_message(&help)
            .with_initial_value(&view.state.draft)
            .with_autocomplete(Drafts(wizard.clone()))
            .prompt_skippable()?,
        Answer::YesOrNo => Confirm::new(title)
            .with_help_message(&help)
            .with_default(false)
            .prompt_skippable()?
            .map(|yes| if yes { "yes" } else { "no" }.to_owned()),
        Answer::OneOf(choices) => Select::new(title, choices.to_vec())
            .with_help_message(&help)
            .prompt_skippable()?
            .map(str::to_owned),
        Answer::Button => None,
    };
    if let Some(text) = said {
        return Ok(Said::Text(text));
    }
    let offered = BUTTONS
        .iter()
        .filter(|(button, _)| is_offered(*button, view.actions));
    let offered = offered
        .map(|(_, word)| *word)
        .chain(["leave, and come back later"]);
    let chosen = Select::new(title, offered.collect()).prompt_skippable()?;
    let button = BUTTONS.iter().find(|(_, word)| Some(*word) == chosen);
    Ok(button.map_or(Said::Left, |(button, _)| Said::Press(*button)))
}

fn is_offered(button: Button, actions: Actions) -> bool {
    match button {
        Button::Next => actions.next,
        Button::Back => actions.back,
        Button::Skip => actions.skip,
        Button::Retry => actions.retry,
        Button::Cancel => actions.cancel,
        Button::Undo => true,
    }
}

/// Is told of each keystroke, as what completes a line is.
#[derive(Clone)]
struct Drafts(Wizard);

impl Autocomplete for Drafts {
    fn get_suggestions(&mut self, typed: &str) -> Result<Vec<String>, CustomUserError> {
        if self.0.view().state.draft != typed {
            keep(&self.0, typed)?;
        }
        Ok(Vec::new())
    }

    fn get_completion(
        &mut self,
        _typed: &str,
        _highlighted: Option<String>,
    ) -> Result<Replacement, CustomUserError> {
        Ok(Replacement::None)
    }
}

/// What was typed so far is durable when this returns.
fn keep(wizard: &Wizard, typed: &str) -> Result<(), CustomUserError> {
    let typed = typed.to_owned();
    let edit = wizard.edit(move |project| project.draft = typed);
    Handle::current().block_on(edit.into_future())?;
    Ok(())
}

/// Reads a script: a line is an answer, and `:back` presses a button. Each byte of an answer is kept before the next one is read.
pub(crate) fn read_a_line(wizard: &Wizard, title: &str, answer: Answer) -> io::Result<Said> {
    let mut typed = match answer {
        Answer::Line => wizard.view().state.draft.clone(),
        _ => String::new(),
    };
    println!("{title} {typed}");
    let mut byte = [0];
    loop {
        if io::stdin().read(&mut byte)? == 0 {
            return Ok(Said::Left);
        }
        if byte[0] == b'\n' {
            break;
        }
        typed.push(char::from(byte[0]));
        if matches!(answer, Answer::Line) && !typed.starts_with(':') {
            keep(wizard, &typed).map_err(io::Error::other)?;
        }
    }
    let pressed = BUTTONS
        .iter()
        .find(|(_, word)| typed.strip_prefix(':') == Some(word));
    Ok(match pressed {
        Some((button, _)) => Said::Press(*button),
        None => Said::Text(typed),
    })
}
