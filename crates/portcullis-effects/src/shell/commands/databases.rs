//! Clients of databases: SQL on the command line, files of databases, dumps.

use portcullis_core::effect::Verb::{Delete, Read, Send, Write};

use super::super::interpreter::{Interpreter, Stdin};
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

const HOST: Opt = does("-h --host", Act::Host(Send));

pub(super) const SPECS: &[Spec] = &[
    spec("psql pgcli cockroach ysqlsh").by(postgres).options(&[
        does("-h --host", Act::Text),
        does("-c --command", Act::Text),
        does("-f --file", READ),
        does("-o --output", Act::By(output)),
        does("-L --log-file", WRITE),
        values("-d --dbname -U --username -p --port -v --set --variable -P --pset -F --field-separator -R -T"),
        flags("-a -A -b -e -E -H -l --list -n -q -s -S -t -w -W -x -X -z -0 -1 --no-psqlrc --csv --html --tuples-only"),
        flags("--no-align --quiet --single-transaction --expanded --no-password --password --echo-all --version --help"),
    ]),
    spec("mysql mariadb mycli").by(mysql).lenient().options(&[
        does("-h --host", Act::Host(Send)),
        does("--defaults-file --defaults-extra-file", SETTINGS),
        does("--ssl-ca --ssl-cert --ssl-key", READ),
        does("--tee", WRITE),
        does("--pager", Act::Script),
        does("--init-command", Act::Sql),
        does("--plugin-dir", EXECUTE),
        does("-S --socket", WRITE),
        values("-e --execute -u --user -P --port -D --database --default-character-set --protocol"),
        attached("-p --password"),
    ]),
    spec("sqlite3 sqlite litecli duckdb").by(sqlite).single_dash().options(&[
        does("-cmd", Act::Text),
        does("-init -f", READ),
        values("-separator -nullvalue -newline -maxsize -mmap -pagecache -lookaside -vfs -c -s"),
        flags("-batch -bail -column -csv -html -json -line -list -markdown -table -box -quote -header -noheader -readonly"),
        flags("-echo -interactive -safe -stats -tabs -ascii -deserialize -append -unsigned -help -version -nofollow -memtrace"),
    ]),
    spec("sqlcmd bcp isql clickhouse-client clickhouse snowsql usql trino presto").by(other_sql).lenient().options(&[
        does("-S -h --host", Act::Host(Send)),
        does("-i --queries-file -f --filename", READ),
        does("-o --output-file", WRITE),
        values("-d -U -P -u --user --password --port --database"),
        does("-Q -q --query --execute -e", Act::Sql),
    ]),
    spec("pg_dump pg_dumpall mysqldump mariadb-dump mongodump mongoexport sqldiff").lenient().by(dumps).options(&[
        HOST,
        does("-f --file -o --out --result-file -r --archive", WRITE),
        values("-d --dbname --db -U --username -u --user -p --port -P -t --table -n --schema -F --format -c --collection -T -N"),
        does("--uri", Act::Url(Send)),
    ]),
    spec("pg_restore mongorestore mongoimport mysqlimport").lenient().each(READ).by(restores).options(&[
        HOST,
        does("-f --file --archive", READ),
        values("-d --dbname --db -U --username -u --user -p --port -t --table -n --schema -F --format -c --collection -j"),
        does("--uri", Act::Url(Send)),
        flags("--drop --clean"),
    ]),
    spec("createdb dropdb createuser dropuser vacuumdb reindexdb pg_isready mysqladmin pg_ctl initdb redis-benchmark").lenient().by(admin).options(&[
        HOST,
        values("-U --username -u --user -p --port -P -O --owner -T --template -E"),
        does("-D --pgdata", WRITE),
        does("-l --log", WRITE),
    ]),
    spec("mongosh mongo").by(mongo).lenient().options(&[
        does("--host", Act::Host(Send)),
        does("-f --file", READ),
        values("--eval -u --username -p --password --port --authenticationDatabase"),
    ]),
    spec("redis-cli valkey-cli keydb-cli").by(redis).stops().options(&[
        does("-h", Act::Host(Send)),
        does("-s", WRITE),
        does("-u --uri", Act::Host(Send)),
        does("--cert --key --cacert", READ),
        does("--eval", EXECUTE),
        does("--rdb --functions-rdb", WRITE),
        values("-p -a --pass --user -n -r -i -d --pattern --count --sni"),
        flags("-x -c --raw --no-raw --csv --json --scan --bigkeys --memkeys --hotkeys --stat --latency --tls --pipe --insecure"),
        flags("--no-auth-warning --ldb --replica -2 -3 -4 -6 -e --cluster --verbose --intrinsic-latency"),
    ]),
    spec("cqlsh influx etcdctl consul nats kafka-topics kafka-console-producer rabbitmqctl").by(|_, _| false),
];

/// SQL on standard input.
fn sql_input(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    match call.call.stdin {
        Stdin::Text(text) => shell.sql(&words::literal(text, call.call.range.clone())),
        Stdin::Pipe | Stdin::File => {
            shell.unknown("sql", "statements come from the input", call.call.range.clone())
        }
        Stdin::None => {}
    }
}

/// The same for clients that have commands of their own among the statements.
fn client_input(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    match call.call.stdin {
        Stdin::Text(text) => statement(call, &words::literal(text, call.call.range.clone()), shell),
        _ => sql_input(call, shell),
    }
}

/// Statements in a file are not read.
fn sql_files(files: &[Word], shell: &mut Interpreter<'_, '_>) {
    for file in files {
        shell.unknown("sql", "statements stand in a file", file.range.clone());
    }
}

/// A statement or a command of the client itself: `\\! COMMAND`, `.shell COMMAND`, `\\copy … to 'FILE'`.
fn statement(call: &Parsed<'_>, text: &Word, shell: &mut Interpreter<'_, '_>) {
    if text.value.is_none() {
        shell.unknown("sql", "the statement is not known", text.range.clone());
        return;
    }
    let mut sql = String::new();
    for line in words::text(text).lines() {
        let line = line.trim_start();
        if line.starts_with('\\') || line.starts_with('.') {
            client_command(call, text, line, shell);
        } else {
            sql.push_str(line);
            sql.push('\n');
        }
    }
    if !sql.trim().is_empty() {
        shell.sql(&words::part(text, sql.trim_end()));
    }
}

/// A command of the client, on a line of `text`.
fn client_command(call: &Parsed<'_>, text: &Word, line: &str, shell: &mut Interpreter<'_, '_>) {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let script = |shell: &mut Interpreter<'_, '_>, script: &str| shell.script(&words::part(text, script));
    let file =
        words::part(text, rest.split_whitespace().last().unwrap_or_default().trim_matches(['\'', '"']));
    if matches!(command, "\\!" | ".shell" | ".system" | "\\system") {
        return script(shell, rest);
    }
    // Of some clients another command may follow, and what is in backquotes runs.
    if rest.contains(['\\', '`']) {
        return shell.unknown("sql", "a command of the client holds another", text.range.clone());
    }
    match command {
        "\\o" | "\\g" | "\\gx" | "\\w" | ".output" | ".once" | ".dump_to" | ".backup" | ".save" | ".log"
        | ".excel" | "\\T" => match rest.split_once('|') {
            Some((_, command)) => script(shell, command.trim_end_matches(['\'', '"'])),
            None => call.act(WRITE, &file, shell),
        },
        "\\i" | "\\ir" | "\\include" | ".read" | ".load" | ".open" | ".restore" | "\\source" | ".import" => {
            let source = match command {
                ".import" => words::part(text, imported(rest)),
                _ => file,
            };
            let quoted = words::text(&source).trim_start_matches(['\'', '"']);
            match rest.trim_start_matches(['\'', '"']).strip_prefix('|').or_else(|| quoted.strip_prefix('|'))
            {
                // What a command prints, rows or further statements.
                Some(_) => shell.unknown(
                    "sql program",
                    "runs a command and reads what it prints",
                    text.range.clone(),
                ),
                None => call.act(READ, &source, shell),
            }
            shell.unknown("sql", "statements or rows stand in a file", text.range.clone());
        }
        "\\copy" => copy(call, text, rest, shell),
        "\\c" | "\\connect" => {
            for word in rest.split_whitespace().filter(|word| *word != "-") {
                connect(call, &words::part(text, word), shell);
            }
            // `\\c DATABASE USER HOST`.
            if let Some(host) = rest.split_whitespace().nth(2).filter(|host| *host != "-") {
                call.act(Act::Host(Send), &words::part(text, host), shell);
            }
        }
        "\\l" | "\\l+" | "\\list" | "\\q" | "\\x" | "\\timing" | "\\pset" | "\\a" | "\\t" | "\\conninfo"
        | "\\z" | "\\sf" | "\\sv" | ".tables" | ".schema" | ".mode" | ".headers" | ".header"
        | ".databases" | ".indexes" | ".indices" | ".width" | ".dump" | ".quit" | ".exit" | ".help"
        | ".timer" | ".show" => {}
        _ if command.starts_with("\\d") => {}
        _ => shell.unknown("sql", "a command of the client", text.range.clone()),
    }
}

/// What `.import` reads: its first word that is not an option.
fn imported(rest: &str) -> &str {
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--skip" | "-skip" | "--schema" | "-schema" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => return word.trim_matches(['\'', '"']),
        }
    }
    ""
}

/// `\\copy TABLE to 'FILE'`, `… from program 'COMMAND'`: the client's own files and programs, the server's tables.
fn copy(call: &Parsed<'_>, text: &Word, rest: &str, shell: &mut Interpreter<'_, '_>) {
    let lower = rest.to_ascii_lowercase();
    let ends = [" to ", " from "].map(|word| Some((lower.rfind(word)?, word)));
    let Some((at, word)) = ends.into_iter().flatten().max() else {
        return shell.unknown("sql", "a command of the client", text.range.clone());
    };
    let place = rest.get(at + word.len()..).unwrap_or_default().trim();
    let program = place.get(..8).filter(|start| start.eq_ignore_ascii_case("program ")).map(str::len);
    let quoted = place.get(program.unwrap_or(0)..).unwrap_or_default().trim();
    let end = match quoted.strip_prefix('\'') {
        Some(inside) => inside.find('\'').map(|end| end + 1),
        None => Some(quoted.find(char::is_whitespace).unwrap_or(quoted.len())),
    };
    let named = end.and_then(|end| quoted.get(..end)).unwrap_or(quoted).trim_matches('\'');
    // A quote within is doubled.
    let doubled = end.is_none_or(|end| quoted.get(end + 1..).is_some_and(|more| more.starts_with('\'')));
    match (program, word) {
        _ if doubled => shell.unknown("sql", "what is copied is not understood", text.range.clone()),
        (Some(_), _) => shell.script(&words::part(text, named)),
        (None, _) if matches!(named, "stdin" | "stdout" | "pstdin" | "pstdout") => {}
        (None, " to ") => call.act(WRITE, &words::part(text, named), shell),
        (None, _) => call.act(READ, &words::part(text, named), shell),
    }
    let source = rest.get(..at).unwrap_or_default();
    let stream = if word == " to " { "to stdout" } else { "from stdin" };
    shell.sql(&words::literal(&format!("copy {source} {stream}"), text.range.clone()));
}

/// Where a client writes: a file, or a command that reads it.
fn output(word: &Word, shell: &mut Interpreter<'_, '_>) {
    match words::strip(word, "|") {
        Some(command) => shell.script(&command),
        None => shell.path(Write, word),
    }
}

/// The machines that a connection names: a URL, or `host=… hostaddr=…`.
fn connect(call: &Parsed<'_>, place: &Word, shell: &mut Interpreter<'_, '_>) {
    let text = words::text(place);
    let is_url = text.contains("://");
    if is_url {
        call.act(Act::Url(Send), place, shell);
    }
    // Blanks may stand around the sign.
    let fields = text.split('=').map(str::trim).collect::<Vec<_>>().join("=");
    let ends = |c: char| if is_url { matches!(c, '?' | '&') } else { c.is_whitespace() };
    for (name, value) in fields.split(ends).filter_map(|field| field.split_once('=')) {
        let hosts = value.trim_matches('\'').split(',').filter(|host| !host.is_empty());
        match name {
            "host" | "hostaddr" => hosts.for_each(|host| contact(call, &words::part(place, host), shell)),
            "service" => shell.unknown("sql", "a service names the machine elsewhere", place.range.clone()),
            _ => {}
        }
    }
}

/// A machine by name; one that is a path is a socket on this machine.
fn contact(call: &Parsed<'_>, host: &Word, shell: &mut Interpreter<'_, '_>) {
    let act = if words::text(host).starts_with(['/', '@']) { WRITE } else { Act::Host(Send) };
    call.act(act, host, shell);
}

fn postgres(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.values(&["-h", "--host"]).iter().for_each(|host| contact(call, host, shell));
    let places = call.operands.iter().cloned().chain(call.values(&["-d", "--dbname"]));
    places.for_each(|place| connect(call, &place, shell));
    let statements = call.values(&["-c", "--command"]);
    statements.iter().for_each(|text| statement(call, text, shell));
    let files = call.values(&["-f", "--file"]);
    sql_files(&files, shell);
    if statements.is_empty() && files.is_empty() && !call.has_any(&["-l", "--list"]) {
        client_input(call, shell);
    }
    true
}

fn mysql(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let statements = call.values(&["-e", "--execute"]);
    statements.iter().for_each(|text| statement(call, text, shell));
    if statements.is_empty() {
        client_input(call, shell);
    }
    true
}

/// `sqlite3 [FILE [SQL…]]`; without a file the database is in memory, and what is asked of it runs all the same.
fn sqlite(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let (file, statements) = match call.operands.split_first() {
        Some((file, statements)) => (Some(file), statements),
        None => (None, [].as_slice()),
    };
    if let Some(file) = file.filter(|file| words::text(file) != ":memory:") {
        let file = words::strip(file, "file:").unwrap_or_else(|| file.clone());
        let file = words::part(&file, words::text(&file).split('?').next().unwrap_or_default());
        call.act(if call.has("-readonly") { READ } else { Act::All(&[READ, WRITE]) }, &file, shell);
    }
    sql_files(&call.values(&["-init", "-f"]), shell);
    let mut texts = call.values(&["-cmd", "-c", "-s"]);
    texts.extend(statements.iter().cloned());
    texts.iter().for_each(|text| statement(call, text, shell));
    if statements.is_empty() {
        client_input(call, shell);
    }
    true
}

fn other_sql(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    sql_files(&call.values(&["-i", "--queries-file", "-f", "--filename"]), shell);
    sql_input(call, shell);
    call.call.program != "bcp"
}

fn dumps(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let places = call.operands.iter().cloned().chain(call.values(&["-d", "--dbname"]));
    places.for_each(|place| connect(call, &place, shell));
    let table =
        call.operands.first().map_or_else(|| "*".to_owned(), |name| format!("{}.*", words::text(name)));
    let table = if call.operands.first().is_some_and(|name| words::text(name).contains("://")) {
        "*".to_owned()
    } else {
        table
    };
    call.act(
        Act::Named(Read, portcullis_core::effect::ResourceKind::Table, ""),
        &call.literal(&table),
        shell,
    );
    if call.call.program == "mongodump" && !call.has_any(&["-o", "--out", "--archive"]) {
        call.act(WRITE, &call.literal("dump"), shell);
    }
    true
}

fn restores(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.values(&["-d", "--dbname"]).iter().for_each(|place| connect(call, place, shell));
    let tables = call.literal("*");
    call.act(Act::Named(Write, portcullis_core::effect::ResourceKind::Table, ""), &tables, shell);
    if call.has_any(&["--drop", "--clean", "-c"]) {
        call.act_plainly(
            Act::Named(Delete, portcullis_core::effect::ResourceKind::Table, ""),
            &tables,
            &["unbounded"],
            shell,
        );
    }
    true
}

fn admin(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    use portcullis_core::effect::ResourceKind::Table;
    let name = call.operands.last().map_or("*", words::text);
    match (call.call.program, call.operand(0)) {
        ("dropdb", _) | ("mysqladmin", "drop") => {
            call.act_plainly(
                Act::Named(Delete, Table, ""),
                &call.literal(&format!("{name}.*")),
                &["unbounded"],
                shell,
            );
        }
        ("pg_isready" | "redis-benchmark" | "vacuumdb" | "reindexdb", _)
        | ("mysqladmin", "status" | "ping" | "version") => {}
        ("createdb", _) | ("mysqladmin", "create") => {
            call.act(Act::Named(Write, Table, ""), &call.literal(&format!("{name}.*")), shell)
        }
        _ => call.act(setting("database/"), &call.literal(name), shell),
    }
    true
}

/// The language of this shell is JavaScript.
fn mongo(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    for place in &call.operands {
        if words::text(place).contains("://") {
            call.act(Act::Url(Send), place, shell);
        } else if words::text(place).ends_with(".js") {
            call.act(EXECUTE, place, shell);
        }
    }
    call.act_on_each(Act::Code("javascript"), &call.values(&["--eval"]), shell);
    !call.has_any(&["-f", "--file"]) && matches!(call.call.stdin, Stdin::None)
}

/// `redis-cli COMMAND KEY…`.
fn redis(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    use portcullis_core::effect::ResourceKind::Table;
    let key = call.operands.get(1).map_or("*", words::text);
    let table = call.literal(&format!("redis.{key}"));
    match call.operand(0).to_ascii_uppercase().as_str() {
        "" | "PING" | "INFO" | "TIME" | "DBSIZE" | "LASTSAVE" | "COMMAND" | "HELLO" | "ECHO" | "SELECT"
        | "AUTH" => {}
        "GET" | "MGET" | "KEYS" | "SCAN" | "HGET" | "HGETALL" | "LRANGE" | "SMEMBERS" | "ZRANGE" | "TTL"
        | "TYPE" | "EXISTS" | "STRLEN" | "LLEN" | "HKEYS" | "HVALS" | "SCARD" | "XRANGE" | "DUMP"
        | "OBJECT" | "MEMORY" => {
            call.act(Act::Named(Read, Table, ""), &table, shell);
        }
        "FLUSHALL" | "FLUSHDB" => {
            call.act_plainly(Act::Named(Delete, Table, ""), &call.literal("redis.*"), &["unbounded"], shell)
        }
        "DEL" | "UNLINK" | "HDEL" | "EXPIRE" | "GETDEL" => {
            call.act(Act::Named(Delete, Table, ""), &table, shell)
        }
        "SET" | "SETEX" | "HSET" | "LPUSH" | "RPUSH" | "SADD" | "ZADD" | "INCR" | "DECR" | "APPEND"
        | "MSET" | "RENAME" | "XADD" => {
            call.act(Act::Named(Write, Table, ""), &table, shell);
        }
        "SHUTDOWN" | "CONFIG" | "SLAVEOF" | "REPLICAOF" | "SAVE" | "BGSAVE" | "ACL" | "MONITOR" => {
            call.act(setting("database/"), &call.literal("redis"), shell);
        }
        _ => return false,
    }
    let fed = call.operands.is_empty() && call.call.stdin != Stdin::None;
    !fed && !call.has_any(&["--pipe", "--cluster", "--eval"])
}
