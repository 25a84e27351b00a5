//! Words: stems, and which words mean the same.

/// Words that mean the same where tools and requests are compared, as stems are made of them. A group has the nouns and
/// verbs of one action or one thing.
const ALIKE: &[&[&str]] = &[
    &["mail", "email", "e-mail", "mailing"],
    &["send", "sent", "dispatch"],
    &["change", "update", "alter", "modify", "edit", "amend", "adjust"],
    &["delete", "remove", "drop", "erase", "purge", "wipe", "destroy", "deletion", "removal"],
    &["create", "make", "made", "add", "place", "set-up", "creation"],
    &["read", "get", "got", "view", "see", "saw", "seen", "show", "look", "fetch", "retrieve", "display", "list", "find", "query", "lookup", "preview", "browse", "search", "check", "open", "inspect"],
    &["issue", "give", "gave", "given", "grant", "hand", "award"],
    &["pay", "paid", "payment", "payout", "disburse", "remit"],
    &["transfer", "wire"],
    &["refund", "reimburse", "reimbursement"],
    &["deploy", "deployment", "rollout", "roll-out"],
    &["publish", "publication"],
    &["reboot", "restart"],
    &["restore", "recover"],
    &["backup", "back-up"],
    &["export", "download"],
    &["import", "upload"],
    &["approve", "approval", "authorise", "authorize"],
    &["close", "closure"],
    &["cancel", "cancellation", "cancelled", "canceled"],
    &["book", "reserve", "reservation", "booking"],
    &["buy", "bought", "purchase"],
    &["write", "wrote", "written", "save", "store"],
    &["run", "ran", "execute", "launch", "start", "trigger"],
    &["order", "reorder"],
    &["file", "document"],
    &["database", "db"],
    &["directory", "folder", "dir"],
    &["customer", "client", "shopper"],
    &["employee", "staff", "worker"],
    &["repository", "repo"],
    &["environment", "env"],
    &["production", "prod", "live"],
    &["staging", "stage"],
    &["message", "msg"],
    &["configuration", "config"],
    &["prescription", "prescribe"],
    &["discount", "rebate"],
    &["subscribe", "subscription"],
    &["invite", "invitation"],
    &["reply", "replies", "response", "answer"],
    &["host", "server", "machine"],
    &["increase", "raise"],
    &["ship", "shipment", "shipping"],
    &["charge", "bill"],
    &["merge", "merging"],
    &["test", "testing"],
    &["migrate", "migration"],
    &["picture", "image", "photo"],
    &["job", "task"],
    &["rotate", "rotation"],
    &["revoke", "revocation"],
    &["promote", "promotion"],
    &["suspend", "suspension"],
    &["terminate", "termination"],
    &["extend", "extension"],
    &["dose", "dosage"],
    &["submit", "submission", "hand-in"],
    &["reject", "rejection"],
    &["verify", "verification"],
    &["sign", "signature"],
    &["withdraw", "withdrawal", "withdrew", "withdrawn"],
    &["donate", "donation"],
    &["enrol", "enroll", "enrolment", "enrollment"],
];

/// Verbs of which a tool has to have its own: a request to delete is not about a tool that lists.
const ACTIONS: &[&str] = &[
    "send", "change", "delete", "create", "read", "issue", "pay", "transfer", "refund", "deploy", "publish", "reboot",
    "restore", "export", "import", "approve", "close", "reopen", "cancel", "book", "buy", "write", "run", "insert",
    "lock", "unlock", "submit", "merge", "post", "archive", "rename", "copy", "move", "revoke", "reset", "rotate",
    "suspend", "terminate", "rollback", "assign", "invite", "reject", "verify", "sign", "withdraw", "promote",
    "disable", "enable", "install", "stop", "increase", "extend", "release", "ship", "subscribe", "unsubscribe",
];

/// Ends of words that are taken off, with what takes their place. The first that fits counts.
const ENDS: &[(&str, &str, usize)] = &[
    ("iness", "i", 3), ("ments", "", 3), ("ment", "", 3), ("ations", "at", 3), ("ation", "at", 3), ("ions", "", 4),
    ("ion", "", 4), ("ovals", "ov", 2), ("oval", "ov", 2), ("sses", "ss", 2), ("ches", "ch", 2), ("shes", "sh", 2),
    ("xes", "x", 2), ("ies", "y", 2), ("ied", "y", 2), ("ings", "", 3), ("ing", "", 3), ("eed", "eed", 1), ("ed", "", 3),
    ("ss", "ss", 1), ("us", "us", 2), ("is", "is", 2), ("s", "", 2),
];

/// A word without its ending: the same for its forms, and not always a word.
pub(super) fn stem(word: &str) -> String {
    let word = word.strip_suffix("'s").or_else(|| word.strip_suffix('\'')).unwrap_or(word);
    let mut stem = word.to_owned();
    for _ in 0..2 {
        let cut = ENDS.iter().find_map(|(end, put, least)| {
            let rest = stem.strip_suffix(end)?;
            (rest.chars().count() >= *least).then(|| format!("{rest}{put}"))
        });
        match cut {
            Some(cut) if cut != stem => stem = cut,
            _ => break,
        }
    }
    if stem.chars().count() > 3
        && let Some(rest) = stem.strip_suffix('e')
    {
        stem = rest.to_owned();
    }
    let mut ends = stem.chars().rev();
    if let (Some(last), Some(before)) = (ends.next(), ends.next())
        && last == before
        && stem.chars().count() > 3
        && !last.is_ascii_digit()
    {
        stem.pop();
    }
    if stem.ends_with('y') && stem.chars().count() > 2 {
        stem.pop();
        stem.push('i');
    }
    stem
}

/// The stem of what a word means the same as.
pub(super) fn sense(word: &str) -> String {
    let own = stem(word);
    let fits = |group: &&&[&str]| group.iter().any(|alike| *alike == word || stem(alike) == own);
    match ALIKE.iter().find(fits).and_then(|group| group.first()) {
        Some(first) => stem(first),
        None => own,
    }
}

/// Whether a sense is that of an action.
pub(super) fn is_action(sense: &str) -> bool {
    ACTIONS.iter().any(|action| stem(action) == sense)
}

/// The parts of a name such as `send_email`, `mail.send`, `placeOrder`, in lower case.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut lower_before = false;
    for c in name.chars() {
        let starts = c.is_uppercase() && lower_before;
        if (starts || !c.is_alphanumeric()) && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c.is_alphanumeric()) {
            part.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase() || c.is_ascii_digit();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Words that carry no content of their own in a request.
const FILLERS: &[&str] = &[
    "a", "an", "the", "this", "that", "these", "those", "it", "its", "it's", "they", "they're", "them", "their", "he", "she", "his", "her", "him",
    "you", "your", "we", "our", "us", "i", "my", "is", "are", "be", "been", "being", "was", "were", "am", "will", "would", "shall",
    "should", "can", "could", "may", "might", "must", "do", "does", "did", "done", "doing", "has", "have", "had", "having", "let", "lets",
    "to", "of", "in", "on", "at", "by", "for", "with", "from", "into", "onto", "as", "than", "then", "and", "or", "but", "so", "if",
    "any", "all", "every", "each", "some", "one", "ones", "there", "here", "when", "whenever", "while", "which", "who", "whom", "what", "whatever", "where",
    "please", "also", "too", "just", "very", "really", "ever", "even", "still", "yet", "again", "anymore", "more", "most", "much",
    "agent", "agents", "bot", "bots", "assistant", "ai", "model", "system", "tool", "tools", "make", "sure", "ensure", "want", "like",
    "go", "goes", "going", "gone", "get", "gets", "got", "take", "taken", "use", "used", "using", "happen", "happens", "enforce", "apply", "applies", "follow", "following",
    "allow", "allowed", "allows", "permit", "permitted", "able", "ok", "okay", "fine", "good", "right", "rule", "rules", "policy",
    "anything", "something", "things", "thing", "everything", "stuff", "else", "other", "others", "same", "exact", "exactly", "such", "own",
    "up", "out", "off", "about", "via", "through", "per", "regardless", "matter", "no", "not", "always", "under", "circumstances", "case", "cases",
    "perform", "performed", "carry", "carried", "need", "needs", "needed", "require", "requires", "required", "issue", "issued",
    "only", "never", "either", "both", "now", "currently", "current", "longer", "plenty", "enough", "sharp", "included", "inclusive", "including", "total", "sum", "overall", "altogether", "together", "maximum", "single", "value", "values", "worth", "amount", "amounts", "number",
    "anyone", "anybody", "everyone", "everybody", "someone", "somebody", "nobody", "people", "person", "persons", "user", "users", "caller", "callers",
    "time", "times", "day", "days", "hour", "hours", "week", "month", "year", "minute", "minutes", "utc", "own", "itself", "themselves", "himself", "herself", "yourself", "freely", "directly", "itself",
    "place", "work", "works", "rate", "offer", "offers", "offered", "support", "supported", "accept", "accepted", "provide", "provided", "agent's", "keep", "kept", "leave", "applicable", "respectively", "i.e", "e.g", "etc", "limit", "limits", "restriction", "restrictions", "restrict", "restricted", "access", "call", "calls", "called", "without", "unless", "until", "before", "after", "once", "first", "since", "between", "during", "within",
    "given", "give", "must", "further", "additional", "new", "well", "way", "anywhere", "somewhere", "everywhere", "nowhere", "actually", "simply", "because", "think", "know", "remember", "note", "nb", "thanks", "thank", "hi", "hello", "team", "today", "already", "previously", "prior", "earlier", "later", "afterwards", "beforehand", "long", "soon", "proceed", "ahead", "session", "run", "conversation", "chat",
];

/// Whether a word carries no content of its own.
pub(super) fn is_filler(word: &str) -> bool {
    FILLERS.contains(&word) || word.chars().all(|c| !c.is_alphanumeric())
}

/// Words that say that something is so in somebody's judgement, with what is to be asked.
pub(super) const VAGUE_AMOUNTS: &[&str] = &[
    "large", "larger", "big", "bigger", "small", "smaller", "high", "higher", "low", "expensive", "costly", "huge", "significant", "substantial", "major",
    "minor", "excessive", "unusually", "high-value", "considerable", "generous", "modest", "hefty", "sizeable", "sizable", "long", "short",
];
/// Words that leave the meaning open.
pub(super) const VAGUE: &[&str] = &[
    "suspicious", "unusual", "strange", "odd", "weird", "dangerous", "risky", "harmful", "malicious", "inappropriate", "appropriate", "appropriately", "reasonable", "reasonably",
    "sensitive", "confidential", "critical", "important", "serious", "unnecessary", "unneeded", "excessively", "sensible", "sensibly", "fraudulent", "shady", "fishy", "dodgy", "bad", "careful", "carefully", "abnormal",
    "recently", "recent", "often", "frequently", "too", "many", "few", "several", "spam", "spammy", "abusive", "questionable", "untrusted", "dubious", "irregular",
];
/// Words that leave open who is meant.
pub(super) const VAGUE_WHO: &[&str] = &[
    "authorised", "authorized", "trusted", "qualified", "responsible", "relevant", "proper", "suitable", "designated", "certain", "eligible", "approved", "entitled", "privileged", "appropriate", "right", "competent", "selected", "permitted", "known", "unauthorised", "unauthorized", "internal", "external",
];
/// Words about how replies are, or what a model knows: no gate of calls can see it.
pub(super) const ABOUT_REPLIES: &[&str] = &[
    "friendly", "polite", "politely", "tone", "kind", "courteous", "empathetic", "concise", "professional", "professionally", "accurate", "honest", "hallucinate", "invent", "invented", "lie", "lies", "guess", "sound", "sounds", "rude", "helpful", "respectful", "apologise", "apologize", "apologetic", "jargon", "truthful", "creative", "humble", "warm", "style", "wording", "talk", "talks", "speak", "speaks",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_sense() {
        for (one, other) in [
            ("refunds", "refund"), ("issued", "issue"), ("deployments", "deploy"), ("sent", "send"), ("emails", "email"),
            ("payments", "pay"), ("deleted", "remove"), ("approval", "approve"), ("migrations", "migrate"), ("copies", "copy"),
            ("shipping", "shipment"), ("merging", "merge"), ("closed", "close"), ("addresses", "address"), ("creating", "create"),
            ("resets", "resetting"), ("searches", "search"), ("publishing", "publish"), ("restored", "restore"),
        ] {
            assert_eq!(sense(one), sense(other), "{one} {other}");
        }
        for (one, other) in [("lock", "unlock"), ("read", "write"), ("send", "mail"), ("open", "reopen")] {
            assert_ne!(sense(one), sense(other), "{one} {other}");
        }
    }

    #[test]
    fn names_come_apart() {
        assert_eq!(parts("placeOrder"), ["place", "order"]);
        assert_eq!(parts("mail.send_now"), ["mail", "send", "now"]);
        assert_eq!(parts("amountCents"), ["amount", "cents"]);
    }
}
