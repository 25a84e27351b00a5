"use strict";
// The console's own script. Every page works without it; it adds what changes by itself, keys, and buttons that wait.
//
// One stream for all tabs of a browser: the tab that holds a lock has it, and tells the others. Where there are no locks,
// and where the stream is silent for too long, a tab asks every few seconds. What is told are ids and counts; a part of a
// page that changed is fetched from the server as the server makes it.
(() => {
  const SILENT_MS = 35000, POLL_MS = 5000, MOVED_MS = 1500, AGAIN_MS = 3000;
  const start = Date.now();
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const one = (selector, root) => (root || document).querySelector(selector);

  // ---- waiting times ----
  const span = (s) => s < 100 ? s + " s" : s < 6000 ? Math.floor(s / 60) + " min" : s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " days";
  const ages = new WeakMap();
  const count = () => {
    for (const element of all("[data-age]")) {
      if (!ages.has(element)) ages.set(element, Date.now());
      const seconds = Number(element.dataset.age) + Math.floor((Date.now() - ages.get(element)) / 1000);
      const text = span(seconds);
      if (element.textContent !== text) element.textContent = text;
      if (element.classList.contains("age")) element.classList.toggle("old", seconds >= 180);
    }
  };
  all("[data-age]").forEach((element) => ages.set(element, start));
  setInterval(count, 1000);

  // ---- buttons wait between press and answer ----
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) { event.preventDefault(); return; }
    if (form.getAttribute("method") !== "post") return;
    form.dataset.sent = "yes";
    // After the browser has taken the value of the button that was pressed.
    setTimeout(() => {
      for (const button of all("button", form)) button.disabled = true;
      // A field of that name would hide the attribute.
      const id = form.getAttribute("id");
      if (id) for (const button of all(`button[form="${id}"]`)) button.disabled = true;
    }, 0);
  });
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const form of all("form[data-sent]")) { delete form.dataset.sent; all("button", form).forEach((button) => { button.disabled = false; }); }
  });

  // ---- parts of the page ----
  const busy = (part) => {
    // Where there is nothing to press, nothing is missed when it changes.
    if (!one("a, button, input, select, textarea, summary", part)) return false;
    return part.matches(":hover") || (part.contains(document.activeElement) && document.activeElement !== document.body);
  };
  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  // Whoever asks at once gets the same page. One that is on its way already may have been made before what was told since.
  let flight = null, boarding = false;
  const load = async () => {
    try {
      const answer = await fetch(location.href.split("#")[0], { redirect: "manual" });
      return answer.ok ? await answer.text() : null;
    } catch (_) { return null; } finally { flight = null; }
  };
  const fresh = async () => {
    while (flight && !boarding) await flight;
    if (!flight) {
      boarding = true;
      setTimeout(() => { boarding = false; }, 0);
      flight = load();
    }
    const text = await flight;
    return text === null ? null : parse(text);
  };
  const replace = (from, name) => {
    const old = one(`[data-live="${name}"]`), now = one(`[data-live="${name}"]`, from);
    if (!old || !now) return;
    const known = new Set(all("[data-id]", old).map((row) => row.dataset.id));
    for (const row of all("[data-id]", now)) if (!known.has(row.dataset.id)) row.classList.add("fresh");
    all("[data-age]", now).forEach((element) => ages.set(element, Date.now()));
    old.replaceWith(document.adoptNode(now));
  };
  const offer = (part, text) => {
    let bar = one(".newrow");
    if (!bar) {
      bar = document.createElement("a");
      bar.className = "newrow";
      bar.href = location.href.split("#")[0];
      part.before(bar);
    }
    bar.textContent = text;
  };
  // What moves while somebody points at it is offered instead; what only counts is tried again.
  const refresh = async (...names) => {
    const there = names.filter((name) => one(`[data-live="${name}"]`));
    const free = there.filter((name) => !busy(one(`[data-live="${name}"]`)));
    for (const name of there) if (!free.includes(name) && !name.startsWith("now-")) offer(one(`[data-live="${name}"]`), "There is something new. Show it");
    const later = there.filter((name) => !free.includes(name) && name.startsWith("now-"));
    if (later.length) setTimeout(() => refresh(...later), AGAIN_MS);
    if (!free.length) return;
    const page = await fresh();
    if (!page) return;
    const bar = one(".newrow");
    if (bar && free.length === there.length) bar.remove();
    for (const name of free) replace(page, name);
  };
  let due = null;
  const soon = () => { if (!due) due = setTimeout(() => { due = null; refresh("now-figures", "now-runs", "now-sides"); }, 3000); };

  // ---- the open request ----
  const asked = one("[data-approval]");
  const check = async () => {
    if (!asked || !one("#decide")) return;
    const page = await fresh();
    if (!page) return;
    const now = one("[data-approval]", page);
    const same = now && now.dataset.approval === asked.dataset.approval && now.dataset.display === asked.dataset.display && one("#decide", page);
    if (same) return;
    const form = one("section.decide", asked);
    const note = document.createElement("section");
    note.className = "decide";
    const words = document.createElement("p");
    const gone = !now || now.dataset.approval !== asked.dataset.approval || !one("#decide", page);
    words.textContent = gone ? "This request was decided elsewhere, or lapsed. " : "This request has changed since you opened it. ";
    const link = document.createElement("a");
    link.className = "btn";
    link.href = "/approvals/" + asked.dataset.approval;
    link.textContent = "Look again";
    words.append(link);
    note.setAttribute("role", "status");
    note.append(words);
    if (form) form.replaceWith(note);
    all(".early", asked).forEach((early) => early.remove());
  };

  // ---- what is told ----
  let told = null;
  const title = document.title.replace(/^\(\d+\) /, "");
  const shown = (now) => {
    document.title = (now.waiting ? `(${now.waiting}) ` : "") + title;
    for (const element of all("[data-waiting]")) { element.textContent = now.waiting; element.hidden = !now.waiting; }
    const bar = one('[data-live="waits"]');
    if (bar && told && told.waiting !== now.waiting) fresh().then((page) => { if (page) replace(page, "waits"); });
  };
  const take = (now) => {
    // The first message may already say something else than the page that was made before it.
    const rendered = Number((one('[data-live="waits"]') || { dataset: {} }).dataset.count || 0);
    const first = !told;
    const before = told || { waiting: rendered, version: rendered === now.waiting ? now.version : null };
    told = before;
    shown(now);
    told = now;
    if (first) { now.runs = []; now.more = Boolean(one('[data-live="timeline"]')); }
    if (before.version !== now.version) refresh("tabs", "queue", "now-sentence", "now-waiting");
    if (before.version !== now.version || now.more || (asked && now.runs.length)) check();
    if (!now.runs.length && !now.more) return;
    if (one('[data-live="first"]')) { location.reload(); return; }
    refresh("runs");
    if (one('[data-live="sim"] .spin')) refresh("sim");
    soon();
    const run = one('[data-live="timeline"]');
    if (run && (now.more || now.runs.includes(run.dataset.run)) && one('[data-live="end"]') && !new URLSearchParams(location.search).has("at")) refresh("timeline");
  };

  // ---- drafts: what a change would mean, as one types ----
  const DRAFT_MS = 500;
  const draft = one("form[data-draft]");
  if (draft) {
    let timer = null, turn = 0;
    const numbers = (area) => {
      const gutter = one(".gutter", area.parentElement);
      const wanted = Math.max(area.value.split("\n").length + 1, Number(area.dataset.lines));
      if (!gutter || gutter.textContent.split("\n").length - 1 === wanted) return;
      gutter.textContent = Array.from({ length: wanted }, (_, at) => at + 1).join("\n") + "\n";
      area.rows = wanted;
    };
    const look = async (part) => {
      const mine = ++turn;
      const fields = new URLSearchParams(new FormData(draft));
      fields.set("do", "check");
      const outcome = one("[data-part='outcome']");
      if (outcome) outcome.setAttribute("aria-busy", "true");
      try {
        const answer = await fetch(draft.getAttribute("action"), { method: "POST", body: fields, redirect: "manual" });
        if (mine !== turn || (answer.status !== 200 && answer.status !== 409)) return;
        const page = parse(await answer.text());
        // Where somebody types stays as it is; the other view of the draft, and what it would mean, are the server's.
        const names = ["above", "hidden", "outcome", "form", "text"];
        for (const name of names.filter((name) => name !== part)) {
          const old = one(`[data-part="${name}"]`), now = one(`[data-part="${name}"]`, page);
          if (old && now && !(old.contains(document.activeElement) && (name === "form" || name === "text"))) old.replaceWith(document.adoptNode(now));
        }
        const was = one("[name='was']", draft), fresh = one("[name='was']", page);
        if (part === "form" && was && fresh) was.value = fresh.value;
      } catch (_) { /* the next key tries again */ } finally {
        const now = one("[data-part='outcome']");
        if (now) now.removeAttribute("aria-busy");
      }
    };
    draft.addEventListener("input", (event) => {
      const part = event.target.closest("[data-part]");
      if (event.target.matches("[data-lines]")) numbers(event.target);
      clearTimeout(timer);
      timer = setTimeout(() => look(part ? part.dataset.part : ""), DRAFT_MS);
    });
  }
  for (const area of all("textarea[data-lines]")) {
    // Tab leaves a field; in a text two spaces are typed by hand.
    area.addEventListener("scroll", () => { const gutter = one(".gutter", area.parentElement); if (gutter) gutter.scrollTop = area.scrollTop; });
  }

  // ---- a request is judged as one types ----
  const ask = one("[data-ask]");
  if (ask) {
    let timer = null, turn = 0;
    ask.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const mine = ++turn;
        try {
          const answer = await fetch("/simulate?" + new URLSearchParams(new FormData(ask.form)), { redirect: "manual" });
          if (!answer.ok || mine !== turn) return;
          const now = one("[data-part='judged']", parse(await answer.text())), old = one("[data-part='judged']");
          if (old && now) old.replaceWith(document.adoptNode(now));
        } catch (_) { /* the button asks as well */ }
      }, DRAFT_MS);
    });
  }

  // A simulation that runs ends without a further event.
  setInterval(() => { if (one('[data-live="sim"] .spin')) refresh("sim"); }, 1500);

  // ---- one stream a browser ----
  if (one("form[action='/sign-out']")) {
    const channel = "BroadcastChannel" in window ? new BroadcastChannel("portcullis") : null;
    let heard = Date.now();
    const hear = (now) => { heard = Date.now(); take(now); };
    if (channel) channel.onmessage = (event) => { if (event.data === "alive") heard = Date.now(); else hear(event.data); };
    const lead = () => new Promise((done) => {
      const stream = new EventSource("/live");
      const alive = setInterval(() => { if (stream.readyState === 2) { clearInterval(alive); stream.close(); done(); } }, 5000);
      stream.onmessage = (event) => {
        const now = JSON.parse(event.data);
        hear(now);
        if (channel) channel.postMessage(now);
      };
      window.addEventListener("pagehide", () => { clearInterval(alive); stream.close(); done(); });
    });
    const poll = async () => {
      try {
        const answer = await fetch("/live/now", { redirect: "manual" });
        if (answer.status === 401) { location.reload(); return; }
        if (answer.ok) { const now = await answer.json(); now.more = true; hear(now); heard = 0; }
      } catch (_) { /* the next time */ }
    };
    if (channel && navigator.locks) {
      const join = () => navigator.locks.request("portcullis-live", lead).then(() => setTimeout(join, MOVED_MS));
      join();
      setInterval(() => { if (Date.now() - heard > SILENT_MS) poll(); }, POLL_MS);
    } else {
      setInterval(poll, POLL_MS);
    }
    window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  }

  // ---- keys ----
  const coarse = matchMedia("(pointer: coarse)").matches;
  const off = () => { try { return localStorage.getItem("keys") === "off"; } catch (_) { return false; } };
  const keys = one("[data-keys]");
  const draw = () => {
    if (!keys || coarse) return;
    keys.hidden = false;
    keys.textContent = "";
    const pair = (letters, word) => {
      const part = document.createElement("span");
      for (const letter of letters) { const key = document.createElement("kbd"); key.textContent = letter; part.append(key, " "); }
      part.append(word);
      keys.append(part);
    };
    if (!off()) { pair("JK", "move"); pair("A", "to the grant"); pair("R", "to refuse"); pair("/", "find"); }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn plain small";
    button.textContent = off() ? "switch keys on" : "switch keys off";
    button.onclick = () => { try { localStorage.setItem("keys", off() ? "on" : "off"); } catch (_) { /* stays */ } draw(); };
    keys.append(button);
    all("[data-key]").forEach((key) => { key.hidden = off(); });
  };
  draw();
  const move = (by) => {
    const rows = all(".queue a");
    const at = rows.findIndex((row) => row === document.activeElement || (document.activeElement === document.body && row.hasAttribute("aria-current")));
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next) next.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (coarse || off() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { if (document.activeElement) document.activeElement.blur(); return; }
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const to = (element) => { if (element) { event.preventDefault(); element.focus(); element.scrollIntoView({ block: "nearest" }); } };
    switch (event.key) {
      case "j": move(1); break;
      case "k": move(-1); break;
      case "a": to(one("#decide button[value='grant']")); break;
      case "r": to(one("button[value='refuse']")); break;
      case "/": to(one("input[type='search']")); break;
      default: break;
    }
  });
})();
