// The page: begins with a snapshot of the show, then follows Trefoil's events.

import { Venue } from "./venue.js";

const STATE_OF = { SeatsReserved: 1, SeatsSold: 2, SeatsReleased: 0, HoldExpired: 0 };
const SAID = { SeatsReserved: "held", SeatsSold: "sold", SeatsReleased: "released", HoldExpired: "expired" };
const LOG_LENGTH = 40;

const $ = (id) => document.getElementById(id);
const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const element = (name, textContent, className = "") => Object.assign(document.createElement(name), { textContent, className });
const me = sessionStorage.buyer ??= `you-${newId().slice(0, 6)}`;

const bookings = new Map();   // The visitor's own, by id.
const news = [];              // Events that the log does not show yet.
let venue, show, first, last, isStale = false;

// ---- Asking ----

/** Asks the service. A request that got no answer is sent again: its booking makes it the same one. */
async function post(path, body, attempts = 3) {
  try {
    const answer = await fetch(`api/${path}`, { method: "POST", body: JSON.stringify(body) });
    const said = await answer.json();
    notify(answer.ok ? "" : said.error);
    return answer.ok ? said : null;
  } catch (error) {
    if (attempts > 1) return post(path, body, attempts - 1);
    notify(`The box office does not answer: ${error.message}`);
    return null;
  }
}

const reserve = (section, wanted) => post("reserve", { section, wanted, buyer: me, booking: newId() });
const settle = (what, booking) => post(what, { booking, buyer: me });

/** A click on a seat: holds it, or gives back what is held. */
async function choose(section, seat) {
  const held = [...bookings.values()].find((booking) =>
    !booking.isSold && booking.section === section && booking.seats.includes(seat));
  if (held) return settle("release", held.booking);
  venue.ask(section, seat, true);
  if (!await reserve(section, [seat])) venue.ask(section, seat, false);
}

function notify(text) {
  const [code, ...rest] = text.split(" ");
  $("notice").replaceChildren();
  if (text) $("notice").append(element("b", code), ` ${rest.join(" ")}`);
}

// ---- Following ----

/** Takes in one event: the seats, the visitor's bookings, the log. */
function apply({ type, data }) {
  const state = STATE_OF[type];
  if (state === undefined) return;
  const own = data.buyer === me;
  if (venue.isUntouched()) first = data.at;
  last = data.at;
  for (const seat of data.seats) venue.set(data.section, seat, state, own && state > 0);
  if (own) remember(type, data);
  news.push({ type, data });
  refresh();
}

function remember(type, data) {
  if (STATE_OF[type] === 0) bookings.delete(data.booking);
  else bookings.set(data.booking, { ...data, isSold: type === "SeatsSold" });
  if (type === "HoldExpired") notify(`EXPIRED the hold on ${place(data)} ran out`);
  showBasket();
}

function follow(position) {
  const feed = new EventSource(`api/feed?show=${show}&position=${position}`);
  feed.addEventListener("event", (message) => {
    const [, , type, , , data] = JSON.parse(message.data);
    apply({ type, data });
  });
  const say = (live, text) => {
    $("connection").dataset.live = live;
    $("connection").textContent = text;
  };
  feed.onopen = () => say("yes", `live · ${show}`);
  feed.onerror = () => say("no", "reconnecting");
}

async function begin() {
  const snapshot = await (await fetch(`api/show?buyer=${me}`)).json();
  show = snapshot.show;
  venue = new Venue($("venue"), snapshot.sections, choose);
  $("best-section").replaceChildren(...snapshot.sections.map(({ id, price }) => new Option(`${id} · ${price} €`, id)));
  for (const { type, data } of snapshot.own) remember(type, data);
  notify("");   // What ran out before is no news.
  for (const { section, seats, isSold } of bookings.values()) {
    for (const seat of seats) venue.set(section, seat, isSold ? 2 : 1, true);
  }
  news.push(...snapshot.latest.filter(({ type }) => type in STATE_OF));
  refresh();
  follow(snapshot.position + 1);
}

// ---- Showing ----

/** However many events come, the numbers and the log are drawn once per frame. */
function refresh() {
  if (isStale) return;
  isStale = true;
  requestAnimationFrame(() => {
    isStale = false;
    showCounts();
    showLog();
  });
}

/** The seats of a booking in words: those that are side by side as first and last. */
function place({ section, seats }) {
  const [[row, first], ...others] = seats.map((seat) => seat.split("-").map(Number));
  const isRun = others.length > 1 && others.every(([r, s], index) => r === row && s === first + index + 1);
  return `${section} · ${isRun ? `${seats[0]}…${seats.at(-1)}` : seats.join(" ")}`;
}

function showCounts() {
  const [available, reserved, sold] = venue.counts;
  const total = available + reserved + sold;
  const seconds = first && ` in ${((last - first) / 1000).toFixed(0)} s`;
  venue.showCounts(sold === total ? ["Sold out", `${total} seats${seconds ?? ""}`] : [available, `of ${total} seats left`]);
  $("venue").classList.toggle("sold-out", sold === total);
  for (const [name, count] of Object.entries({ available, reserved, sold })) {
    document.querySelector(`[data-count=${name}]`).textContent = count;
  }
}

function showLog() {
  const lines = news.splice(0).slice(-LOG_LENGTH).map(({ type, data }) => {
    const own = data.buyer === me;
    const line = document.createElement("li");
    line.dataset.type = type;
    line.toggleAttribute("data-own", own);
    const time = new Date(data.at).toLocaleTimeString("en-GB");
    line.append(element("span", time, "time"), element("span", SAID[type], "what"),
      element("span", place(data), "seats"),
      element("span", own ? "you" : data.buyer, "buyer"));
    line.title = `${type} · booking ${data.booking}`;
    return line;
  });
  $("log").prepend(...lines.reverse());
  while ($("log").children.length > LOG_LENGTH) $("log").lastChild.remove();
}

function showBasket() {
  $("basket").replaceChildren(...[...bookings.values()].reverse().map((booking) => {
    const item = document.createElement("li");
    const text = element("span", place(booking));
    text.append(element("small", `${booking.total_price} €`));
    item.append(text);
    item.toggleAttribute("data-sold", booking.isSold);
    if (booking.isSold) return item;
    item.dataset.expires = booking.expires_at;
    item.append(element("time", ""), button("Buy", "finalize", booking), button("Release", "release", booking));
    return item;
  }));
  countDown();
}

function button(text, what, { booking }) {
  const made = element("button", text, what === "release" ? "quiet" : "");
  made.onclick = () => settle(what, booking);
  return made;
}

/** The seconds that are left of every hold. It is Trefoil that ends them, not this clock. */
function countDown() {
  for (const item of document.querySelectorAll("#basket [data-expires]")) {
    const left = Math.max(0, item.dataset.expires - Date.now());
    item.querySelector("time").textContent = `${Math.ceil(left / 1000)} s`;
    item.style.setProperty("--left", Math.min(1, left / 30_000));
  }
}

// ---- Other buyers ----

const isCrowded = () => $("start").dataset.running === "yes";
const wanted = () => Number($("buyers").value);

function showReport(report) {
  if (!report) return;
  const number = (value) => value.toLocaleString("en");
  $("reserved").textContent = number(report.reserved);
  $("refused").textContent = number(report.refused);
  $("median").textContent = report.median_ms ? `${report.median_ms.toFixed(1)} ms` : "–";
  $("start").dataset.running = report.wanted ? "yes" : "no";
  $("start").textContent = report.wanted ? "Stop" : "Let them in";
}

async function lookAtBuyers() {
  const answer = await fetch("api/buyers").catch(() => null);
  if (answer?.ok) showReport(await answer.json());
}

const setBuyers = async (wanted) => showReport(await post("buyers", { wanted }));

$("buyers").oninput = () => { $("buyers-shown").value = wanted(); };
$("buyers").onchange = () => isCrowded() && setBuyers(wanted());
$("start").onclick = () => setBuyers(isCrowded() ? 0 : wanted());
$("next-show").onclick = async () => { if (await post("next-show", {})) location.reload(); };
$("best").onclick = ({ target }) => target.tagName === "BUTTON" && reserve($("best-section").value, Number(target.textContent));
setInterval(countDown, 200);
setInterval(lookAtBuyers, 1000);

lookAtBuyers();
begin();
