//! What rules mean, computed: a second reading of them that shares no code with the programs and sequences that are emitted.
//! Generated tests and enumerated runs are held to it.

use serde_json::{Map, Value};

use crate::rule::{Asks, Condition, Number, Past, Rule, Stop, Test, Times, Unit, Window};

/// Whoever calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Caller {
    /// Roles.
    pub roles: Vec<String>,
    /// Attributes.
    pub attributes: Map<String, Value>,
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Minutes since 1970 in UTC.
    pub at: i64,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub args: Map<String, Value>,
}

/// What must become of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Must {
    /// No rule stops it.
    Pass,
    /// It is held.
    Hold,
    /// It is denied.
    Deny,
}

/// What becomes of each call of a run. Calls that pass have happened, with success.
pub fn judge(rules: &[Rule], caller: &Caller, calls: &[Call]) -> Vec<Must> {
    let mut happened: Vec<&Call> = Vec::new();
    let mut verdicts = Vec::new();
    for call in calls {
        let fired = rules.iter().filter(|rule| fires(rule, caller, call, &happened));
        let must = fired
            .map(|rule| if rule.stop == Stop::Deny { Must::Deny } else { Must::Hold })
            .max()
            .unwrap_or(Must::Pass);
        if must == Must::Pass {
            happened.push(call);
        }
        verdicts.push(must);
    }
    verdicts
}

/// Whether a rule stops a call.
pub fn fires(rule: &Rule, caller: &Caller, call: &Call, happened: &[&Call]) -> bool {
    rule.tools.contains(&call.tool)
        && rule.when.iter().all(|condition| applies(condition, rule, caller, call) != Some(false))
        && rule.past.as_ref().is_none_or(|past| asks(past, rule, caller, call, happened))
}

/// As [`holds`]; where the past is asked about, negative amounts are as good as unknown.
fn applies(condition: &Condition, rule: &Rule, caller: &Caller, call: &Call) -> Option<bool> {
    let compared = match condition {
        Condition::Argument(name, Test::Compares(..)) => call.args.get(name),
        Condition::Not(inner) => match inner.as_ref() {
            Condition::Argument(name, Test::Compares(..)) => call.args.get(name),
            _ => None,
        },
        _ => None,
    };
    let is_negative = compared.and_then(number).is_some_and(|amount| amount < 0);
    if is_negative && rule.past.is_some() { None } else { holds(condition, caller, call) }
}

fn asks(past: &Past, rule: &Rule, caller: &Caller, call: &Call, happened: &[&Call]) -> bool {
    let same = |earlier: &&&Call| match &past.same {
        None => true,
        Some((theirs, ours)) => match (earlier.args.get(theirs), call.args.get(ours)) {
            (Some(theirs), Some(ours)) => theirs == ours,
            // What nobody can tell counts where it stops, and not where it is required.
            _ => !matches!(past.asks, Asks::Before(_)),
        },
    };
    let recent = |earlier: &&&Call| past.within.is_none_or(|window| is_within(window, earlier.at, call.at));
    let conditions = match &past.asks {
        Asks::Count(_) | Asks::Sum(..) => &rule.when,
        Asks::After(_) | Asks::Before(_) => &past.earlier,
    };
    let meant = |earlier: &&&Call| {
        conditions.iter().all(|condition| match applies(condition, rule, caller, earlier) {
            Some(holds) => holds,
            None => !matches!(past.asks, Asks::Before(_)),
        })
    };
    let counted = |tools: &[String]| -> Vec<&Call> {
        let earlier = happened.iter().filter(|earlier| tools.contains(&earlier.tool));
        earlier.filter(same).filter(recent).filter(meant).copied().collect()
    };
    match &past.asks {
        Asks::Count(most) => counted(&rule.tools).len() >= usize::try_from(*most).unwrap_or(usize::MAX),
        Asks::Sum(argument, most) => {
            let amount = |call: &Call| call.args.get(argument).and_then(number).filter(|amount| *amount >= 0);
            let all: Option<i64> = counted(&rule.tools).into_iter().chain([call]).map(amount).sum();
            all.is_none_or(|all| all > most.0)
        }
        Asks::After(tools) => !counted(tools).is_empty(),
        Asks::Before(tools) => counted(tools).is_empty(),
    }
}

fn is_within(window: Window, earlier: i64, now: i64) -> bool {
    match window {
        Window::Seconds(seconds) => {
            (now - earlier).saturating_mul(60) <= i64::try_from(seconds).unwrap_or(i64::MAX)
        }
        Window::Calendar(unit) => period(unit, earlier) == period(unit, now),
    }
}

fn period(unit: Unit, at: i64) -> i64 {
    let day = at.div_euclid(1_440);
    let (year, month, _) = date_of(day);
    match unit {
        Unit::Hour => at.div_euclid(60),
        Unit::Day => day,
        Unit::Week => (day + 3).div_euclid(7),
        Unit::Month => year * 12 + month,
        Unit::Year => year,
    }
}

/// Whether a condition holds; `None` where nobody can tell.
pub fn holds(condition: &Condition, caller: &Caller, call: &Call) -> Option<bool> {
    match condition {
        Condition::Role(roles) => Some(caller.roles.iter().any(|role| roles.contains(role))),
        Condition::Attribute(name, compare, limit) => {
            caller.attributes.get(name).and_then(number).map(|value| compare.holds(value, limit.0))
        }
        Condition::Flag(name) => caller.attributes.get(name).and_then(Value::as_bool),
        Condition::Argument(name, Test::Given) => Some(is_given(call.args.get(name))),
        Condition::Argument(name, test) => tested(test, call.args.get(name)?),
        Condition::At(times) => Some(is_time(times, call.at)),
        Condition::Not(inner) => holds(inner, caller, call).map(|holds| !holds),
        Condition::Any(all) => joined(all.iter().map(|one| holds(one, caller, call)), true),
        Condition::All(all) => joined(all.iter().map(|one| holds(one, caller, call)), false),
    }
}

fn joined(all: impl Iterator<Item = Option<bool>>, wanted: bool) -> Option<bool> {
    let mut result = Some(!wanted);
    for one in all {
        match one {
            Some(one) if one == wanted => return Some(wanted),
            None => result = None,
            Some(_) => {}
        }
    }
    result
}

fn is_given(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}

/// A number in millionths.
pub fn number(value: &Value) -> Option<i64> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    let (sign, digits) = text.strip_prefix('-').map_or((1, text.as_str()), |digits| (-1, digits));
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || whole.len() > 12 || rest.len() > 6 || !plain(whole) || !plain(rest) {
        return None;
    }
    format!("{whole}{rest:0<6}").parse::<i64>().ok().map(|micros| sign * micros)
}

fn tested(test: &Test, value: &Value) -> Option<bool> {
    match test {
        Test::Given => Some(is_given(Some(value))),
        Test::Compares(compare, Number(limit)) => number(value).map(|value| compare.holds(value, *limit)),
        Test::Items(compare, count) => {
            let items = match value {
                Value::Array(items) => items.len(),
                Value::String(text) => split(text).count(),
                _ => return None,
            };
            Some(compare.holds(i64::try_from(items).unwrap_or(i64::MAX), i64::from(*count)))
        }
        Test::OneOf(values) => each(value, false, |one| {
            let text = match one {
                Value::String(text) => text.trim().to_lowercase(),
                Value::Number(_) | Value::Bool(_) => one.to_string(),
                _ => return None,
            };
            Some(values.iter().any(|value| value.to_lowercase() == text))
        }),
        Test::Starts(starts) => each(value, false, |one| {
            let text = one.as_str()?.trim_start().to_lowercase();
            Some(starts.iter().any(|start| text.starts_with(&start.to_lowercase())))
        }),
        // One entry of a list that has it is enough, as it is for a text.
        Test::Contains(parts) => {
            let texts: Vec<String> = match value {
                Value::String(text) => vec![text.to_lowercase()],
                Value::Array(items) => {
                    items.iter().map(|item| item.as_str().map(str::to_lowercase)).collect::<Option<_>>()?
                }
                _ => return None,
            };
            Some(parts.iter().any(|part| texts.iter().any(|text| text.contains(&part.to_lowercase()))))
        }
        Test::InDomain(domains, below) => each(value, true, |one| {
            let host = host_of(one.as_str()?)?;
            Some(domains.iter().any(|domain| {
                let domain = domain.to_lowercase();
                host == domain || *below && host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
            }))
        }),
        Test::Under(folders) => each(value, false, |one| {
            let path = normal(one.as_str()?)?;
            if folders.iter().any(|folder| folder.starts_with('/') != path.starts_with('/')) {
                return None;
            }
            Some(folders.iter().any(|folder| {
                path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }))
        }),
        Test::Named(names) => each(value, false, |one| {
            let path = normal(one.as_str()?)?;
            let last = path.rsplit('/').next()?.to_lowercase();
            Some(names.iter().any(|name| match name.strip_prefix('*') {
                Some(end) => last.ends_with(&end.to_lowercase()),
                None => last == name.to_lowercase(),
            }))
        }),
    }
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty())
}

/// The answer for all entries of a list; none where they differ.
fn each(value: &Value, splits: bool, test: impl Fn(&Value) -> Option<bool>) -> Option<bool> {
    let all: Vec<Option<bool>> = match value {
        Value::Array(items) => items.iter().map(&test).collect(),
        Value::String(text) if splits => split(text).map(|part| test(&Value::from(part))).collect(),
        value => vec![test(value)],
    };
    let first = all.first().copied().flatten()?;
    all.iter().all(|one| *one == Some(first)).then_some(first)
}

/// The domain of an address, or the host of a URL.
fn host_of(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let name = |text: &str| {
        let plain =
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        plain.then(|| text.trim_end_matches('.').to_owned())
    };
    let address = text
        .strip_suffix('>')
        .and_then(|text| text.rsplit_once('<').map(|(_, inner)| inner))
        .unwrap_or(&text);
    if let Some((local, domain)) = address.split_once('@')
        && !local.is_empty()
        && !local.contains(['/', '<', '>', ',', ';', ' '])
    {
        return name(domain);
    }
    let rest = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| port.chars().all(|c| c.is_ascii_digit()))
        .map_or(host, |(host, _)| host);
    name(host)
}

fn normal(path: &str) -> Option<String> {
    if path.is_empty() || path.contains('\\') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    Some(format!("{root}{}", parts.join("/")))
}

fn is_time(times: &Times, at: i64) -> bool {
    let at = at + i64::from(times.offset);
    let (day, minute) = (at.div_euclid(1_440), at.rem_euclid(1_440));
    let weekday = u8::try_from((day + 3).rem_euclid(7)).unwrap_or(0);
    if !times.weekdays.is_empty() && !times.weekdays.contains(&weekday) {
        return false;
    }
    if let Some((first, last)) = &times.dates {
        let before = parsed(first).is_some_and(|first| day < first);
        let after = parsed(last).is_some_and(|last| day > last);
        if before || after {
            return false;
        }
    }
    match times.minutes.map(|(from, until)| (i64::from(from), i64::from(until))) {
        None => true,
        Some((from, until)) if from == until => true,
        Some((from, until)) if from < until => from <= minute && minute < until,
        Some((from, until)) => minute >= from || minute < until,
    }
}

/// The day of a date, since 1970.
pub fn parsed(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    // Howard Hinnant's days_from_civil.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Year, month and day of a day since 1970: Howard Hinnant's civil_from_days.
pub fn date_of(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// A time as tests write it: `2026-11-24T10:00Z`.
pub fn written(at: i64) -> String {
    let (year, month, day) = date_of(at.div_euclid(1_440));
    let minute = at.rem_euclid(1_440);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}Z", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for date in ["1970-01-01", "2026-11-24", "2027-02-28", "2028-02-29", "2000-12-31"] {
            let day = parsed(date).unwrap();
            let (year, month, of_month) = date_of(day);
            assert_eq!(format!("{year:04}-{month:02}-{of_month:02}"), date);
        }
        // A Tuesday.
        assert_eq!((parsed("2026-11-24").unwrap() + 3).rem_euclid(7), 1);
        assert_eq!(written(parsed("2026-11-24").unwrap() * 1_440 + 601), "2026-11-24T10:01Z");
    }

    #[test]
    fn hosts_are_read_in_one_way() {
        for (text, host) in [
            ("bob@acme.com", Some("acme.com")),
            ("Bob <bob@acme.com>", Some("acme.com")),
            ("https://acme.com:443/x", Some("acme.com")),
            ("https://bob@evil.example/acme.com", None),
            ("bob@a@acme.com", None),
        ] {
            assert_eq!(host_of(text).as_deref(), host, "{text}");
        }
        assert_eq!(normal("/srv/reports/../x").as_deref(), Some("/srv/x"));
        assert_eq!(normal("/../x"), None);
    }
}
