//! `cargo xtask pictures`: the pictures of a terminal in the README, made of what the commands print.
//!
//! Nothing is drawn by hand: the commands run in a state folder of their own, and their coloured output becomes an SVG.
//! Names that differ from run to run stand in the pictures as they were when these were made.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process::{Failure, Program, Result, doing, root};

/// Width and height of a character, in pixels.
const CELL: (f32, f32) = (8.4, 19.0);
const MARGIN: f32 = 18.0;
/// Longest line that is drawn, in characters; the rest is cut off, and `…` says so.
const COLUMNS_MAX: usize = 104;
/// How long a held call is waited for.
const HELD_MAX: Duration = Duration::from_secs(20);

/// A call that the bundle for a developer's machine holds, as a coding agent's client tells it.
const HELD_CALL: &str = r#"{"session_id":"s1","cwd":"PLACE","permission_mode":"default",
  "hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t1",
  "tool_input":{"command":"git push origin main"}}"#;

/// Makes all pictures.
///
/// # Errors
/// A command failed, or its output is not what the pictures show.
pub(crate) fn make() -> Result<()> {
    Program::cargo(["build", "--quiet", "--package", "portcullis"]).run()?;
    let place = Place::make()?;
    let demo = demo(&place)?;
    write("docs/demo.svg", &demo)?;
    let held = held(&place)?;
    write("docs/held.svg", &held)?;
    console()
}

/// Pages of the console, as its tests show them to a browser, and what they are called in the manual.
const PAGES: [(&str, &str); 3] = [
    ("overview-full-light", "docs/console-overview.png"),
    ("approval-open-light", "docs/console-approval.png"),
    ("policy-edit-looser-light", "docs/console-policy.png"),
];

/// Takes the pictures that the tests take, and keeps those of the README.
fn console() -> Result<()> {
    let tests = [
        "console::full::what_goes_on",
        "console::pages::a_held_call_is_granted",
        "console::desk::a_policy_is_created",
    ];
    let test = ["test", "--quiet", "--package", "portcullis-gateway", "--test", "it", "--"];
    Program::cargo(test).args(tests).run()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    for (name, path) in PAGES {
        let taken = target.join("tmp/console").join(format!("{name}.png"));
        let why = "copy the picture that the tests took; they take none without `chromedriver`";
        doing(why, fs::copy(taken, root().join(path)).map(drop))?;
        println!("{path}");
    }
    Ok(())
}

fn write(path: &str, lines: &[Vec<Piece>]) -> Result<()> {
    doing(&format!("write `{path}`"), fs::write(root().join(path), svg(lines)))?;
    println!("{path}");
    Ok(())
}

/// A folder for the commands, removed at the end with whatever they started.
struct Place {
    folder: PathBuf,
    program: PathBuf,
}

impl Place {
    fn make() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("pictures-{}", std::process::id()));
        doing("make a folder", fs::create_dir_all(folder.join("project")))?;
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        Ok(Self { folder, program: target.join("debug/portcullis") })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("PORTCULLIS_HOME", self.folder.join("home")).env("CLICOLOR_FORCE", "1");
        command
    }

    fn output(&self, arguments: &[&str]) -> Result<String> {
        let output = doing("run portcullis", self.command(arguments).stderr(Stdio::null()).output())?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let home = self.folder.join("home");
        if let Ok(daemon) = fs::read_to_string(home.join("daemon.pid")) {
            let _ = Command::new("kill").args(["-s", "TERM", daemon.trim()]).status();
            std::thread::sleep(Duration::from_secs(1));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Two acts of the demo, and what becomes of the record.
fn demo(place: &Place) -> Result<Vec<Vec<Piece>>> {
    let printed = place.output(&["demo"])?;
    let act = |number: &str| part(&printed, number, 10);
    let mut lines = vec![typed("portcullis demo")];
    for shown in [act("2/5")?, act("5/5")?, part(&printed, "The record", 3)?, part(&printed, "A forger", 3)?]
    {
        lines.push(Vec::new());
        lines.extend(shown.iter().map(|line| pieces(line)));
    }
    Ok(lines)
}

/// The lines from the one with `begin` on to the next empty one, at most so many.
fn part<'t>(printed: &'t str, begin: &str, limit: usize) -> Result<Vec<&'t str>> {
    let from = printed.lines().skip_while(|line| !plain(line).trim_start().starts_with(begin));
    let lines: Vec<&str> = from.take_while(|line| !plain(line).trim().is_empty()).take(limit).collect();
    if lines.is_empty() {
        return Err(Failure::new(format!("the demo prints nothing that begins with `{begin}`")));
    }
    Ok(lines)
}

/// A coding agent wants to push, and a person looks at it.
fn held(place: &Place) -> Result<Vec<Vec<Piece>>> {
    let project = place.folder.join("project");
    let event = HELD_CALL.replace("PLACE", &project.display().to_string());
    let file = place.folder.join("event.json");
    doing("write the event", fs::write(&file, event))?;
    let input = doing("open the event", fs::File::open(&file))?;
    let mut hook = place.command(&["hook"]);
    hook.env("CLAUDE_PROJECT_DIR", &project).stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
    let mut hook = doing("start the hook", hook.spawn())?;
    let listed = waiting(place);
    let shown = listed.and_then(|listed| {
        let id: String = plain(listed.lines().nth(1).unwrap_or_default()).chars().take(8).collect();
        Ok((listed, place.output(&["approvals", "show", &id])?, id))
    });
    let _ = hook.kill();
    let _ = hook.wait();
    let (listed, shown, id) = shown?;
    let mut lines = vec![typed("portcullis approvals list")];
    lines.extend(listed.lines().map(pieces));
    lines.push(Vec::new());
    lines.push(typed(&format!("portcullis approvals show {id}")));
    lines.extend(shown.lines().map(pieces));
    Ok(lines)
}

/// The list of approvals, once there is one.
fn waiting(place: &Place) -> Result<String> {
    let until = std::time::Instant::now() + HELD_MAX;
    while std::time::Instant::now() < until {
        let listed = place.output(&["approvals", "list"])?;
        if listed.lines().count() > 1 {
            return Ok(listed);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Err(Failure::new("the call of the picture was not held"))
}

/// A stretch of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    text: String,
    class: String,
}

fn typed(command: &str) -> Vec<Piece> {
    vec![
        Piece { text: "$ ".to_owned(), class: "dim".to_owned() },
        Piece { text: command.to_owned(), class: "bold".to_owned() },
    ]
}

/// A line with its colours taken apart: `ESC [ numbers m` and nothing else is read.
fn pieces(line: &str) -> Vec<Piece> {
    let (mut pieces, mut classes) = (Vec::new(), Vec::<&str>::new());
    let mut columns = 0;
    for (number, stretch) in line.split("\u{1b}[").enumerate() {
        let text = match stretch.split_once('m') {
            Some((codes, text)) if number > 0 => {
                codes.split(';').for_each(|code| style(code, &mut classes));
                text
            }
            _ => stretch,
        };
        let mut text: String = text.chars().take(COLUMNS_MAX.saturating_sub(columns)).collect();
        columns += text.chars().count();
        if columns == COLUMNS_MAX && text.pop().is_some() {
            text.push('…');
        }
        if !text.is_empty() {
            pieces.push(Piece { text, class: classes.join(" ") });
        }
    }
    pieces
}

fn style(code: &str, classes: &mut Vec<&'static str>) {
    match code {
        "" | "0" => classes.clear(),
        "1" => classes.push("bold"),
        "2" => classes.push("dim"),
        "31" | "91" => classes.push("red"),
        "32" | "92" => classes.push("green"),
        "33" | "93" => classes.push("yellow"),
        "36" | "96" => classes.push("cyan"),
        _ => {}
    }
}

fn plain(line: &str) -> String {
    pieces(line).into_iter().map(|piece| piece.text).collect()
}

/// A terminal with these lines, dark in every theme.
fn svg(lines: &[Vec<Piece>]) -> String {
    let columns = lines.iter().map(|line| line.iter().map(|piece| piece.text.chars().count()).sum::<usize>());
    #[expect(clippy::cast_precision_loss, reason = "a picture has some hundred lines and columns")]
    let (columns, rows) = (columns.max().unwrap_or_default() as f32, lines.len() as f32);
    let (width, height) = (columns * CELL.0 + 2.0 * MARGIN, rows * CELL.1 + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
         <style>text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d7dce2; white-space: pre }} .bold {{ font-weight: 600; fill: #ffffff }} .dim {{ fill: #8b95a1 }} .red {{ fill: #ff7b72; font-weight: 600 }} .green {{ fill: #6fcf7f }} .yellow {{ fill: #e8b64c }} .cyan {{ fill: #6cb6ff }}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"#14181d\"/>\n"
    );
    let mut y = MARGIN + 14.0;
    for line in lines {
        if !line.is_empty() {
            let _ = write!(svg, "<text x=\"{MARGIN}\" y=\"{y:.0}\" xml:space=\"preserve\">");
            for piece in line {
                let text = piece.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let _ = match piece.class.as_str() {
                    "" => write!(svg, "<tspan>{text}</tspan>"),
                    class => write!(svg, "<tspan class=\"{class}\">{text}</tspan>"),
                };
            }
            svg.push_str("</text>\n");
        }
        y += CELL.1;
    }
    svg.push_str("</svg>\n");
    svg
}

/// Whether the pictures of the README are there and were made by this program.
///
/// # Errors
/// One that is missing, or holds no text.
pub(crate) fn check() -> Vec<String> {
    let lacks = |path: &&str| {
        let text = fs::read_to_string(Path::new(&root()).join(path)).unwrap_or_default();
        !text.contains("ui-monospace") || !text.contains("<tspan")
    };
    let missing = ["docs/demo.svg", "docs/held.svg"].into_iter().filter(lacks);
    missing
        .map(|path| format!("{path}: not a picture of a terminal; make it with `cargo xtask pictures`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_classes_and_text_stays_text() {
        let line = pieces("\u{1b}[1m\u{1b}[31mdeny\u{1b}[0m a <b>");
        let of = |text: &str, class: &str| Piece { text: text.to_owned(), class: class.to_owned() };
        assert_eq!(line, [of("deny", "bold red"), of(" a <b>", "")]);
        let svg = svg(&[line]);
        assert!(svg.contains("<tspan class=\"bold red\">deny</tspan><tspan> a &lt;b&gt;</tspan>"), "{svg}");
    }

    #[test]
    fn a_long_line_is_cut_off_and_says_so() {
        let line = pieces(&"x".repeat(200));
        assert_eq!(line[0].text.chars().count(), COLUMNS_MAX);
        assert!(line[0].text.ends_with('…'));
    }
}
