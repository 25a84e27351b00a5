//! Which hosts belong together: a registrable domain, and hosts where strangers publish, which belong to nobody.

/// Endings of two labels under which anybody registers a name.
const SUFFIXES: &[&str] = &[
    "co.uk", "org.uk", "ac.uk", "gov.uk", "me.uk", "co.jp", "ne.jp", "or.jp", "ac.jp", "com.au", "net.au",
    "org.au", "edu.au", "gov.au", "co.nz", "org.nz", "com.br", "org.br", "gov.br", "co.in", "org.in",
    "gov.in", "co.za", "org.za", "com.cn", "net.cn", "org.cn", "gov.cn", "com.mx", "org.mx", "com.ar",
    "com.tr", "com.sg", "com.hk", "com.tw", "co.kr", "or.kr", "co.il", "org.il", "com.pl", "com.ua",
    "com.my", "co.id", "co.th", "com.vn", "com.ph", "com.co", "com.pe", "co.at", "or.at", "gv.at", "com.pt",
    "com.es", "org.es", "com.gr",
];

/// Hosts where strangers publish: forges, drives, pastes, forms, pages, shorteners, hooks. What stands there belongs to
/// whoever put it there.
const STRANGERS: &[&str] = &[
    "github.com",
    "githubusercontent.com",
    "github.io",
    "gitlab.com",
    "gitlab.io",
    "bitbucket.org",
    "codeberg.org",
    "sourceforge.net",
    "gist.github.com",
    "huggingface.co",
    "pastebin.com",
    "paste.ee",
    "hastebin.com",
    "ghostbin.com",
    "google.com",
    "googleapis.com",
    "googleusercontent.com",
    "dropbox.com",
    "dropboxusercontent.com",
    "box.com",
    "sharepoint.com",
    "onedrive.live.com",
    "1drv.ms",
    "icloud.com",
    "wetransfer.com",
    "we.tl",
    "mega.nz",
    "mediafire.com",
    "transfer.sh",
    "file.io",
    "amazonaws.com",
    "azurewebsites.net",
    "windows.net",
    "cloudfront.net",
    "herokuapp.com",
    "vercel.app",
    "netlify.app",
    "pages.dev",
    "workers.dev",
    "web.app",
    "firebaseapp.com",
    "appspot.com",
    "run.app",
    "fly.dev",
    "onrender.com",
    "railway.app",
    "repl.co",
    "replit.dev",
    "glitch.me",
    "surge.sh",
    "ngrok.io",
    "ngrok.app",
    "ngrok-free.app",
    "trycloudflare.com",
    "loca.lt",
    "serveo.net",
    "blogspot.com",
    "wordpress.com",
    "medium.com",
    "substack.com",
    "tumblr.com",
    "wixsite.com",
    "weebly.com",
    "notion.site",
    "notion.so",
    "typeform.com",
    "jotform.com",
    "surveymonkey.com",
    "bit.ly",
    "tinyurl.com",
    "t.co",
    "goo.gl",
    "is.gd",
    "ow.ly",
    "webhook.site",
    "requestbin.com",
    "pipedream.net",
    "hookbin.com",
    "zapier.com",
    "make.com",
    "ifttt.com",
    "discord.com",
    "slack.com",
    "t.me",
    "telegram.org",
    "reddit.com",
    "facebook.com",
    "x.com",
    "twitter.com",
    "youtube.com",
    "youtu.be",
    "imgur.com",
    "npmjs.com",
    "pypi.org",
    "docker.io",
    "docker.com",
];

/// The part of a host that one owner registered: `shop.example.co.uk` is `example.co.uk`'s. None of a host where strangers
/// publish, of an address, or of a bare ending.
pub fn owner(host: &str) -> Option<&str> {
    let host = host.trim_end_matches('.');
    let end =
        |ending: &str| host.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        || STRANGERS.iter().any(|known| end(known))
    {
        return None;
    }
    let labels = if SUFFIXES.iter().any(|suffix| end(suffix)) { 3 } else { 2 };
    let mut dots = host.rmatch_indices('.');
    match dots.nth(labels - 1) {
        Some((at, _)) => host.get(at + 1..),
        None => (host.matches('.').count() + 1 == labels).then_some(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_what_one_owner_registered() {
        assert_eq!(owner("www.shop.example.com"), Some("example.com"));
        assert_eq!(owner("a.example.co.uk"), Some("example.co.uk"));
        assert_eq!(owner("example.co.uk"), Some("example.co.uk"));
        for nobody in ["co.uk", "com", "evil.github.io", "github.com", "10.0.0.1", ""] {
            assert_eq!(owner(nobody), None, "{nobody}");
        }
    }
}
