//! Editors and programs that open something.

use portcullis_core::effect::Verb::{Read, Write};

use super::super::interpreter::{Interpreter, Stdin};
use super::options::Parsed;
use super::spec::*;
use super::words;

const EDITS: Act = Act::All(&[READ, WRITE]);

pub(super) const SPECS: &[Spec] = &[
    spec("vim vi nvim gvim view vimdiff ex ed red mg").by(vim).lenient().options(&[
        values("-c --cmd -S -T -t -q"),
        attached("-p -o -O -s"),
        does("-u -U", EXECUTE),
        does("-i --listen --startuptime", WRITE),
        does("-w -W", WRITE),
    ]),
    spec("nano pico micro joe ne kak hx helix code code-insiders codium subl atom gedit kate zed mate")
        .each(EDITS)
        .lenient()
        .by(installs)
        .options(&[values(
            "--install-extension --uninstall-extension --user-data-dir --extensions-dir --syntax -Y",
        )]),
    spec("emacs emacsclient").each(EDITS).options(&[
        does("-l --load --script", EXECUTE),
        does("--eval -e --execute -f --funcall", Act::Code("lisp")),
        flags("-nw -Q -q --batch -batch --quick --no-init-file -t -c -n --daemon"),
    ]),
    spec("open xdg-open gio gvfs-open start wslview see sensible-browser gnome-open kde-open")
        .by(opens)
        .lenient()
        .options(&[values("-a -b")]),
    spec("firefox chromium chromium-browser google-chrome lynx w3m links elinks brave")
        .each(Act::Url(Read))
        .by(|call, _| !call.unlisted)
        .lenient(),
    spec("pandoc convert magick ffmpeg ffprobe sox gs pdftotext wkhtmltopdf inkscape libreoffice soffice")
        .by(|call, shell| {
            // Formats of these programs can name any file, or program.
            call.act_on_each(Act::Place(Read), &call.operands, shell);
            if let Some(last) = call.operands.last() {
                call.act(Act::Path(Write), last, shell);
            }
            matches!(call.call.program, "ffprobe" | "pdftotext")
        })
        .options(&[does("-o --output", WRITE), values("-f -t -i --from --to")])
        .lenient(),
];

/// Commands of an editor can do anything that a shell can.
fn vim(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let files: Vec<_> =
        call.operands.iter().filter(|word| !words::text(word).starts_with('+')).cloned().collect();
    call.act_on_each(EDITS, &files, shell);
    let mut commands = call.values(&["-c", "--cmd"]);
    commands.extend(call.operands.iter().filter_map(|word| words::strip(word, "+")));
    call.act_on_each(EXECUTE, &call.values(&["-S", "-s"]), shell);
    let harmless =
        ["q", "q!", "wq", "x", "qa", "qa!", "wqa", "wq!", "syntax on", "set nu", "set number", "$", ""];
    for command in &commands {
        let text = words::text(command).trim().trim_start_matches(':');
        if let Some(script) = text.strip_prefix('!') {
            shell.script(&words::part(command, script));
        } else if !harmless.contains(&text) && !text.bytes().all(|byte| byte.is_ascii_digit()) {
            shell.unknown("vim", "commands of the editor are not read", command.range.clone());
        }
    }
    if matches!(call.call.program, "ed" | "ex" | "red") && call.call.stdin != Stdin::None {
        shell.unknown("ed", "commands of the editor are not read", call.call.range.clone());
    }
    !call.has("-s") || matches!(call.call.program, "ex" | "ed" | "red")
}

fn installs(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    for extension in call.values(&["--install-extension", "--uninstall-extension"]) {
        call.act(setting("editor/"), &extension, shell);
    }
    true
}

/// `open FILE`, `open -a APPLICATION`, `xdg-open URL`.
fn opens(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.act_on_each(Act::Place(Read), &call.operands, shell);
    // What is opened may be a program.
    let runs = call.operands.iter().any(|word| {
        let text = words::text(word);
        [".app", ".command", ".desktop", ".sh", ".exe", ".jar"].iter().any(|end| text.ends_with(end))
    });
    !runs && !call.has_any(&["-a", "-b"])
}
