//! What is seen of a command, and that it does not notice.

use std::path::Path;

use portcullis_contain::{
    Attempt, AttemptWhat, Ended, FileChangeHow, Invocation, Level, Limits, Observed, Profile, Seen, Watch,
};

use super::escape::{PYTHON, reaches};
use super::world::{World, contained, invocation};

fn levels() -> impl Iterator<Item = Level> {
    [Level::Process, Level::Namespace].into_iter().filter(|level| reaches(*level))
}

fn profile(world: &World) -> Profile {
    let limits = Limits { wall_seconds: Some(60), output_bytes: Some(64 << 10), ..Limits::default() };
    Profile { limits, ..world.profile(Vec::new()) }
}

fn run(world: &World, level: Level, program: &str, script: &str) -> Observed {
    let command = invocation(world, program, &["-c".to_owned(), script.to_owned()], level);
    run_command(world, &command)
}

fn run_command(world: &World, command: &Invocation) -> Observed {
    let observed = contained().run(&profile(world), command).unwrap();
    assert_eq!(observed.programs.seen, Seen::All, "{observed:?}");
    observed
}

/// A script of Python that has to leave with 0.
fn python(level: Level, script: &str) -> Observed {
    let world = World::make();
    let observed = run(&world, level, PYTHON, script);
    let said = String::from_utf8_lossy(&observed.stderr);
    assert_eq!(observed.ended, Ended::Status(0), "{level}: {said}");
    observed
}

fn times(observed: &Observed, program: &str) -> u64 {
    let path = Path::new(program).canonicalize().unwrap();
    observed.programs.started.iter().find(|one| one.path == path).map_or(0, |one| one.times)
}

#[test]
fn programs_that_were_started_are_counted() {
    for level in levels() {
        let world = World::make();
        std::fs::write(world.project().join("script"), "#!/bin/sh\n/bin/true; exec /bin/true\n").unwrap();
        let script = "chmod +x script 2>/dev/null; cp script mine; chmod +x mine; ./mine & ./mine; wait; no-such-program; /bin/true";
        let observed = run(&world, level, "/bin/sh", script);
        assert_eq!(observed.ended, Ended::Status(0));
        assert_eq!(times(&observed, "/bin/true"), 5, "{observed:?}");
        assert_eq!(times(&observed, &world.project().join("mine").display().to_string()), 2, "{observed:?}");
        assert_eq!(times(&observed, "/bin/sh"), 3, "{observed:?}");
    }
}

#[test]
fn what_the_profile_refuses_is_told() {
    for level in levels() {
        let world = World::make();
        let outside = world.outside().display().to_string();
        let script = format!(
            "import os, socket, ctypes\n\
             def tried(what):\n  try: what()\n  except OSError as error: return\n  raise SystemExit('was let')\n\
             tried(lambda: open('{outside}/file', 'w'))\n\
             tried(lambda: open('{outside}/file', 'w'))\n\
             tried(lambda: os.mkdir('{outside}/new'))\n\
             tried(lambda: os.rename('escapes/escape.py', '{outside}/moved'))\n\
             tried(lambda: os.execv('{outside}/program', ['program']))\n\
             tried(lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))\n\
             assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == -1\n\
             assert ctypes.get_errno() == 1\n\
             open('made', 'w').write('x'); os.chmod('made', 0o600); os.rename('made', 'named'); os.unlink('named')\n"
        );
        let observed = run(&world, level, PYTHON, &script);
        let said = String::from_utf8_lossy(&observed.stderr);
        assert_eq!(observed.ended, Ended::Status(0), "{said}");
        let attempt = |what, target: String, times| Attempt { what, target, times };
        let expected = [
            attempt(AttemptWhat::Write, format!("{outside}/file"), 2),
            attempt(AttemptWhat::Write, format!("{outside}/new"), 1),
            attempt(AttemptWhat::Write, format!("{outside}/moved"), 1),
            attempt(AttemptWhat::Execute, format!("{outside}/program"), 1),
            attempt(AttemptWhat::Call, "socket AF_VSOCK".to_owned(), 1),
            attempt(AttemptWhat::Call, "unshare".to_owned(), 1),
        ];
        // Python asks a service of the system for names, and writes what it compiled beside its own files.
        let of_python = |one: &&Attempt| one.target.starts_with("/usr/") || one.target.ends_with("AF_UNIX");
        let seen: Vec<Attempt> =
            observed.refused.attempts.iter().filter(|one| !of_python(one)).cloned().collect();
        assert_eq!(seen, expected, "{level}");
        assert_eq!(observed.refused.seen, Seen::Some);
    }
}

#[test]
fn a_connection_that_cannot_be_made_is_told() {
    if !reaches(Level::Namespace) {
        return;
    }
    let observed = python(
        Level::Namespace,
        "import socket\n\
         for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:\n  \
           try: socket.socket(socket.AF_INET, kind).connect(('192.0.2.1', 80))\n  \
           except OSError: pass\n\
         try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))\n\
         except OSError: pass\n",
    );
    let of = |target: &str| {
        let mut all = observed.refused.attempts.iter();
        all.find(|one| one.what == AttemptWhat::Connect && one.target == target).map_or(0, |one| one.times)
    };
    assert_eq!((of("192.0.2.1:80"), of("192.0.2.1:53")), (2, 1), "{observed:?}");
}

#[test]
fn reads_are_told_where_they_are_asked_for() {
    for level in levels() {
        let world = World::make();
        let secret = world.outside().join("secret").display().to_string();
        let script = format!("cat {secret}; cat escapes/escape.py >/dev/null; true");
        let command = invocation(&world, "/bin/sh", &["-c".to_owned(), script], level);
        let all = Profile { watch: Watch::All, ..profile(&world) };
        let observed = contained().run(&all, &command).unwrap();
        let read = Attempt { what: AttemptWhat::Read, target: secret.clone(), times: 1 };
        assert!(observed.refused.attempts.contains(&read), "{observed:?}");
        let none = Profile { watch: Watch::Nothing, ..profile(&world) };
        let observed = contained().run(&none, &command).unwrap();
        assert_eq!((observed.programs.seen, observed.refused.seen), (Seen::Nothing, Seen::Nothing));
        assert!(observed.refused.attempts.is_empty() && observed.programs.started.is_empty());
    }
}

#[test]
fn a_child_is_stopped_and_continued_as_without_a_witness() {
    for level in levels() {
        python(
            level,
            "import os, signal, time\n\
             read, write = os.pipe()\n\
             child = os.fork()\n\
             if child == 0:\n  \
               # `SIGTSTP` does not stop a group that nobody in its session watches over.\n  \
               os.setpgid(0, 0)\n  \
               while True: os.write(write, b'x'); time.sleep(0.01)\n\
             os.set_blocking(read, False)\n\
             def ticks():\n  \
               time.sleep(0.3)\n  \
               try: return len(os.read(read, 4096))\n  \
               except BlockingIOError: return 0\n\
             assert ticks() > 0\n\
             for stop in signal.SIGSTOP, signal.SIGTSTP:\n  \
               os.kill(child, stop)\n  \
               pid, status = os.waitpid(child, os.WUNTRACED)\n  \
               assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == stop, status\n  \
               ticks(); assert ticks() == 0\n  \
               os.kill(child, signal.SIGCONT)\n  \
               pid, status = os.waitpid(child, os.WCONTINUED)\n  \
               assert os.WIFCONTINUED(status), status\n  \
               assert ticks() > 0\n\
             os.kill(child, signal.SIGSTOP); os.waitpid(child, os.WUNTRACED)\n\
             os.kill(child, signal.SIGKILL)\n\
             assert os.waitpid(child, 0)[1] == signal.SIGKILL\n",
        );
    }
}

#[test]
fn a_command_that_stops_itself_goes_on_when_it_is_told_to() {
    for level in levels() {
        python(
            level,
            "import os, signal, threading, time\n\
             threading.Thread(target=lambda: time.sleep(2), daemon=True).start()\n\
             parent = os.getpid()\n\
             if os.fork() == 0:\n  \
               time.sleep(0.4); os.kill(parent, signal.SIGCONT); os._exit(0)\n\
             begun = time.monotonic()\n\
             os.kill(parent, signal.SIGSTOP)\n\
             assert 0.3 < time.monotonic() - begun < 5\n",
        );
    }
}

#[test]
fn signals_reach_their_handlers_and_interrupt_what_they_interrupt() {
    for level in levels() {
        python(
            level,
            "import os, signal, threading, time\n\
             got = []\n\
             for number in signal.SIGUSR1, signal.SIGRTMIN, signal.SIGRTMIN + 3, signal.SIGRTMAX:\n  \
               signal.signal(number, lambda number, frame: got.append(number))\n  \
               for _ in range(20):\n    os.kill(os.getpid(), number)\n    time.sleep(0.001)\n\
             assert [got.count(n) for n in (10, signal.SIGRTMIN, signal.SIGRTMIN + 3, signal.SIGRTMAX)] == [20] * 4, got\n\
             main = threading.main_thread().ident\n\
             threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGRTMIN + 1)).start()\n\
             signal.signal(signal.SIGRTMIN + 1, lambda *_: got.append('late'))\n\
             read, write = os.pipe()\n\
             threading.Timer(0.5, lambda: os.write(write, b'done')).start()\n\
             assert os.read(read, 4) == b'done' and got[-1] == 'late', got\n\
             signal.signal(signal.SIGRTMIN + 2, lambda *_: got.append('many'))\n\
             for _ in range(30): os.kill(os.getpid(), signal.SIGRTMIN + 2)\n\
             open('still', 'w').write('is watched')\n\
             time.sleep(0.01)\n\
             assert got.count('many') == 30 and os.path.exists('still'), got\n",
        );
    }
}

#[test]
fn calls_that_need_every_thread_get_every_thread() {
    for level in levels() {
        // The C library has each thread change its user, with a real-time signal of its own.
        python(
            level,
            "import ctypes, os, threading, time\n\
             for _ in range(4): threading.Thread(target=lambda: time.sleep(3), daemon=True).start()\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             begun = time.monotonic()\n\
             assert libc.setresuid(os.getuid(), os.getuid(), os.getuid()) == 0\n\
             assert time.monotonic() - begun < 2\n",
        );
    }
}

#[test]
fn threads_that_execute_and_children_that_borrow_memory_are_seen() {
    for level in levels() {
        let observed = python(
            level,
            "import os, subprocess, threading, time\n\
             subprocess.run(['/bin/true'], check=True)\n\
             os.posix_spawn('/bin/true', ['true'], {})\n\
             os.wait()\n\
             threading.Thread(target=lambda: os.execv('/bin/true', ['true'])).start()\n\
             time.sleep(20)\n",
        );
        assert_eq!(times(&observed, "/bin/true"), 3, "{observed:?}");
    }
}

#[test]
fn a_crash_and_a_trap_are_what_they_are() {
    for level in levels() {
        let world = World::make();
        for (signal, script) in
            [(11, "kill -SEGV $$"), (5, "kill -TRAP $$"), (31, "kill -SYS $$"), (34, "kill -34 $$")]
        {
            assert_eq!(run(&world, level, "/bin/sh", script).ended, Ended::Signal(signal), "{level}");
        }
    }
}

#[test]
fn files_that_are_not_as_they_were_are_told_with_digests() {
    for level in levels() {
        let world = World::make();
        std::fs::write(world.project().join("old"), "as it was").unwrap();
        std::os::unix::fs::chown(world.project().join("old"), Some(65534), Some(65534)).unwrap_or_default();
        let script = "mkdir sub; printf abc > sub/new; printf abc > $TMPDIR/not-told; rm old; echo x > .envrc; \
                      echo more >> escapes/escape.py; ln -s /etc/passwd link; cat .git/config";
        let observed = run(&world, level, "/bin/sh", script);
        assert_eq!(observed.files.seen, Seen::All);
        let told: Vec<_> = observed
            .files
            .changes
            .iter()
            .map(|one| {
                let name = one.path.strip_prefix(world.project()).unwrap().display().to_string();
                (name, one.how, one.digest.is_some())
            })
            .collect();
        use FileChangeHow::{Changed, Deleted, Made};
        let expected = [
            (".envrc.contained-1", Made, true),
            ("escapes/escape.py", Changed, true),
            ("link", Made, false),
            ("old", Deleted, false),
            ("sub/new", Made, true),
        ];
        assert_eq!(told, expected.map(|(name, how, digest)| (name.to_owned(), how, digest)), "{level}");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let digest = observed.files.changes.last().unwrap().digest.unwrap().to_string();
        assert!(digest.ends_with(abc), "{digest}");
    }
}
