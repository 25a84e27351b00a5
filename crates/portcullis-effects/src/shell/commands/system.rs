//! Programs that look at or change the machine: processes, services, accounts, disks, the network.

use portcullis_core::effect::ResourceKind::{Process, Setting};
use portcullis_core::effect::Verb::{Configure, Delete, Read, Send, Write};

use super::super::interpreter::{Interpreter, Stdin};
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

/// Tells something and touches nothing.
const fn tells(names: &'static str) -> Spec {
    spec(names).lenient()
}
/// Changes a setting of that name.
const fn changes(names: &'static str, what: &'static [(Act, &'static str)]) -> Spec {
    spec(names).lenient().always(what)
}
const END: Act = Act::Named(Delete, Process, "");
const SERVICE: Act = Act::Named(Configure, Process, "");
const ACCOUNT: Act = setting("account/");
const DEVICE: Act = Act::Path(Delete);
const POWER: &[(Act, &str)] = &[(setting("power"), "")];
const FIREWALL: &[(Act, &str)] = &[(setting("firewall"), "")];
const HISTORY: &[(Act, &str)] = &[(READ, "~/.bash_history")];

pub(super) const SPECS: &[Spec] = &[
    spec("pgrep pidof pstree free vmstat iostat mpstat uptime w who whoami id groups users logname uname arch nproc lscpu lspci lsmod getconf tty locale cal sleep usleep which whereis hostid sync clear reset tput expr setopt unsetopt sw_vers seq").inert(),
    tells("top htop btop atop last lastlog lsusb lsof dmidecode sensors whatis info apropos tldr stty system_profiler nvidia-smi netstat arp uuidgen mcookie logger mesg").options(&[
        does("-f --file", READ),
        flags("-a -b -c -d -e -h -i -l -m -n -o -p -q -r -s -t -u -v -w -x -A -L -P -1 --all --help --version"),
    ]),
    // Fonts, animals and settings of these can hold code; what they are given to show is a file to some.
    spec("figlet cowsay lolcat banner neofetch fastfetch screenfetch bc").lenient().by(shown).options(&[flags("-l --mathlib -q --quiet")]),
    spec("dc").by(calculated).lenient().options(&[
        does("-f --file", EXECUTE),
        values("-e --expression"),
        flags("-h --help -V --version -x --extended-register"),
    ]),
    spec("date").lenient().by(|call, shell| {
        if call.has_any(&["-s", "--set"]) {
            call.act(setting("clock"), &call.literal(""), shell);
        }
        true
    }).options(&[
        does("-f --file -r --reference", READ),
        values("-d --date -s --set -v -j"),
        attached("-I --iso-8601 --rfc-3339"),
        flags("-u --utc --universal -R --rfc-email --rfc-2822 --debug --help --version -n"),
    ]),
    spec("ss").lenient().by(|call, shell| {
        if call.has_any(&["-K", "--kill"]) {
            call.act(END, &call.literal("*"), shell);
        }
        true
    }).options(&[
        does("-D --diag", WRITE),
        does("-F --filter", READ),
        values("-f --family -A --query --socket -N --net"),
        flags("-t --tcp -u --udp -l --listening -n --numeric -p --processes -a --all -e --extended -s --summary -4 --ipv4"),
        flags("-6 --ipv6 -x --unix -w --raw -H --no-header -r --resolve -m --memory -i --info -o --options -O --oneline"),
        flags("-K --kill -E --events -Z --context -0 --packet -d --dccp -b --bpf -V --version -h --help"),
    ]),
    // Letters without a dash are those of BSD, where `e` shows the environment of each process.
    spec("ps").inert().by(|call, shell| {
        let bsd = |word: &&Word| !words::text(word).starts_with('-') && words::text(word).contains('e');
        if call.call.args.first().is_some_and(|word| bsd(&word)) {
            call.act(Act::Environment(Read), &call.literal("*"), shell);
        }
        true
    }),
    spec("man").lenient().options(&[
        does("-P --pager -H --html", Act::Script),
        does("-C --config-file", EXECUTE),
        does("-l --local-file", READ),
        values("-L --locale -m --systems -M --manpath -S -s --sections -e --extension -p --preprocessor -R --recode"),
    ]),
    // Looking up a name asks the servers of its domain.
    tells("getent").by(|call, shell| {
        if matches!(call.operand(0), "hosts" | "ahosts" | "ahostsv4" | "ahostsv6") {
            call.act_on_each(Act::Host(Send), call.rest(1), shell);
        }
        true
    }),
    tells("hostname").by(|call, shell| {
        if !call.operands.is_empty() {
            call.act(setting("hostname"), &call.literal(""), shell);
        }
        true
    }).options(&[
        does("-F --file", Act::All(&[READ, setting("hostname")])),
        flags("-f --fqdn --long -s --short -i --ip-address -I --all-ip-addresses -d --domain -A --all-fqdns -a --alias"),
    ]),
    spec("kill").by(kill).lenient(),
    spec("pkill killall skill killall5 xkill").each(END).by(many).options(&[
        values("-s --signal -u --user --euid -U --uid -G --group -g --pgroup -P --parent -t --terminal -o --older-than -y --younger-than --ns --pidfile"),
        flags("-f --full -x --exact -i --ignore-case -I --interactive -e --echo -n --newest -q --quiet -r --regexp -v --verbose -w --wait -l --list"),
    ]),
    spec("fuser").each(Act::Path(Read)).lenient().by(|call, shell| {
        if call.call.args.iter().any(|arg| words::text(arg) == "-k" || words::text(arg) == "--kill") {
            call.act(END, &call.literal("*"), shell);
        }
        true
    }),
    spec("renice ionice chrt taskset prlimit").lenient().always(&[(SERVICE, "*")]),
    spec("systemctl").has_verb().by(services).lenient().options(&[
        values("-t --type --state -p --property -o --output -n --lines -s --signal --kill-whom -M --machine --root"),
        does("-H --host", Act::Host(Send)),
        force("-f --force"),
    ]),
    spec("service rc-service initctl sv supervisorctl pm2").by(service).lenient(),
    changes("launchctl", &[(setting("service/"), "launchd")]).operands(Operands::First(Act::Text, &Operands::Each(READ))),
    changes("chkconfig update-rc.d rc-update", &[(setting("service/"), "*")]),
    spec("journalctl").lenient().by(|call, shell| {
        let drops = call.call.args.iter().any(|arg| words::text(arg).starts_with("--vacuum") || words::text(arg) == "--rotate");
        call.act_plainly(Act::Path(if drops { Delete } else { Read }), &call.literal("/var/log/journal"), &[], shell);
        true
    }),
    spec("dmesg").lenient().by(|call, shell| {
        if call.call.args.iter().any(|arg| matches!(words::text(arg), "-C" | "-c" | "--clear" | "--read-clear")) {
            call.act(Act::Path(Delete), &call.literal("/dev/kmsg"), shell);
        }
        true
    }),
    spec("crontab").by(crontab).lenient().options(&[values("-u")]),
    spec("at batch").by(later).lenient().options(&[does("-f", READ), values("-q -t")]),
    tells("atq"),
    changes("atrm", &[(setting("at"), "")]),
    changes("systemd-run", &[(setting("service/"), "transient")]).stops().by(|call, shell| {
        shell.run(&call.operands, call.call.range.clone());
        true
    }).options(&[values("-u --unit -p --property --uid --gid --slice -E --setenv --on-calendar --on-active --working-directory --description")]),
    // Disks.
    spec("mount").by(mount).lenient().options(&[values("-t --types -o --options -L -U -O"), flags("-a --all --bind")]),
    changes("umount eject swapon swapoff losetup cryptsetup mdadm lvcreate lvremove lvextend vgcreate vgremove pvcreate zpool zfs btrfs", &[(setting("mount"), "")]).each(Act::Text),
    spec("mkfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.ntfs mke2fs mkswap wipefs blkdiscard sgdisk newfs").each(DEVICE).lenient().options(&[values("-t --type -L -U")]),
    spec("hdparm").each(Act::All(&[READ, WRITE])).lenient(),
    spec("fdisk parted sfdisk gdisk cfdisk gparted").by(|call, shell| {
        if !call.call.args.iter().any(|arg| matches!(words::text(arg), "-l" | "--list")) {
            call.act_on_each(DEVICE, call.rest(0).get(..1).unwrap_or_default(), shell);
        }
        true
    }).lenient(),
    spec("diskutil hdiutil").lenient().by(|call, shell| {
        if !matches!(call.operand(0), "list" | "info" | "") {
            call.act_on_each(DEVICE, call.rest(1), shell);
        }
        true
    }),
    spec("fsck e2fsck resize2fs tune2fs").each(WRITE).lenient(),
    // Power, accounts, kernel, network.
    changes("shutdown reboot halt poweroff init telinit pm-suspend", POWER),
    spec("useradd adduser usermod userdel deluser groupadd groupdel groupmod gpasswd chage chsh chfn chpasswd newgrp addgroup delgroup dscl pw")
        .lenient()
        .by(accounts),
    spec("passwd").lenient().by(|call, shell| {
        let name = call.operands.first().cloned().unwrap_or_else(|| call.literal("self"));
        call.act(ACCOUNT, &name, shell);
        true
    }),
    changes("visudo vipw vigr", &[(Act::Path(Write), "/etc/sudoers"), (setting("account/"), "*")]),
    changes("iptables ip6tables iptables-restore nft ufw firewall-cmd pfctl ebtables ipset", FIREWALL).by(|_, _| true),
    spec("iptables-save").lenient(),
    spec("sysctl").by(|call, shell| {
        for word in &call.operands {
            if let Some((key, _)) = words::split(word, '=') {
                call.act(setting("kernel/"), &key, shell);
            }
        }
        true
    }).lenient().options(&[value("-p --load", Role::Does(Act::All(&[READ, setting("kernel/")])))]),
    spec("modprobe insmod rmmod depmod kextload kldload").each(setting("kernel/")).lenient().by(|call, shell| {
        if call.call.program == "insmod" {
            call.act_on_each(EXECUTE, call.rest(0).get(..1).unwrap_or_default(), shell);
        }
        true
    }),
    changes("hostnamectl timedatectl localectl loginctl setenforce setsebool aa-enforce aa-disable", &[(setting("system"), "")]),
    spec("ip ifconfig route iw iwconfig nmcli networksetup ethtool tc brctl wg wg-quick resolvconf").by(network).lenient(),
    spec("defaults").lenient().by(|call, shell| {
        match call.operand(0) {
            "write" | "delete" | "import" | "rename" => call.act(setting("defaults/"), call.operands.get(1).unwrap_or(&call.literal("*")), shell),
            _ => {}
        }
        true
    }),
    changes("scutil pmset spctl csrutil nvram tccutil", &[(setting("system"), "")]),
    changes("gsettings dconf xdg-mime xdg-settings", &[(setting("desktop"), "")]).by(|_, _| true),
    // The shell's own record and variables.
    spec("history").lenient().by(|call, shell| {
        if call.call.args.iter().any(|arg| words::text(arg).starts_with("-c") || words::text(arg).starts_with("-d")) {
            call.act_plainly(Act::Path(Delete), &call.literal("~/.bash_history"), &["history"], shell);
        } else {
            call.always(HISTORY, shell);
        }
        true
    }),
    spec("printenv").lenient().operands(Operands::EachOr(Act::Environment(Read), "*")),
    tells("pbcopy pbpaste xclip xsel wl-copy wl-paste clip.exe").options(&[
        values("-selection --selection -d -display --display -t -target --target --type -s --seat -l -loops --loops"),
        flags("-i -in --input -o -out --output -f -filter -a --append -b --clipboard -p --primary -c --clear -n -x"),
        flags("--trim-newline --no-newline --paste-once --foreground -r -rmlastnl -silent -quiet -h --help -v --version"),
    ]).by(|call, shell| {
        let shows = call.has_any(&["-o", "-out", "--output"]);
        if matches!(call.call.program, "pbpaste" | "wl-paste") || shows {
            call.act(Act::Secret(Read, ""), &call.literal("clipboard"), shell);
        } else if call.call.program == "xclip" {
            call.act_on_each(READ, &call.operands, shell);
        }
        true
    }),
    tells("tmux screen").by(|call, _| matches!(call.operand(0), "" | "ls" | "list-sessions" | "attach" | "a" | "kill-session" | "detach")),
    tells("notify-send osascript say").by(|call, _| call.call.program != "osascript").options(&[
        does("-f --input-file", READ),
        does("-o --output-file", WRITE),
        values("-u --urgency -t --expire-time -a --app-name -i --icon -c --category -v --voice -r --rate"),
    ]),
    // A message, or the file that it stands in: util-linux takes the first of one word for a file where there is one.
    spec("wall").each(READ).lenient().options(&[values("-g --group -t --timeout"), flags("-n --nobanner")]),
    tells("sestatus getenforce getsebool aa-status lshw lsns ipcs"),
];

/// `bc FILE` runs the file, `lolcat FILE` shows it, and `cowsay TEXT` the text: what looks like a path is read.
fn shown(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let all_files = matches!(call.call.program, "bc" | "lolcat");
    let files: Vec<Word> =
        call.operands.iter().filter(|word| all_files || words::text(word).contains('/')).cloned().collect();
    call.act_on_each(READ, &files, shell);
    true
}

/// `dc` runs what follows an exclamation mark, from an expression, a file or its input.
fn calculated(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.act_on_each(EXECUTE, &call.operands, shell);
    let expressions = call.values(&["-e", "--expression"]);
    for expression in &expressions {
        let text = words::text(expression);
        if expression.value.is_none() || text.contains(['!', '?', 'x']) {
            shell.unknown("dc", "a program of dc can run commands", expression.range.clone());
        }
    }
    match call.call.stdin {
        Stdin::Text(text) if !text.contains(['!', '?']) => true,
        Stdin::None => true,
        _ => !expressions.is_empty() || !call.operands.is_empty(),
    }
}

/// `kill -9 1`, `kill -s TERM 1`, `kill -9 -1` (all), `kill -0 1` (asks), `kill -l`.
fn kill(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let args = call.call.args;
    let mut skip = 0;
    match args.first().map(words::text) {
        Some("-l" | "-L" | "--list" | "--table" | "-0") => return true,
        Some("-s" | "-n" | "--signal") => skip = 2,
        Some(first) if first.starts_with('-') => skip = 1,
        _ => {}
    }
    for target in args.get(skip..).unwrap_or_default() {
        match words::text(target) {
            "--" => {}
            "-1" => call.act_plainly(END, &call.literal("*"), &["unbounded"], shell),
            _ => call.act(END, target, shell),
        }
    }
    true
}

fn many(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.operands.is_empty() && !call.found.is_empty() && !call.has("-l") {
        call.act_plainly(END, &call.literal("*"), &["unbounded"], shell);
    }
    true
}

/// `systemctl ACTION UNIT…`.
fn services(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let units = call.rest(1);
    match call.operand(0) {
        "" | "status" | "show" | "cat" | "list-units" | "list-unit-files" | "list-timers"
        | "list-sockets" | "list-jobs" | "list-dependencies" | "is-active" | "is-enabled" | "is-failed"
        | "is-system-running" | "get-default" | "help" | "show-environment" => {}
        "start" | "stop" | "restart" | "reload" | "try-restart" | "reload-or-restart" | "kill"
        | "reset-failed" | "freeze" | "thaw" | "isolate" | "clean" => call.act_on_each(SERVICE, units, shell),
        "enable" | "disable" | "reenable" | "mask" | "unmask" | "preset" | "edit" | "revert" | "link"
        | "set-property" | "add-wants" | "add-requires" => {
            call.act_on_each(setting("service/"), units, shell);
            let paths = units.iter().filter(|unit| words::text(unit).contains('/'));
            paths.for_each(|path| call.act(EXECUTE, path, shell));
        }
        "poweroff" | "reboot" | "halt" | "suspend" | "hibernate" | "emergency" | "rescue" | "kexec"
        | "soft-reboot" | "exit" | "default" => call.always(POWER, shell),
        "daemon-reload" | "daemon-reexec" | "set-default" | "set-environment" | "import-environment"
        | "unset-environment" => {
            call.act(setting("service/"), &call.literal("manager"), shell);
        }
        _ => return false,
    }
    true
}

/// `service NAME ACTION`, `supervisorctl ACTION NAME`.
fn service(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let named_first = matches!(call.call.program, "service" | "rc-service");
    let (action, name) = if named_first { (1, 0) } else { (0, 1) };
    match (call.operands.get(name), call.operand(action)) {
        (_, "status" | "list" | "ls" | "logs" | "show" | "") => {}
        (Some(name), _) => call.act(SERVICE, name, shell),
        (None, _) => call.act(SERVICE, &call.literal("*"), shell),
    }
    true
}

/// `crontab FILE`, `crontab -r`, `crontab -l`.
fn crontab(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let table = call.literal("crontab");
    let given = |flag: &str| call.call.args.iter().any(|arg| words::text(arg) == flag);
    if given("-l") {
        call.act(Act::Named(Read, Setting, ""), &table, shell);
        return true;
    }
    call.act(Act::Named(if given("-r") { Delete } else { Configure }, Setting, ""), &table, shell);
    call.act_on_each(READ, &call.operands, shell);
    // What it will run is in the table.
    given("-r")
}

/// `echo COMMAND | at now`.
fn later(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.act(setting("at"), &call.literal(""), shell);
    if let Stdin::Text(text) = call.call.stdin {
        shell.script(&words::literal(text, call.call.range.clone()));
        return true;
    }
    call.call.args.iter().any(|arg| matches!(words::text(arg), "-l" | "-d" | "-r"))
}

fn mount(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if let [device, .., place] = call.operands.as_slice() {
        if words::text(device).contains('/') {
            call.act(READ, device, shell);
        }
        call.act(WRITE, place, shell);
    }
    if !call.operands.is_empty() || call.has_any(&["-a", "--all"]) {
        call.act(setting("mount"), &call.literal(""), shell);
    }
    true
}

fn accounts(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let name = call.operands.last().cloned().unwrap_or_else(|| call.literal("*"));
    let removes = matches!(call.call.program, "userdel" | "deluser" | "groupdel" | "delgroup");
    let verb = if removes { Delete } else { Configure };
    call.act(Act::Named(verb, Setting, "account/"), &name, shell);
    true
}

/// `ip addr`, `ip link set`, `ifconfig eth0 down`.
fn network(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    const CHANGES: [&str; 18] = [
        "add",
        "del",
        "delete",
        "set",
        "flush",
        "up",
        "down",
        "change",
        "replace",
        "connect",
        "disconnect",
        "modify",
        "reload",
        "netns",
        "exec",
        "append",
        "addbr",
        "delbr",
    ];
    let texts: Vec<&str> = call.operands.iter().map(words::text).collect();
    let asks = call.call.program == "ifconfig" && texts.len() < 2;
    if !asks && texts.iter().any(|text| CHANGES.contains(text) || text.starts_with("-set")) {
        call.act(setting("network"), &call.literal(""), shell);
    }
    !texts.contains(&"exec")
}
