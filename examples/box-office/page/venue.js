// Draws the venue: tiers of seats in arcs around the stage, and moves the focus among them.

const SPAN = 230 * Math.PI / 180;   // How far the tiers go around the stage.
const FIRST_RADIUS = 168;
const ROW = 15.5;
const BETWEEN_TIERS = 24;           // Besides the row itself; the names stand there.
const AISLE = 15;
const STATES = ["available", "reserved", "sold"];

const make = (name, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

const at = (radius, angle) => [radius * Math.sin(angle), radius * Math.cos(angle)];

export class Venue {
  sections = new Map();
  counts = [0, 0, 0];

  /** Draws the sections; `choose(section, seat)` is called for a seat that is clicked. */
  constructor(svg, sections, choose) {
    this.svg = svg;
    this.choose = choose;
    svg.replaceChildren();
    this.#drawStage();
    let radius = FIRST_RADIUS;
    for (const tier of Map.groupBy(sections, (section) => section.tier).values()) {
      const rows = Math.max(...tier.map((section) => section.seats.length));
      tier.forEach((section, index) => this.#drawSection(section, index, tier.length, radius));
      radius += rows * ROW + BETWEEN_TIERS;
    }
    const edge = radius - BETWEEN_TIERS + 14;
    const top = edge * Math.cos(SPAN / 2) - 12;
    svg.setAttribute("viewBox", `${-edge} ${top} ${2 * edge} ${edge - top}`);
    svg.addEventListener("click", (event) => this.#act(event.target));
    svg.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Whether every seat is available. */
  isUntouched() {
    return this.counts[1] + this.counts[2] === 0;
  }

  /** Says what a seat is now, and whether it is the visitor's. */
  set(sectionId, seat, state, own) {
    const section = this.sections.get(sectionId);
    const element = section?.seats.get(seat);
    if (!element) return;
    this.#count(section, Number(element.dataset.state), -1);
    this.#count(section, state, 1);
    element.dataset.state = state;
    element.toggleAttribute("data-own", own);
    element.removeAttribute("data-asked");
    element.setAttribute("aria-label", this.#describe(section, seat, state, own));
  }

  /** Marks a seat that was asked for and not answered yet. */
  ask(sectionId, seat, asked) {
    this.sections.get(sectionId)?.seats.get(seat)?.toggleAttribute("data-asked", asked);
  }

  /** Shows the counters as they are now. */
  showCounts(headline) {
    for (const section of this.sections.values()) {
      const [available, reserved, sold] = section.counts;
      section.label.lastChild.textContent = available || (reserved ? "held" : "sold out");
      section.label.classList.toggle("full", available === 0);
      section.group.setAttribute("aria-label",
        `Section ${section.id}, ${section.price} euros: ${available} available, ${reserved} held, ${sold} sold`);
    }
    const [available, reserved, sold] = this.counts;
    const share = (count) => `${100 * count / (available + reserved + sold)} 100`;
    [reserved + sold, sold].forEach((count, index) => this.rings[index].setAttribute("stroke-dasharray", share(count)));
    [this.number.textContent, this.caption.textContent] = headline;
  }

  #count(section, state, by) {
    section.counts[state] += by;
    this.counts[state] += by;
  }

  #drawStage() {
    const stage = make("g", { class: "stage" });
    const circle = (name) => make("circle", { r: FIRST_RADIUS - 34, class: name, pathLength: 100 });
    this.rings = [circle("reserved"), circle("sold")];
    stage.append(circle("ground"), ...this.rings);
    this.number = make("text", { y: 20, class: "number" });
    this.caption = make("text", { y: 50, class: "caption" });
    stage.append(make("text", { y: -58, class: "name" }, "STAGE"), this.number, this.caption);
    this.svg.append(stage);
  }

  #drawSection({ id, price, seats: rows }, index, n_sections, radius) {
    const group = make("g", { class: "section", role: "group" });
    const section = { id, price, group, seats: new Map(), counts: [0, 0, 0] };
    this.sections.set(id, section);
    const width = SPAN / n_sections - AISLE / radius;
    const middle = -SPAN / 2 + (index + 0.5) * SPAN / n_sections;
    rows.forEach((row, r) => row.forEach((state, s) => {
      const angle = middle + width * ((s + 0.5) / row.length - 0.5);
      const [cx, cy] = at(radius + r * ROW, angle);
      group.append(this.#drawSeat(section, `${r + 1}-${s + 1}`, state, cx, cy));
    }));
    const [x, y] = at(radius + (rows.length - 0.5) * ROW + 11, middle);
    const turn = `rotate(${-middle * 180 / Math.PI} ${x} ${y})`;
    section.label = make("text", { x, y: y + 3, class: "label", transform: turn });
    section.label.append(make("tspan", { class: "id" }, id), make("tspan", { dx: 5 }));
    group.append(section.label);
    this.svg.append(group);
  }

  #drawSeat(section, seat, state, cx, cy) {
    const element = make("circle", {
      cx: cx.toFixed(1), cy: cy.toFixed(1), r: 5.3, role: "button",
      tabindex: section.seats.size ? -1 : 0, "data-state": state, "data-seat": `${section.id}:${seat}`,
      "aria-label": this.#describe(section, seat, state, false),
    });
    section.seats.set(seat, element);
    this.#count(section, state, 1);
    return element;
  }

  #describe(section, seat, state, own) {
    const [row, number] = seat.split("-");
    const what = own ? (state === 2 ? "yours" : "held for you") : STATES[state];
    return `Section ${section.id}, row ${row}, seat ${number}, ${section.price} euros, ${what}`;
  }

  #act(element) {
    if (element.dataset.seat) this.choose(...element.dataset.seat.split(":"), element);
  }

  /** The seats of a section are one stop of the tab key; arrows move within it. */
  #key(event) {
    const [sectionId, seat] = event.target.dataset.seat?.split(":") ?? [];
    if (!sectionId) return;
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Enter" || event.key === " ") this.#act(event.target);
    else if (steps[event.key]) this.#move(event.target, sectionId, seat, steps[event.key]);
    else return;
    event.preventDefault();
  }

  #move(from, sectionId, seat, [rows, numbers]) {
    const [row, number] = seat.split("-").map(Number);
    const to = this.sections.get(sectionId).seats.get(`${row + rows}-${number + numbers}`);
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }
}
