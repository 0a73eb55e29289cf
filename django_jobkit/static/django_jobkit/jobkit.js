/* Keeps what a page shows of unfinished jobs up to date: docs/templates.md. What a job says is only ever text here. */
(() => {
	"use strict";
	const words = JSON.parse(document.querySelector("script[data-jobkit-texts]").dataset.jobkitTexts);
	const FAST = 2e3, SLOW = 1e4, IDLE_FAST = 15e3, IDLE_SLOW = 12e4, TROUBLE = 6e4, LONGEST = 36e5;
	const { hasOwn } = Object;

	// As in display.py: control characters shown instead of obeyed.
	const visible = (text) => text.replace(/\r\n/g, "\n").replace(
		/[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g,
		(char) => {
			const code = char.charCodeAt();
			if (code < 128) return String.fromCharCode(code < 32 ? 0x2400 + code : 0x2421);
			return `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
		});
	const cut = (text, limit) => {
		const chars = [...text];
		return visible(chars.length > limit ? chars.slice(0, limit - 1).join("") + "…" : text);
	};
	const digits = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, words.group);
	const fill = (pattern, values) => pattern.replace(/{(\w+)}/g, (_, name) => values[name]);
	const duration = (pattern, ms) => {
		let left = Math.max(0, Math.floor(ms / 1000));
		const parts = words.units.map(([size, text]) => {
			const count = Math.floor(left / size);
			left %= size;
			return count ? fill(text, { count }) : "";
		});
		const first = parts.findIndex(Boolean);
		const shown = parts.slice(first, first + 2).filter(Boolean).join(" ");
		return fill(pattern, { duration: shown || fill(words.units.at(-1)[1], { count: 0 }) });
	};
	const clock = (date) => {
		let text;
		try {
			// Sweden writes times as ISO 8601 does.
			text = date.toLocaleString("sv-SE", { timeZone: words.zone });
		} catch {
			text = date.toISOString().slice(0, 19) + "Z";
		}
		const day = text.slice(0, 10);
		return `${words.dates[day] || day} ${text.slice(11)}`;
	};

	function watch(root) {
		const { jobkitLive: url, jobkitQueuedAfter: patience } = root.dataset;
		const whole = hasOwn(root.dataset, "jobkitPage");
		// No ETag at first: how long a job runs is to be told even if nothing in it changes.
		let { jobkitState: state } = root.dataset, job, etag;
		const pace = () => (["", "queued", "running"].includes(state || "") ? [FAST, SLOW] : [IDLE_FAST, IDLE_SLOW]);
		let percent, failures = 0, seen = new Date(), [delay] = pace();
		let timer, due, busy = false, over = false;

		const each = (selector, act) => (whole ? document : root).querySelectorAll(selector).forEach((element) => {
			if ([root, null].includes(element.closest("[data-jobkit-live]"))) act(element);
		});
		const named = (name, act) => each(`[data-jobkit="${name}"]`, act);
		const put = (name, text) => named(name, (element) => {
			if (element.textContent !== text) element.textContent = text;
			element.hidden = !text;
		});

		function show(now) {
			const text = (name) => (typeof job[name] === "string" ? job[name] : "");
			const number = (name) => (job[name] > 0 ? job[name] : 0);
			const time = (name) => (text(name).startsWith("0001-01-01T00:00:00") ? NaN : Date.parse(text(name)));
			const known = hasOwn(words.states, job.state), running = job.state === "running";
			const label = known ? words.states[job.state] : cut(job.state, 40) || words.unknown;
			const title = cut(text("title").trim().replace(/\s+/g, " "), 200) || url.split("/").at(-3);

			if (whole) each('h1 [data-jobkit="title"]', (element) => {
				document.title = document.title.replace(element.textContent, () => title);
			});
			put("title", title);
			named("state", (element) => {
				element.className = `jobkit-state jobkit-state-${known ? job.state : "other"}`;
				(element.firstElementChild || element).textContent = label;
			});
			put("attempts", digits(number("attempts")));

			const total = number("progress_total"), before = percent;
			const current = Math.min(number("progress_current"), total || Infinity);
			const message = cut(text("progress_message"), 200);
			percent = total ? Math.floor(current * 100 / total) : 0;
			named("bar", (element) => {
				element.hidden = !total;
				element.value = percent;
			});
			put("count", total
				? fill(words.of, { current: digits(current), total: digits(total) })
				: current ? digits(current) : "");
			put("message", message);

			const error = text("error"), lines = error.trim().split("\n");
			const long = error.split("\n").length > 8 || [...error].length > 600;
			put("error-title", job.state === "failed" ? words.error : words.lastError);
			put("error-gist", cut(lines.at(lines[0].startsWith("Traceback") ? -1 : 0), 200));
			put("error", cut(error, 2e4));

			const [queued, started, finished] = ["queued_at", "started_at", "finished_at"].map(time);
			each("[data-jobkit-time]", (element) => {
				const name = element.dataset.jobkitTime, moment = time(name), made = document.createElement("time");
				if (Date.parse(element.querySelector("time")?.dateTime) === moment) return;
				made.dateTime = made.title = job[name];
				if (moment) made.textContent = clock(new Date(moment));
				element.replaceChildren(moment ? made : "–");
			});
			put("waited", started && queued ? duration(words.after, started - queued) : "");
			put("ran", started && finished ? duration(words.after, finished - started) : "");
			put("running", running && started ? duration(words.runningFor, now - started) : "");
			each("[data-jobkit-field]", (element) => {
				const name = element.dataset.jobkitField, value = job[name];
				// What the server wrote as 2.0 is 2 here.
				if (!hasOwn(job, name) || Number(element.textContent || NaN) === value) return;
				element.textContent = cut(typeof value === "string" ? value : JSON.stringify(value), 2e3);
			});

			const there = {
				error, long, short: error && !long, running: running && started, progress: current || total || message,
				queued_at: queued, started_at: started, finished_at: finished,
				lost: running && time("lease_expires_at") <= now,
				waiting: job.state === "queued" && now - (time("updated_at") || queued) > patience * 1000,
			};
			each("[data-jobkit-when]", (element) => { element.hidden = !there[element.dataset.jobkitWhen]; });

			// Not every step is worth telling somebody who listens to the page.
			if (job.state !== state) put("news", `${title}: ${label}`);
			else if (Math.floor(before / 25) < Math.floor(percent / 25)) put("news", `${title}: ${percent} %`);
			state = job.state;
			root.dispatchEvent(new CustomEvent("jobkit:change", { bubbles: true, detail: job }));
		}

		function stop(text) {
			over = true;
			put("stale", text);
		}

		function turn(ended) {
			const { activeElement, body } = document;
			// A page that is being read or operated isn't taken away.
			const read = activeElement !== body || String(getSelection()) || root.querySelector("details[open]");
			named("done", (element) => { element.hidden = !ended || !read; });
			if (ended && !read) setTimeout(() => location.reload(), 1000);
		}

		async function poll() {
			let wait = 0;
			busy = true;
			try {
				const response = await fetch(url, {
					headers: etag ? { "If-None-Match": etag } : {},
					cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(2e4),
				});
				const { status, type, headers } = response;
				if (type === "opaqueredirect" || status === 401 || status === 403) return stop(words.closed);
				if (status === 404) return stop(words.gone);
				wait = Math.min(headers.get("Retry-After") * 1000 || 0, LONGEST);
				const fresh = status !== 304, before = state;
				if (fresh) {
					const read = status === 200 && await response.json();
					if (typeof read.state !== "string") throw new Error(status);
					[job, etag] = [read, headers.get("ETag")];
				}
				show(Date.parse(headers.get("Date")) || Date.now());
				[failures, seen] = [0, new Date()];
				put("stale", "");
				const done = state === "succeeded", [fast, slow] = pace();
				// A page that doesn't say its state would be loaded for a failed job again and again.
				if (whole && state !== before) turn(done || (before && state === "failed"));
				if (done) return stop("");
				delay = fresh ? fast : Math.min(delay * 1.5, slow);
			} catch {
				if (++failures > 1) put("stale", fill(words.stale, { time: clock(seen) }));
				delay = Math.min(delay * 2, Math.max(delay, TROUBLE));
			} finally {
				busy = false;
				later(Math.max(jittered(), wait));
			}
		}

		const jittered = () => delay * (.75 + Math.random() / 2);
		function later(ms) {
			clearTimeout(timer);
			due = Date.now() + ms;
			if (!over && !busy && !document.hidden) timer = setTimeout(poll, ms);
		}

		document.addEventListener("visibilitychange", () => later(Math.max(due - Date.now(), 0)));
		addEventListener("online", () => later(Math.random() * 1000));
		later(jittered());
	}

	document.querySelectorAll("[data-jobkit-live]").forEach(watch);
})();
