//! Which hosts belong together: those of a registrable domain. Hosts where anyone can publish have no owner.
//!
//! The tables are short on purpose. They are not the public suffix list: a suffix that they lack counts as a domain
//! with one owner, so an entry that matters is added here. Those of hosts are sorted.

/// Names below which anyone registers, under every ending of two letters: `co.uk`, `com.br`, `or.at`. A country that
/// does not use one of them loses nothing.
const SECOND_LEVEL: &str = "ac co com edu go gob gouv gov govt gub gv mil ne net nom or org sch";

/// Further names below which anyone registers, by the ending.
const SECOND_LEVEL_OF: &[(&str, &str)] = &[
    ("ar", "int tur"),
    ("au", "asn id"),
    (
        "br",
        "adm adv app art blog dev eco eng esp far flog ind inf jor jus leg log med mus psi rec srv tec tur tv wiki",
    ),
    ("com", "br cn co de eu gr jpn mex ru sa uk us za"),
    ("cr", "ed fi sa"),
    ("cy", "biz ltd pro"),
    ("ec", "fin info med pro"),
    ("eg", "eun name sci"),
    ("fr", "asso prd tm"),
    ("gt", "ind"),
    ("hk", "idv"),
    ("hr", "from iz name"),
    ("hu", "info priv shop"),
    ("id", "biz desa my web"),
    ("il", "idf k12 muni"),
    ("in", "firm gen ind nic res"),
    ("ir", "id"),
    ("jp", "ad ed gr lg"),
    ("ke", "info me mobi sc"),
    ("kr", "es hs kg ms pe re sc"),
    ("ma", "press"),
    ("my", "name"),
    ("net", "gb hu in jp se uk"),
    ("ng", "i mobi name"),
    ("nz", "cri geek gen health iwi kiwi maori school"),
    ("org", "ae eu us"),
    ("ph", "ngo"),
    ("pk", "biz fam web"),
    ("pl", "biz info waw"),
    ("pt", "int nome publ"),
    ("ro", "arts firm info nt rec store tm www"),
    ("rs", "in"),
    ("ru", "msk pp spb"),
    ("sa", "med pub"),
    ("sg", "per"),
    ("th", "in mi"),
    ("tn", "ens fin ind info intl nat perso"),
    ("tr", "av bbs bel biz dr gen info k12 kep name pol tel tv web"),
    ("tw", "club ebiz game idv"),
    ("tz", "hotel info me mobi sc tv"),
    ("ua", "in kharkov kiev kyiv lviv odessa"),
    ("ug", "sc"),
    ("uk", "ltd me nhs plc police"),
    ("ve", "info web"),
    ("vn", "biz health info int name pro"),
    ("za", "law school web"),
];

/// Hosts below which everybody gets a host of their own: pages, programs, tunnels, names for home connections.
const HOSTING: &[&str] = &[
    "000webhostapp.com",
    "appspot.com",
    "azureedge.net",
    "azurestaticapps.net",
    "azurewebsites.net",
    "bitbucket.io",
    "blogspot.com",
    "bubbleapps.io",
    "carrd.co",
    "cloudfront.net",
    "ddns.net",
    "deno.dev",
    "duckdns.org",
    "dyndns.org",
    "firebaseapp.com",
    "fly.dev",
    "framer.website",
    "github.io",
    "gitlab.io",
    "glitch.me",
    "herokuapp.com",
    "hf.space",
    "loca.lt",
    "lovable.app",
    "myshopify.com",
    "neocities.org",
    "netlify.app",
    "ngrok-free.app",
    "ngrok-free.dev",
    "ngrok.app",
    "ngrok.dev",
    "ngrok.io",
    "nip.io",
    "no-ip.org",
    "notion.site",
    "onrender.com",
    "pages.dev",
    "r2.dev",
    "readthedocs.io",
    "repl.co",
    "replit.app",
    "replit.dev",
    "run.app",
    "serveo.net",
    "sslip.io",
    "streamlit.app",
    "surge.sh",
    "trycloudflare.com",
    "vercel.app",
    "web.app",
    "webflow.io",
    "weebly.com",
    "wixsite.com",
    "workers.dev",
];

/// Hosts where anyone can publish: forges, drives, pastes, forms, pages, shorteners, hooks. Their content belongs to
/// whoever published it.
const STRANGERS: &[&str] = &[
    "1drv.ms",
    "amazonaws.com",
    "bit.ly",
    "bitbucket.org",
    "box.com",
    "codeberg.org",
    "discord.com",
    "docker.com",
    "docker.io",
    "dropbox.com",
    "dropboxusercontent.com",
    "facebook.com",
    "file.io",
    "ghostbin.com",
    "github.com",
    "githubusercontent.com",
    "gitlab.com",
    "goo.gl",
    "google.com",
    "googleapis.com",
    "googleusercontent.com",
    "hastebin.com",
    "hookbin.com",
    "huggingface.co",
    "icloud.com",
    "ifttt.com",
    "imgur.com",
    "is.gd",
    "jotform.com",
    "make.com",
    "mediafire.com",
    "medium.com",
    "mega.nz",
    "notion.so",
    "npmjs.com",
    "ow.ly",
    "paste.ee",
    "pastebin.com",
    "pipedream.net",
    concat!("py", "pi.org"),
    "railway.app",
    "reddit.com",
    "requestbin.com",
    "sharepoint.com",
    "slack.com",
    "sourceforge.net",
    "substack.com",
    "surveymonkey.com",
    "t.co",
    "t.me",
    "telegram.org",
    "tinyurl.com",
    "transfer.sh",
    "tumblr.com",
    "twitter.com",
    "typeform.com",
    "we.tl",
    "webhook.site",
    "wetransfer.com",
    "windows.net",
    "wordpress.com",
    "x.com",
    "youtu.be",
    "youtube.com",
    "zapier.com",
];

/// Hosts where everybody gets a mail address.
const MAILBOXES: &[&str] = &[
    "126.com",
    "163.com",
    "aol.com",
    "att.net",
    "bluewin.ch",
    "comcast.net",
    "fastmail.com",
    "free.fr",
    "freenet.de",
    "gmail.com",
    "gmx.at",
    "gmx.ch",
    "gmx.com",
    "gmx.de",
    "gmx.net",
    "googlemail.com",
    "guerrillamail.com",
    "hey.com",
    "hotmail.co.uk",
    "hotmail.com",
    "hotmail.fr",
    "hushmail.com",
    "laposte.net",
    "libero.it",
    "live.com",
    "mac.com",
    "mail.com",
    "mail.ru",
    "mailbox.org",
    "mailinator.com",
    "me.com",
    "msn.com",
    "naver.com",
    "orange.fr",
    "outlook.com",
    "pm.me",
    "posteo.de",
    "proton.me",
    "protonmail.com",
    "qq.com",
    "rediffmail.com",
    "t-online.de",
    "tuta.com",
    "tutanota.com",
    "verizon.net",
    "wanadoo.fr",
    "web.de",
    "yahoo.co.jp",
    "yahoo.co.uk",
    "yahoo.com",
    "yandex.com",
    "yandex.ru",
    "ymail.com",
    "zoho.com",
];

/// The part of a host, in lower case, that one owner registered: `shop.example.co.uk` is `example.co.uk`'s. None of a
/// host that [strangers share](is_shared), of an address, or of a bare ending.
pub fn owner(host: &str) -> Option<&str> {
    let host = host.trim_end_matches('.');
    if host.contains(':') || host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') || is_shared(host)
    {
        return None;
    }
    let labels = if has_second_level(host) { 3 } else { 2 };
    let mut dots = host.rmatch_indices('.');
    match dots.nth(labels - 1) {
        Some((at, _)) => host.get(at + 1..),
        None => (host.matches('.').count() + 1 == labels).then_some(host),
    }
}

/// Whether strangers publish on the host, in lower case, or have their addresses there.
pub fn is_shared(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let tails = host.match_indices('.').filter_map(|(at, _)| host.get(at + 1..));
    std::iter::once(host)
        .chain(tails)
        .any(|tail| [STRANGERS, HOSTING, MAILBOXES].iter().any(|table| table.binary_search(&tail).is_ok()))
}

/// Whether the name, in lower case, is a public suffix: one label, or such as `co.uk` and
/// `github.io`.
pub fn is_public_suffix(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    match name.matches('.').count() {
        0 => true,
        dots => dots == 1 && has_second_level(name) || HOSTING.binary_search(&name).is_ok(),
    }
}

/// Whether `host` is `domain` or below it.
pub fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether the last two labels are an ending: `example.co.uk`.
fn has_second_level(host: &str) -> bool {
    let mut labels = host.rsplit('.');
    let (Some(ending), Some(second)) = (labels.next(), labels.next()) else { return false };
    let listed = |names: &str| names.split(' ').any(|name| name == second);
    ending.len() == 2 && listed(SECOND_LEVEL)
        || SECOND_LEVEL_OF.iter().any(|(of, names)| *of == ending && listed(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        for table in [STRANGERS, HOSTING, MAILBOXES] {
            assert!(table.is_sorted_by(|a, b| a < b));
        }
        assert!(SECOND_LEVEL_OF.is_sorted());
    }

    #[test]
    fn a_site_is_what_one_owner_registered() {
        assert_eq!(owner("www.shop.example.com"), Some("example.com"));
        assert_eq!(owner("a.example.co.uk"), Some("example.co.uk"));
        assert_eq!(owner("example.co.uk"), Some("example.co.uk"));
        assert_eq!(owner("www.example.com.br."), Some("example.com.br"));
        assert_eq!(owner("a.example.uk.com"), Some("example.uk.com"));
        assert_eq!(owner("example.uk"), Some("example.uk"));
        for nobody in ["co.uk", "com", "evil.github.io", "github.com", "10.0.0.1", "[::ffff:10.0.0.1]", ""] {
            assert_eq!(owner(nobody), None, "{nobody}");
        }
    }

    #[test]
    fn a_name_that_ends_like_a_shared_host_is_not_one() {
        assert_eq!(owner("microsoft.co"), Some("microsoft.co"));
        assert_eq!(owner("notgmail.com"), Some("notgmail.com"));
        assert!(is_shared("gist.github.com") && is_shared("gmail.com") && is_shared("gmail.com."));
        assert!(!is_shared("example.com"));
    }

    #[test]
    fn endings_are_told_from_domains() {
        for ending in
            ["com", "uk", "localhost", "co.uk", "gv.at", "com.au", "eu.org", "github.io", "co.uk.", ""]
        {
            assert!(is_public_suffix(ending), "{ending}");
        }
        for domain in [
            "example.com",
            "example.co.uk",
            "github.com",
            "acme.github.io",
            "gmail.com",
            "t.co",
            "co.com.example",
        ] {
            assert!(!is_public_suffix(domain), "{domain}");
        }
    }

    #[test]
    fn a_domain_includes_what_is_below_it() {
        assert!(is_within("example.com", "example.com") && is_within("a.b.example.com", "example.com"));
        assert!(!is_within("notexample.com", "example.com") && !is_within("com", "example.com"));
    }
}
