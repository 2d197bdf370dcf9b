// Draws the charts of a netduel report with Observable Plot from the JSON in #chart-data. Computes no figure of its own.
// It is the first script of the page, so that it sees the errors of the others; it draws when all of them are loaded.
"use strict";
(() => {
  const root = document.documentElement;
  root.dataset.errors = "";
  const note = (text) => { root.dataset.errors += `${text}\n`; };
  addEventListener("error", (event) => note(event.message));
  addEventListener("unhandledrejection", (event) => note(event.reason));
  addEventListener("securitypolicyviolation", (event) => note(`blocked: ${event.violatedDirective} ${event.blockedURI}`));

  // Arms differ by symbol and dash first, by colour second. The baseline is hollow and dashed.
  const SYMBOLS = ["circle", "circle", "square2", "triangle2", "diamond2", "star"];
  const DASHES = ["5 3", null, "1 3", "9 3", "9 3 2 3", "2 2"];
  const colour = (arm) => `var(--arm-${arm % 6})`;
  const fill = (arm) => (arm === 0 ? "var(--paper)" : colour(arm));
  const STYLE = { background: "none", color: "var(--ink)", fontFamily: "inherit", fontSize: "12px", overflow: "visible" };

  // Places labels at the given heights with room between them, in pixels of the plot, and none below `bottom`.
  function spread(positions, gap, bottom) {
    const order = positions.map((y, index) => [y, index]).sort((a, b) => a[0] - b[0]);
    for (let i = 1; i < order.length; i++) order[i][0] = Math.max(order[i][0], order[i - 1][0] + gap);
    let limit = bottom;
    for (let i = order.length - 1; i >= 0; i--) {
      order[i][0] = Math.min(order[i][0], limit);
      limit = order[i][0] - gap;
    }
    const result = [];
    for (const [y, index] of order) result[index] = y;
    return result;
  }

  // Width of a character, pixels, where it need not be exact.
  const CHARACTER = 6.8;
  // Width of a name in the bold type of labels, pixels.
  const pen = document.createElement("canvas").getContext("2d");
  const widthOf = (name) => {
    pen.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(name).width;
  };
  // A name that fits into so many pixels; the tips have the whole of it.
  const fitted = (name, room) => {
    if (widthOf(name) <= room) return name;
    let most = name.length - 1;
    while (most > 2 && widthOf(`${name.slice(0, most)}…`) > room) most--;
    return `${name.slice(0, most)}…`;
  };

  // Names at the right end of their lines: no legend to look up, no colour to tell apart. `arm` gives the colour. All stand right of
  // the frame: beside a dot or the end of a shorter line, a name would cover what is drawn from there to the frame.
  function endLabels(ends, names, room) {
    return (index, scales, values, dimensions) => {
      const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
      const right = dimensions.width - dimensions.marginRight;
      const ys = spread(ends.map((end) => scales.y(end.y)), 14, dimensions.height - dimensions.marginBottom - 2);
      ends.forEach((end, i) => {
        const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
        text.setAttribute("x", right + 9);
        text.setAttribute("y", ys[i] + 4);
        text.setAttribute("fill", `var(--arm-${end.arm % 6}-text)`);
        text.setAttribute("font-weight", "600");
        text.setAttribute("text-anchor", "start");
        text.setAttribute("paint-order", "stroke");
        text.setAttribute("stroke", "var(--paper)");
        text.setAttribute("stroke-width", "3");
        text.textContent = fitted(names[end.line], room - 9);
        group.appendChild(text);
      });
      return group;
    };
  }

  // Ticks of a logarithmic axis: the finest steps of a decade that are not too many.
  function logTicks(low, high, most) {
    const decades = d3.range(Math.floor(Math.log10(low)), Math.ceil(Math.log10(high)) + 1);
    const ticks = (steps) => decades.flatMap((decade) => steps.map((step) => +(step * 10 ** decade).toPrecision(2)))
      .filter((tick) => tick >= low && tick <= high);
    const choices = [[1, 1.5, 2, 2.5, 3, 4, 5, 6, 8], [1, 2, 3, 5, 7], [1, 2, 5], [1]].map(ticks);
    const choice = choices.find((one) => one.length <= most) || choices[3];
    // An axis within one step of a decade has ticks as a linear one.
    return choice.length < 2 ? d3.ticks(low, high, Math.min(most, 5)) : choice;
  }

  // Ticks whose labels do not touch on a logarithmic axis of so many pixels, from left to right.
  function apart(ticks, low, high, pixels, name) {
    let right = -Infinity;
    return ticks.filter((tick) => {
      const middle = Math.log(tick / low) / Math.log(high / low) * pixels;
      const half = name(tick).length * CHARACTER / 2;
      if (middle - half < right + 8) return false;
      right = middle + half;
      return true;
    });
  }

  // Arms that differ by more than this need a logarithmic axis: on a linear one the lower ones lie on zero.
  const FAR = 10;
  const isFar = (medians) => {
    const known = medians.filter((median) => median !== null && median !== undefined);
    return known.length > 1 && Math.min(...known) > 0 && Math.max(...known) > FAR * Math.min(...known);
  };
  // So does a value that is far above all medians.
  const isSpread = (medians, values) => {
    const most = Math.max(...medians.filter((median) => median !== null && median !== undefined));
    return isFar(medians) || most > 0 && Math.max(...values) > FAR * most;
  };
  // The axis of a logarithmic scale, made by hand: Plot would leave out labels beyond the first steps of a decade.
  const named = (v) => (v >= 1e4 ? d3.format(",")(v) : `${v}`);
  const logX = (ticks, label, text = named) => Plot.axisX(ticks, { label, ...BELOW, tickSize: 0, text });
  const logY = (ticks, label) => Plot.axisY(ticks, { label, labelArrow: "none", tickSize: 0, text: named });
  // A logarithmic scale of y for these values, its ticks, and its title.
  const logScale = (values, unit) => {
    const low = Math.min(...values) / 1.25, high = Math.max(...values) * 1.25;
    return { ticks: logTicks(low, high, 8), label: `${unit}, logarithmic`, scale: { type: "log", domain: [low, high] } };
  };

  const BELOW = { labelAnchor: "center", labelOffset: 36, labelArrow: "none" };
  const widest = (names) => Math.max(...names.map(widthOf));
  const labelRoom = (names, width) => Math.min(16 + widest(names), 150, width * 0.36);
  // An axis from zero shows proportions; a narrow one shows what is left when there are none.
  const fromZero = (values) => Math.max(...values) > 1.5 * Math.min(...values) || Math.max(...values) === Math.min(...values);
  // Values that are all 0 have no axis of their own.
  const domain = (values) => (values.every((value) => value === 0) ? { domain: [0, 1] } : {});
  const grid = { stroke: "var(--grid)", strokeOpacity: 1 };

  function blocks(data, metric, width) {
    const points = metric.arms.flatMap((arm, a) => arm.map(([block, value, bound]) => ({ arm: a, block, value, bound })));
    if (!points.length) return null;
    const count = Math.max(...points.map((point) => point.block));
    const byBlock = d3.rollups(points, (group) => ({ low: d3.min(group, (p) => p.value), high: d3.max(group, (p) => p.value) }), (p) => p.block);
    // The line of an arm is its median, which goes on to the frame. Its last value can lie at the median of another arm.
    const ends = metric.arms.map((arm, a) => ({ arm: a, line: a, y: metric.medians[a] ?? arm[arm.length - 1]?.[1] }))
      .filter((end) => end.y !== undefined);
    const room = labelRoom(data.arms, width), values = points.map((p) => p.value);
    // The arms of a block stand beside each other, so that equal values do not hide each other.
    const apartBy = Math.min(6, (width - 52 - room) / count * 0.3), last = metric.arms.length - 1;
    const aside = (arm) => (last > 0 ? (arm / last - 0.5) * apartBy : 0);
    const arrows = (bound, text, dy) => metric.arms.map((_, a) => Plot.text(points.filter((p) => p.arm === a && p.bound === bound), {
      x: "block", y: "value", text: () => text, dx: aside(a), dy, fill: colour(a), fontSize: 11 }));
    const ofMedians = metric.median_bounds || [];
    const log = isSpread(metric.medians, values) && values.every((value) => value > 0) ? logScale(values, metric.unit) : null;
    const y = log ? log.scale : { label: metric.unit, zero: fromZero(values), nice: true, ticks: 5, ...domain(values) };
    return Plot.plot({
      width, height: 240, marginLeft: 52, marginRight: room, marginTop: 26, marginBottom: 42, style: STYLE,
      x: { domain: d3.range(1, count + 1), type: "point", padding: 0.5, label: "block", ...BELOW, tickSize: 0,
        ticks: count > 16 ? d3.range(1, count + 1, Math.ceil(count / 12)) : undefined },
      y: { ...y, labelArrow: "none", tickSize: 0 },
      marks: [
        log ? Plot.gridY(log.ticks, grid) : Plot.gridY({ ...grid, ticks: 5 }), log ? logY(log.ticks, log.label) : null,
        ...metric.medians.map((median, a) => Plot.ruleY(median === null ? [] : [median], {
          stroke: colour(a), strokeDasharray: DASHES[a % 6] })),
        ...metric.medians.map((median, a) => Plot.text(ofMedians[a] ? [median] : [], { y: (value) => value, frameAnchor: "left",
          text: () => (ofMedians[a] === "<" ? "▼" : "▲"), dx: 2, dy: ofMedians[a] === "<" ? 7 : -7, fill: colour(a), fontSize: 11 })),
        metric.apart ? null : Plot.ruleX(byBlock, { x: (d) => d[0], y1: (d) => d[1].low, y2: (d) => d[1].high, stroke: "var(--frame)" }),
        ...metric.arms.map((_, a) => Plot.dot(points.filter((p) => p.arm === a), {
          x: "block", y: "value", dx: aside(a), symbol: SYMBOLS[a % 6], r: 4.5, stroke: colour(a), strokeWidth: 1.75, fill: fill(a),
          title: (p) => `${data.arms[a]}, block ${p.block}\n${p.bound ? `${p.bound} ` : ""}${p.value} ${metric.unit}`, tip: true,
        })),
        ...arrows(">=", "▲", -11), ...arrows("<", "▼", 11),
        endLabels(ends, data.arms, room),
      ],
    });
  }

  // A line for each arm, as everywhere.
  const armLines = (data) => data.arms.map((name, arm) => ({ name, arm, dash: DASHES[arm % 6] }));

  // Time on the x axis, a line with its band for each series; `log` is for values that lie decades apart.
  function course(lines, { arms: all, unit, duration_s, cut }, width, height, log) {
    const points = all.flatMap((own, line) => own.map(([time, median, low, high]) => ({ line, time, median, low, high })));
    if (!points.length) return null;
    // A pause in one trial must not stretch a logarithmic axis over many decades: the band ends at its foot.
    const middles = all.map((own) => d3.median(own, (point) => point[1]));
    const foot = d3.min(middles, (middle) => (middle > 0 ? middle : undefined)) / 30;
    const values = points.flatMap((p) => [p.low, p.median, p.high]).filter((value) => value >= foot);
    const axis = values.length && (log || isSpread(middles, values)) ? logScale(values, unit) : null;
    const floor = axis ? axis.scale.domain[0] : -Infinity;
    const y = axis ? axis.scale : { zero: true, nice: true, label: unit, ticks: 5 };
    const spanned = (name, x, textAnchor) => Plot.text(clear.filter((span) => span.name === name),
      { x, text: "name", frameAnchor: "top", dy: axis ? 9 : -14, fill: "var(--quiet)", textAnchor, fontSize: 11 });
    const ends = all.map((own, line) => ({ line, last: own[own.length - 1] })).filter((end) => end.last)
      .map((end) => ({ line: end.line, arm: lines[end.line].arm, y: Math.max(end.last[1], floor) }));
    const names = lines.map((line) => line.name), room = labelRoom(names, width);
    // On a narrow page the names of two spans would touch: the more important ones stay.
    const pixels = (width - 52 - room) / duration_s, taken = [];
    const clear = ["load begins", "cool-down", "warm-up"].flatMap((name) => cut.filter((span) => span.name === name)).filter((span) => {
      const length = span.name.length * CHARACTER + 8;
      const left = span.name === "cool-down" ? span.to * pixels - length : span.from * pixels;
      if (taken.some((other) => left < other + 84 && other < left + length)) return false;
      taken.push(left);
      return true;
    });
    return Plot.plot({
      width, height, marginLeft: 52, marginRight: room, marginTop: 26, marginBottom: 42, style: STYLE,
      x: { domain: [0, duration_s], label: "seconds after the start", ...BELOW, ticks: 6, tickSize: 0 },
      y: { ...y, labelArrow: "none", tickSize: 0 },
      marks: [
        Plot.rect(cut, { x1: "from", x2: "to", fill: "var(--shade)", stroke: "var(--frame)", strokeDasharray: "2 3", title: "name" }),
        axis ? Plot.gridY(axis.ticks, grid) : Plot.gridY({ ...grid, ticks: 5 }), axis ? logY(axis.ticks, axis.label) : null,
        ...lines.flatMap(({ arm, dash }, line) => {
          const own = points.filter((p) => p.line === line);
          return [
            Plot.areaY(own, { x: "time", y1: (p) => Math.max(p.low, floor), y2: "high", fill: colour(arm), fillOpacity: 0.16,
              stroke: colour(arm), strokeWidth: 0.75 }),
            Plot.lineY(own, { x: "time", y: (p) => Math.max(p.median, floor), stroke: colour(arm), strokeWidth: 1.75, strokeDasharray: dash }),
          ];
        }),
        spanned("warm-up", "from", "start"), spanned("load begins", "from", "start"), spanned("cool-down", "to", "end"),
        Plot.tip(points, Plot.pointer({ x: "time", y: "median", title: (p) =>
          `${lines[p.line].name}, ${p.time} s\nmedian ${p.median} ${unit}\nfrom ${p.low} to ${p.high}` })),
        endLabels(ends, names, room),
      ],
    });
  }

  const series = (data, plot, width) => course(armLines(data), plot, width, 240, false);

  // Throughput and round trips on one axis of time, under each other; only one of them where no trial has the other.
  function load(data, plot, width) {
    const panels = [course(armLines(data), plot.rates, width, 210, false), course(armLines(data), plot.round_trips, width, 230, true)]
      .filter((panel) => panel);
    if (!panels.length) return null;
    const both = document.createElement("div");
    both.append(...panels);
    return both;
  }

  function tail(data, { unit, tail: arms }, width) {
    const points = arms.flatMap((arm, a) => arm.map(([beyond, value, percentile]) => ({ arm: a, beyond, value, percentile })));
    if (!points.length) return null;
    const most = Math.max(...points.map((p) => p.beyond));
    const room = labelRoom(data.arms, width);
    const all = [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((tick) => tick <= most);
    const low = Math.min(...points.map((p) => p.value)) / 1.15, high = Math.max(...points.map((p) => p.value)) * 1.15;
    const yTicks = logTicks(low, high, 8);
    const name = (beyond) => (beyond === 2 ? "p50" : `p${+(100 - 100 / beyond).toPrecision(9)}`);
    const ticks = apart(all, 1, most, width - 52 - room, name);
    const ends = arms.map((arm, a) => ({ arm: a, last: arm[arm.length - 1] })).filter((end) => end.last)
      .map((end) => ({ arm: end.arm, line: end.arm, y: end.last[1] }));
    return Plot.plot({
      width, height: 260, marginLeft: 52, marginRight: room, marginTop: 26, marginBottom: 42, style: STYLE,
      x: { type: "log", domain: [1, most] },
      y: { type: "log", domain: [low, high] },
      marks: [
        Plot.gridY(yTicks, grid), Plot.gridX(all, grid), logX(ticks, "percentile of round trips", name), logY(yTicks, `${unit}, logarithmic`),
        ...arms.map((_, a) => Plot.line(points.filter((p) => p.arm === a), { x: "beyond", y: "value", stroke: colour(a), strokeWidth: 1.75,
          strokeDasharray: DASHES[a % 6] })),
        ...arms.map((_, a) => Plot.dot(points.filter((p) => p.arm === a && [50, 90, 99, 99.9, 99.99, 100].includes(p.percentile)), {
          x: "beyond", y: "value", symbol: SYMBOLS[a % 6], r: 3.5, stroke: colour(a), strokeWidth: 1.5, fill: fill(a) })),
        Plot.tip(points, Plot.pointer({ x: "beyond", y: "value", title: (p) =>
          `${data.arms[p.arm]}\n${p.percentile === 100 ? "max" : `p${p.percentile}`}: ${p.value} ${unit}` })),
        endLabels(ends, data.arms, room),
      ],
    });
  }

  // Shares over bins, one arm above the other on the same axes, so that distributions that overlap stay apart.
  function humps(data, { unit, density: arms }, width, what, x) {
    const bins = arms.flatMap((arm, a) => (arm || []).map(([low, high, share]) => ({ arm: data.arms[a], a, low, high, share })));
    if (!bins.length) return null;
    const shown = data.arms.filter((name) => bins.some((bin) => bin.arm === name));
    const edges = (a) => bins.filter((bin) => bin.a === a).flatMap((bin) => [{ ...bin, x: bin.low }, { ...bin, x: bin.high }]);
    return Plot.plot({
      width, height: 76 + shown.length * 92, marginLeft: 52, marginRight: 24, marginTop: 26, marginBottom: 42, style: STYLE,
      x: x.log ? { type: "log", inset: 6 } : { label: unit, ...BELOW, ticks: x.ticks, tickSize: 0, inset: 6 },
      y: { label: what, labelArrow: "none", zero: true, ticks: 3, tickSize: 0 },
      fy: { domain: shown, axis: null, padding: 0.24 },
      marks: [
        ...(x.log ? [Plot.gridX(x.ticks, grid), logX(x.ticks, `${unit}, logarithmic`)] : [Plot.gridX({ ...grid, ticks: x.ticks })]),
        Plot.gridY({ ...grid, ticks: 3 }), Plot.ruleY([0], { stroke: "var(--frame)" }),
        ...arms.map((_, a) => Plot.areaY(edges(a), { x: "x", y1: () => 0, y2: "share", fy: "arm", fill: colour(a), fillOpacity: 0.22,
          stroke: colour(a), strokeWidth: 1.5 })),
        Plot.text(shown, { fy: (name) => name, text: (name) => fitted(name, width - 130), frameAnchor: "top-right", dy: -13, fontWeight: 600,
          fill: (name) => `var(--arm-${data.arms.indexOf(name) % 6}-text)` }),
        Plot.tip(bins, Plot.pointer({ x: (bin) => (bin.low + bin.high) / 2, y: "share", fy: "arm",
          title: (bin) => `${bin.arm}\n${bin.low} to ${bin.high} ${unit}\n${bin.share} ${what}` })),
      ],
    });
  }

  // Share of the intervals at or below each rate, all lines on the same axes. The names stand in the order of the lines: the slowest, which
  // is on the left and so above the others, first.
  function cumulative(data, { unit, log, cumulative: arms }, width) {
    const points = arms.flatMap((arm, a) => arm.map(([value, share]) => ({ arm: a, value, share })));
    if (!points.length) return null;
    const low = d3.min(points, (p) => p.value), high = d3.max(points, (p) => p.value);
    const room = labelRoom(data.arms, width), pixels = width - 52 - room;
    // A single value has an axis around it.
    const beside = (high - low) * 0.02 || Math.abs(high) * 0.05 || 1;
    const domain = log ? [low / 1.05, high * 1.05] : [low - beside, high + beside];
    const count = Math.max(2, Math.min(6, Math.floor(pixels / 48)));
    const ticks = log ? apart(logTicks(...domain, pixels / 34), ...domain, pixels, named) : null;
    const ends = arms.map((arm, a) => ({ arm: a, line: a, middle: d3.median(arm, ([value]) => value), last: arm[arm.length - 1] }))
      .filter((end) => end.last).map((end) => ({ ...end, y: end.last[1] })).sort((a, b) => a.middle - b.middle);
    return Plot.plot({
      width, height: 240, marginLeft: 52, marginRight: room, marginTop: 26, marginBottom: 42, style: STYLE,
      x: log ? { type: "log", domain } : { domain, label: unit, ...BELOW, ticks: count, tickSize: 0 },
      y: { domain: [0, 100], label: "% of intervals", labelArrow: "none", ticks: 5, tickSize: 0 },
      marks: [
        ...(log ? [Plot.gridX(ticks, grid), logX(ticks, `${unit}, logarithmic`)] : [Plot.gridX({ ...grid, ticks: count })]),
        Plot.gridY({ ...grid, ticks: 5 }),
        ...arms.map((_, a) => Plot.line(points.filter((p) => p.arm === a), { x: "value", y: "share", stroke: colour(a), strokeWidth: 1.75,
          strokeDasharray: DASHES[a % 6] })),
        Plot.tip(points, Plot.pointer({ x: "value", y: "share", title: (p) =>
          `${data.arms[p.arm]}\n${p.share} % of the intervals: ${p.value} ${unit} or less` })),
        endLabels(ends, data.arms, room),
      ],
    });
  }

  // Ticks of a logarithmic axis over bins, whose labels do not touch.
  const binTicks = (bins, width) => {
    const low = d3.min(bins, (bin) => bin[0]), high = d3.max(bins, (bin) => bin[1]);
    return bins.length ? apart(logTicks(low, high, width / 34), low, high, width - 88, named) : [];
  };
  const density = (data, plot, width) =>
    humps(data, plot, width, "% of round trips", { log: true, ticks: binTicks(plot.density.flatMap((arm) => arm || []), width) });
  const rates = (data, plot, width) =>
    humps(data, plot, width, "% of intervals", { log: plot.log, ticks: plot.log ? binTicks(plot.density.flat(), width) : 6 });

  function cores(data, machine, width) {
    const rows = [];
    const sums = new Map();
    for (const [arm, core, kind, share] of machine.rows) {
      const key = `${arm}/${core}`;
      const from = sums.get(key) || 0;
      sums.set(key, from + share);
      rows.push({ arm: data.arms[arm], core, kind, share, from, to: from + share });
    }
    if (!rows.length) return null;
    // Arms stand side by side where there is room, else one above the other.
    const wide = width >= 700 && data.arms.length < 4;
    const facet = wide ? "fx" : "fy";
    const room = wide ? (width - 90) / data.arms.length - 20 : width - 80;
    // The name of the class where there is room, else the number alone.
    const label = (row) => {
      const number = `${Math.round(row.share)}`;
      return [`${machine.classes[row.kind]} ${number}`, number].find((text) => row.share * room > 100 * text.length * 6.4);
    };
    const labelled = rows.filter((row) => row.share >= 1 && label(row));
    const lanes = machine.cores.length * 22;
    return Plot.plot({
      width, height: 72 + (wide ? lanes : data.arms.length * (lanes + 34)), marginLeft: 52, marginRight: 20, marginTop: 26, marginBottom: 42,
      style: STYLE,
      // Panels side by side have few labels, so that the last of one does not touch the first of the next.
      x: { domain: [0, 100], label: "% of the time", ...BELOW, ticks: wide ? [0, 50, 100] : 5, tickSize: 0 },
      y: { domain: machine.cores, label: null, tickFormat: (core) => `core ${core}`, tickSize: 0, padding: 0.18 },
      [facet]: { domain: data.arms, axis: null, padding: wide ? 0.1 : 0.2 },
      marks: [
        Plot.gridX({ ...grid, ticks: 5 }),
        Plot.barX(rows, { x1: "from", x2: "to", y: "core", [facet]: "arm", fill: (row) => `var(--class-${row.kind})`, stroke: "var(--edge)",
          title: (row) => `${row.arm}, core ${row.core}\n${machine.classes[row.kind]} ${row.share} %`, tip: true }),
        Plot.text(labelled, { x: (row) => (row.from + row.to) / 2, y: "core", [facet]: "arm", text: label,
          fill: (row) => `var(--class-${row.kind}-text)`, fontSize: 11 }),
        Plot.text(data.arms, { [facet]: (name) => name, text: (name) => fitted(name, room), frameAnchor: "top-left", dy: -15, fontWeight: 600,
          fill: (name) => `var(--arm-${data.arms.indexOf(name) % 6}-text)` }),
      ],
    });
  }

  // A row for each part and arm: a dot at the median, a line to the 99th percentile.
  function parts(data, plot, width) {
    const { unit } = plot;
    const rows = plot.rows.map((row) => ({ ...row, name: data.arms[row.arm] }));
    if (!rows.length) return null;
    const low = Math.max(Math.min(...rows.map((row) => row.p50)) / 1.25, 1e-3), high = Math.max(...rows.map((row) => row.p99)) * 1.25;
    const ticks = logTicks(low, high, width / 60);
    const titles = [...new Set(rows.map((row) => row.part))];
    const lanes = data.arms.filter((name) => rows.some((row) => row.name === name));
    const room = Math.min(20 + widest(lanes), 150, width * 0.36);
    return Plot.plot({
      width, height: 70 + titles.length * (lanes.length * 20 + 26), marginLeft: room, marginRight: 24, marginTop: 30, marginBottom: 42, style: STYLE,
      x: { type: "log", domain: [low, high] },
      y: { domain: lanes, label: null, axis: null, padding: 0.3 },
      fy: { domain: titles, axis: null, padding: 0.3 },
      marks: [
        Plot.gridX(ticks, grid), logX(ticks, `${unit}, logarithmic`),
        Plot.ruleY(rows, { y: "name", fy: "part", x1: "p50", x2: "p99", stroke: (row) => colour(row.arm), strokeWidth: 2 }),
        Plot.tickX(rows, { y: "name", fy: "part", x: "p99", stroke: (row) => colour(row.arm), strokeWidth: 2, insetTop: 2, insetBottom: 2 }),
        ...lanes.map((name) => {
          const arm = data.arms.indexOf(name);
          return Plot.dot(rows.filter((row) => row.arm === arm), { y: "name", fy: "part", x: "p50", symbol: SYMBOLS[arm % 6], r: 4.5,
            stroke: colour(arm), strokeWidth: 1.75, fill: fill(arm),
            title: (row) => `${row.name}, ${row.part}\np50 ${row.p50} ${unit}\n${row.end} ${row.p99} ${unit}\nn ${row.count}`, tip: true });
        }),
        Plot.text(rows, { y: "name", fy: "part", text: (row) => fitted(row.name, room - 14), frameAnchor: "left", dx: -room + 2, textAnchor: "start", fontWeight: 600,
          fill: (row) => `var(--arm-${row.arm % 6}-text)` }),
        Plot.text(titles, { fy: (title) => title, text: (title) => title, frameAnchor: "top-left", dx: -room + 2, dy: -15, fill: "var(--quiet)" }),
      ],
    });
  }

  // Both ends of each arm in the arm's colour, one arm under the other; sent is dashed.
  function ends(data, { ways, unit, duration_s, cut }, width) {
    const box = document.createElement("div");
    for (const { arm, direction, ends: series } of ways) {
      const lines = [{ name: "sent", arm, dash: "5 3" }, { name: "received", arm, dash: null }];
      const panel = course(lines, { arms: series, unit, duration_s, cut }, width, 200, false);
      if (!panel) continue;
      const title = document.createElement("p");
      title.className = "panel";
      title.style.color = `var(--arm-${arm % 6}-text)`;
      title.textContent = direction ? `${data.arms[arm]}, ${direction}` : data.arms[arm];
      box.append(title, panel);
    }
    return box.firstChild ? box : null;
  }

  // A bar for each point of a sweep, a lane for each arm, on an axis from zero; dots on a logarithmic axis for rates that lie far apart.
  function sweep(data, { points, unit, log }, width) {
    const rows = points.filter((point) => point.received !== null).map((point) => ({ ...point, name: data.arms[point.arm] }));
    if (!rows.length) return null;
    const labels = [...new Set(points.map((point) => point.label))];
    // An arm of its own for each label needs no name beside it.
    const many = points.some((point) => points.some((other) => other !== point && other.label === point.label));
    const lanes = many ? data.arms.filter((name) => rows.some((row) => row.name === name)) : [""];
    const lane = (row) => (many ? row.name : "");
    const room = Math.min(20 + widest([...lanes, ...labels]), 150, width * 0.36);
    const most = Math.max(...rows.map((row) => Math.max(row.received, row.sent || 0, row.high || 0, row.published || 0)));
    // Once for each label: it is of one size of frames.
    const published = labels.map((label) => points.find((point) => point.label === label)).filter((point) => point.published !== null);
    // A pause in one trial must not stretch a logarithmic axis over many decades: its line ends at the foot.
    const foot = d3.min(rows, (row) => row.received) / 30;
    const least = d3.min(rows.flatMap((row) => [row.received, row.sent, row.low, row.published]).filter((value) => value >= foot));
    const axis = log ? [least / 1.25, most * 1.25] : [0, most * 1.04];
    const ticks = log ? apart(logTicks(...axis, Math.max(6, width / 60)), ...axis, width - room - 56, named) : Math.max(3, Math.round(width / 110));
    const placed = (key) => (row) => (row[key] === null ? null : Math.max(row[key], axis[0]));
    const sign = (row) => (row.bound ? `${row.bound} ` : "");
    const title = (row) => `${row.name}, ${row.label}\nreceived ${sign(row)}${row.received} ${unit} (${row.low} to ${row.high})\nsent ${row.sent} ${unit}`;
    const own = { x: "received", y: lane, fy: "label", title, tip: true };
    return Plot.plot({
      width, height: 76 + labels.length * (lanes.length * 22 + 22), marginLeft: room, marginRight: 56, marginTop: 34, marginBottom: 42, style: STYLE,
      x: log ? { type: "log", domain: axis } : { domain: axis, label: unit, ...BELOW, ticks, tickSize: 0 },
      y: { domain: lanes, label: null, axis: null, padding: 0.2 },
      fy: { domain: labels, axis: null, padding: 0.28 },
      marks: [
        ...(log ? [Plot.gridX(ticks, grid), logX(ticks, `${unit}, logarithmic`)] : [Plot.gridX({ ...grid, ticks })]),
        log ? null : Plot.barX(rows, { ...own, fill: (row) => colour(row.arm), fillOpacity: 0.55, stroke: (row) => colour(row.arm) }),
        Plot.ruleY(rows, { y: lane, fy: "label", x1: placed("low"), x2: placed("high"), stroke: "var(--ink)", strokeWidth: 1.5 }),
        Plot.tickX(rows.filter((row) => row.sent !== null), { x: placed("sent"), y: lane, fy: "label", stroke: "var(--ink)", strokeWidth: 1.5 }),
        log ? Plot.dot(rows, { ...own, r: 4.5, stroke: (row) => colour(row.arm), strokeWidth: 1.75, fill: (row) => fill(row.arm) }) : null,
        Plot.text(rows, { x: (row) => Math.max(row.received, row.high || 0, row.sent || 0), y: lane, fy: "label", dx: log ? 10 : 6, textAnchor: "start",
          text: (row) => `${sign(row)}${+row.received.toPrecision(3)}`, fill: (row) => `var(--arm-${row.arm % 6}-text)`, fontWeight: 600 }),
        many ? Plot.text(rows, { y: lane, fy: "label", text: (row) => fitted(row.name, room - 14), frameAnchor: "left", dx: -room + 2, textAnchor: "start", fontWeight: 600,
          fill: (row) => `var(--arm-${row.arm % 6}-text)` }) : null,
        Plot.text(labels, { fy: (label) => label, text: (label) => label, frameAnchor: many ? "top-left" : "left", dx: -room + 2, dy: many ? -13 : 0,
          fill: "var(--quiet)", textAnchor: "start" }),
        Plot.ruleX(published, { x: placed("published"), fy: "label", stroke: "var(--ink)", strokeDasharray: "4 3" }),
        Plot.text(published.slice(0, 1), { x: placed("published"), fy: "label", text: () => "published", frameAnchor: "top", dy: -14, textAnchor: "end", fill: "var(--ink)" }),
      ],
    });
  }

  // The share of packets lost by rate, a line for each arm. No loss, which has no place on a logarithmic axis, stands at its foot.
  function loss(data, { arms, unit }, width) {
    const points = arms.flatMap((arm, a) => arm.map(([rate, lost]) => ({ arm: a, rate, lost })));
    if (!points.length) return null;
    const room = labelRoom(data.arms, width), pixels = width - 52 - room;
    const least = d3.min(points.filter((p) => p.lost > 0), (p) => p.lost) || 0.1, foot = least / 5;
    const most = Math.max(d3.max(points, (p) => p.lost), least * 10);
    const rates = [d3.min(points, (p) => p.rate) / 1.05, d3.max(points, (p) => p.rate) * 1.05];
    const ticks = apart(logTicks(...rates, pixels / 48), ...rates, pixels, named);
    const shares = [foot, ...logTicks(least, most, 6)];
    const placed = (lost) => Math.max(lost, foot), own = (a) => points.filter((p) => p.arm === a);
    const place = { x: "rate", y: (p) => placed(p.lost) };
    const ends = arms.map((arm, a) => ({ arm: a, line: a, last: arm[arm.length - 1] })).filter((end) => end.last)
      .map((end) => ({ ...end, y: placed(end.last[1]) }));
    return Plot.plot({
      width, height: 240, marginLeft: 52, marginRight: room, marginTop: 26, marginBottom: 42, style: STYLE,
      x: { type: "log", domain: rates },
      y: { type: "log", domain: [foot, most * 1.25] },
      marks: [
        Plot.gridY(shares, grid), Plot.gridX(ticks, grid), logX(ticks, `${unit} sent, logarithmic`),
        Plot.axisY(shares, { label: "% lost, logarithmic", labelArrow: "none", tickSize: 0, text: (share) => (share === foot ? "0" : named(share)) }),
        ...arms.map((_, a) => Plot.line(own(a), { ...place, stroke: colour(a), strokeWidth: 1.25, strokeDasharray: DASHES[a % 6] })),
        ...arms.map((_, a) => Plot.dot(own(a), { ...place, symbol: SYMBOLS[a % 6], r: 4, stroke: colour(a), strokeWidth: 1.75, fill: fill(a) })),
        Plot.tip(points, Plot.pointer({ ...place, title: (p) => `${data.arms[p.arm]}\n${p.rate} ${unit} sent\n${p.lost} % lost` })),
        endLabels(ends, data.arms, room),
      ],
    });
  }

  // The value of each run in their order, the level between changes, and the changes.
  function history(data, metric, width) {
    const points = metric.points.map(([run, value, low, high, name, bound]) => ({ run, value, low, high, name, bound }));
    if (!points.length) return null;
    const count = points.length;
    const starts = [1, ...metric.changes.map(([at]) => at)];
    const levels = metric.changes.length ? [metric.changes[0][1], ...metric.changes.map((change) => change[2])] : [d3.median(points, (p) => p.value)];
    const steps = levels.map((level, i) => ({ level, from: starts[i] - 0.5, to: (starts[i + 1] || count + 1) - 0.5 }));
    const values = points.flatMap((p) => [p.value, p.low, p.high]);
    const most = Math.max(2, Math.floor(width / 60));
    const arrows = (bound, text, dy) => Plot.text(points.filter((p) => p.bound === bound), {
      x: "run", y: "value", text: () => text, dy, fill: colour(1), fontSize: 11 });
    return Plot.plot({
      width, height: 240, marginLeft: 60, marginRight: 16, marginTop: 26, marginBottom: 42, style: STYLE,
      x: { domain: [0.5, count + 0.5], label: "run, oldest first", ...BELOW, tickSize: 0,
        ticks: d3.range(1, count + 1, Math.max(1, Math.ceil(count / most))), tickFormat: "d" },
      y: { label: metric.unit, zero: fromZero(values), nice: true, ticks: 5, ...domain(values), labelArrow: "none", tickSize: 0 },
      marks: [
        Plot.gridY({ ...grid, ticks: 5 }),
        Plot.ruleX(metric.changes, { x: ([at]) => at - 0.5, stroke: "var(--ink)", strokeDasharray: "4 3" }),
        Plot.ruleY(steps, { y: "level", x1: "from", x2: "to", stroke: colour(1) }),
        Plot.ruleX(points, { x: "run", y1: "low", y2: "high", stroke: colour(1), strokeWidth: 1.5 }),
        Plot.dot(points, { x: "run", y: "value", r: 4, stroke: colour(1), fill: colour(1),
          title: (p) => `${p.name}\n${p.bound ? `${p.bound} ` : ""}${p.value} ${metric.unit} [${p.low}, ${p.high}]`, tip: true }),
        arrows(">=", "▲", -11), arrows("<", "▼", 11),
      ],
    });
  }

  const KINDS = { ends, sweep, loss, history, blocks, series, tail, density, rates, cumulative, cores, parts, load };
  const data = () => JSON.parse(document.getElementById("chart-data").textContent);

  function draw(all, box) {
    const width = Math.floor(box.clientWidth);
    if (width < 50 || Number(box.dataset.width) === width) return;
    box.dataset.width = width;
    const chart = KINDS[box.dataset.chart](all, all.plots[Number(box.dataset.plot)], width);
    if (chart) {
      chart.setAttribute("aria-hidden", "true");
      box.replaceChildren(chart);
    } else {
      box.textContent = "No valid trial has this figure.";
    }
  }

  addEventListener("DOMContentLoaded", () => {
    const all = data();
    const boxes = [...document.querySelectorAll(".plot")];
    const drawAll = () => boxes.forEach((box) => draw(all, box));
    drawAll();
    let waiting = 0;
    addEventListener("resize", () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(drawAll);
    });
    root.dataset.drawn = boxes.filter((box) => box.querySelector("svg")).length;
  });
})();
