"use strict";
// Draws the pictures of the page from the data in it. Reads nothing else, and sends nothing anywhere.
(function () {
  const runs = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const STEPS = 16, DECADES = 3;
  // Cividis: the same order of brightness for people of all kinds of colour vision.
  const CIVIDIS = [[0, 32, 77], [0, 51, 111], [57, 72, 107], [87, 93, 109], [112, 113, 115], [138, 135, 121], [166, 157, 117],
    [196, 181, 108], [228, 207, 91], [255, 234, 70]];
  const redraws = [];

  // ---- data ----------------------------------------------------------------------------------------------------

  function bytes(text) {
    const binary = atob(text), found = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) found[i] = binary.charCodeAt(i);
    return found;
  }

  /** Bytes as numbers: 0 is 0, 255 the largest, each step down a factor of 2^(1/16). */
  function unpack(text, largest) {
    const value = new Float64Array(256);
    for (let step = 1; step < 256; step++) value[step] = largest * Math.pow(2, (step - 255) / STEPS);
    return Float64Array.from(bytes(text), step => value[step]);
  }

  for (const run of runs) {
    run.selected = run.blamed === null ? -1 : run.blamed;
    run.byId = {};
    for (const metric of run.metrics) {
      metric.values = unpack(metric.cells, metric.largest);
      metric.lines = unpack(metric.spread, metric.largest);
      run.byId[metric.id] = metric;
    }
    for (const waits of run.waits) waits.values = unpack(waits.cells, waits.largest);
  }

  const metricIds = [];
  for (const run of runs) for (const metric of run.metrics) if (!metricIds.includes(metric.id)) metricIds.push(metric.id);
  const metricOf = id => runs.map(run => run.byId[id]).find(Boolean);
  /** The largest value of all runs, so that pictures of several runs can be compared. */
  const largestOf = id => Math.max(...runs.map(run => run.byId[id] ? run.byId[id].largest : 0));

  // ---- words ---------------------------------------------------------------------------------------------------

  function scaled(value, step, units) {
    let unit = 0;
    while (Math.abs(value) >= step * 0.9995 && unit + 1 < units.length) { value /= step; unit++; }
    const digits = value === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return value.toFixed(digits) + " " + units[unit];
  }
  const seconds = value => value === 0 ? "0 s" : value < 1e-6 ? scaled(value * 1e9, 1000, ["ns"]) : value < 1e-3 ? scaled(value * 1e6, 1000, ["µs"])
    : value < 1 ? scaled(value * 1e3, 1000, ["ms"]) : value < 120 ? scaled(value, 1000, ["s"]) : (value / 60).toFixed(1) + " min";
  const sized = value => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);

  function worded(kind, value) {
    switch (kind) {
      case "rate": return scaled(value, 1000, ["", "k", "M", "G"]).trim() + "/s";
      case "bandwidth": return sized(value) + "/s";
      case "memory": return sized(value);
      case "share": return (value === 0 ? "0" : value < 0.001 ? "0.1" : value < 0.1 ? (100 * value).toFixed(1) : (100 * value).toFixed(0)) + " %";
      default: {
        const number = value === 0 ? "0" : value < 1e-4 ? value.toExponential(1) : value < 100 ? String(Number(value.toPrecision(2))) : value.toFixed(0);
        return number + (number === "1" ? " peer" : " peers");
      }
    }
  }

  // ---- colours -------------------------------------------------------------------------------------------------

  const style = name => getComputedStyle(root).getPropertyValue(name).trim();
  const isDark = () => getComputedStyle(root).colorScheme === "dark";

  /** From 0 to 1: more stands out more from the page, in light and in dark. */
  function heat(share) {
    const dark = isDark(), at = (dark ? 0.12 + 0.88 * share : 1 - share) * (CIVIDIS.length - 1);
    const below = Math.min(Math.floor(at), CIVIDIS.length - 2), part = at - below;
    // On white, little is pale.
    const weight = dark ? 1 : Math.min(1, 0.3 + 1.4 * share);
    return CIVIDIS[below].map((low, i) => Math.round(255 + weight * (low + part * (CIVIDIS[below + 1][i] - low) - 255)));
  }

  /** 0 and nothing else has the colour of the page. */
  const heatOf = (value, largest) => value <= 0 ? null : heat(Math.max(0, 1 + Math.log10(value / largest) / DECADES));

  // ---- pictures ------------------------------------------------------------------------------------------------

  function element(name, attributes, parent, text) {
    const made = document.createElement(name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  /** A canvas with its caption and the line that says what is at the cursor. */
  function picture(parent, caption, describe) {
    const figure = element("figure", {}, parent), row = element("div", { class: "caption" }, figure);
    const title = element("figcaption", {}, row, caption);
    const said = element("output", { "aria-live": "polite" }, row);
    const scale = element("span", { class: "scale" }, row);
    const canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": describe }, figure);
    return { figure, canvas, said, scale, caption: title };
  }

  function context(canvas, height) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 300;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    pen.textBaseline = "middle";
    return { pen, width, height };
  }

  /** Steps of 1, 2 or 5 that divide a span into some parts. */
  function ticks(from, to, most, base) {
    const rough = (to - from) / Math.max(1, most);
    const unit = base ? Math.pow(base, Math.max(0, Math.floor(Math.log(rough) / Math.log(base)))) : 1;
    const power = unit * Math.pow(10, Math.floor(Math.log10(rough / unit)));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough) || rough;
    const found = [];
    for (let at = Math.ceil(from / step) * step; at <= to * (1 + 1e-9); at += step) found.push(at);
    return found;
  }

  function timeAxis(pen, run, box) {
    pen.fillStyle = style("--muted");
    pen.textAlign = "center";
    for (const at of ticks(run.begin_s, run.end_s, box.width / 90)) {
      const x = box.left + (at - run.begin_s) / (run.end_s - run.begin_s) * box.width;
      pen.fillRect(x, box.top + box.height, 1, 4);
      pen.fillText(seconds(at), Math.min(Math.max(x, box.left + 14), box.left + box.width - 14), box.top + box.height + 12);
    }
  }

  /** Calls `move(column, row)` for the pointer and the arrow keys, `choose(row)` for a click and Enter. */
  function follow(canvas, grid, move, choose) {
    let column = 0, row = 0;
    const at = event => {
      const box = canvas.getBoundingClientRect(), { left, top, width, height, columns, rows } = grid();
      const x = (event.clientX - box.left - left) / width, y = (event.clientY - box.top - top) / height;
      if (x < 0 || x >= 1 || y < 0 || y >= 1) return false;
      column = Math.floor(x * columns); row = Math.floor(y * rows);
      return true;
    };
    canvas.addEventListener("pointermove", event => { if (at(event)) move(column, row); else move(-1, -1); });
    canvas.addEventListener("pointerleave", () => { if (document.activeElement !== canvas) move(-1, -1); });
    canvas.addEventListener("click", event => { if (at(event) && choose) choose(row); });
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) move(column, row); });
    canvas.addEventListener("blur", () => move(-1, -1));
    canvas.addEventListener("keydown", event => {
      const { columns, rows } = grid(), far = event.shiftKey ? 10 : 1;
      const steps = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far], Home: [-columns, 0], End: [columns, 0] };
      if (event.key === "Enter" && choose) choose(row);
      else if (event.key === "Escape" && choose) choose(-1);
      else if (steps[event.key]) {
        column = Math.min(Math.max(column + steps[event.key][0], 0), columns - 1);
        row = Math.min(Math.max(row + steps[event.key][1], 0), rows - 1);
        move(column, row);
      } else return;
      event.preventDefault();
    });
  }

  const timeOf = (run, column) => run.begin_s + (column + 0.5) / run.columns * (run.end_s - run.begin_s);

  /** One metric of a run over time: least, median and most of all processes. */
  function chart(run, metric, parent) {
    const shown = picture(parent, metric.name, metric.name + " over time: least, median and most of all processes");
    shown.figure.title = metric.about;
    const bound = metric.id === "memory" ? run.bound : null;
    const all = Math.max(largestOf(metric.id), ...(metric.id === "memory" ? runs.map(run => 1.12 * (run.bound || 0)) : []));
    let box = null, cursor = -1;
    const line = (pen, of, colour, dashes) => {
      pen.strokeStyle = colour; pen.lineWidth = 1.6; pen.setLineDash(dashes); pen.beginPath();
      for (let column = 0; column < run.columns; column++) {
        const x = box.left + (column + 0.5) / run.columns * box.width, y = box.y(of(column));
        if (column) pen.lineTo(x, y); else pen.moveTo(x, y);
      }
      pen.stroke(); pen.setLineDash([]);
    };
    const draw = () => {
      const { pen, width, height } = context(shown.canvas, 130);
      box = { left: 62, top: 8, width: width - 70, height: height - 30 };
      box.y = value => box.top + box.height * (1 - value / all);
      pen.fillStyle = style("--muted"); pen.textAlign = "right";
      for (const at of ticks(0, all, 3, metric.kind === "memory" || metric.kind === "bandwidth" ? 1024 : 0)) {
        pen.fillStyle = style("--rule"); pen.fillRect(box.left, Math.round(box.y(at)), box.width, 1);
        pen.fillStyle = style("--muted"); pen.fillText(worded(metric.kind, at).replace(/ peers?$/, ""), box.left - 6, box.y(at));
      }
      const [least, median, most] = [0, 1, 2].map(i => column => metric.lines[i * run.columns + column]);
      pen.fillStyle = style("--band"); pen.beginPath();
      for (let column = 0; column < run.columns; column++) pen.lineTo(box.left + (column + 0.5) / run.columns * box.width, box.y(most(column)));
      for (let column = run.columns - 1; column >= 0; column--) pen.lineTo(box.left + (column + 0.5) / run.columns * box.width, box.y(least(column)));
      pen.fill();
      line(pen, median, style("--blue"), []);
      if (bound) {
        const y = Math.round(box.y(bound));
        pen.fillStyle = style("--ink"); pen.fillRect(box.left, y, box.width, 2);
        pen.textAlign = "right"; pen.fillText("bound " + sized(bound), box.left + box.width, y + 10);
      }
      if (run.selected >= 0) line(pen, column => metric.values[run.selected * run.columns + column], style("--orange"), [6, 3]);
      timeAxis(pen, run, box);
      if (cursor >= 0) {
        pen.fillStyle = style("--ink");
        pen.fillRect(Math.round(box.left + (cursor + 0.5) / run.columns * box.width), box.top, 1, box.height);
      }
    };
    run.cursors.push(column => {
      cursor = column;
      draw();
      if (column < 0) { shown.said.textContent = ""; return; }
      const at = i => worded(metric.kind, metric.lines[i * run.columns + column]);
      const chosen = run.selected < 0 ? "" : "; " + run.rows[run.selected] + ": " + worded(metric.kind, metric.values[run.selected * run.columns + column]);
      shown.said.textContent = seconds(timeOf(run, column)) + ": " + at(0) + ", " + at(1) + ", " + at(2) + chosen;
    });
    follow(shown.canvas, () => ({ ...box, columns: run.columns, rows: 1 }), column => run.cursors.forEach(move => move(column)));
    redraws.push(draw);
  }

  /** Names beside rows, as many as have room. */
  function rowNames(pen, names, box, rowHeight, chosen) {
    pen.textAlign = "right";
    const every = Math.ceil(13 / rowHeight);
    for (let row = 0; row < names.length; row++) {
      // The chosen row keeps its name, and those too near to it give theirs up.
      if (row !== chosen && (row % every || chosen >= 0 && Math.abs(row - chosen) < every)) continue;
      pen.fillStyle = style(row === chosen ? "--orange" : "--muted");
      pen.fillText(names[row].length > 18 ? names[row].slice(0, 17) + "…" : names[row], box.left - 6, box.top + (row + 0.5) * rowHeight);
    }
  }

  /** Cells of colour. */
  function cells(pen, box, columns, rows, value, largest) {
    const sheet = document.createElement("canvas");
    sheet.width = columns; sheet.height = rows;
    const inner = sheet.getContext("2d"), image = inner.createImageData(columns, rows), memo = new Map();
    for (let i = 0; i < columns * rows; i++) {
      const found = value(i);
      if (!memo.has(found)) memo.set(found, heatOf(found, largest));
      const colour = memo.get(found);
      if (colour) image.data.set([colour[0], colour[1], colour[2], 255], 4 * i);
    }
    inner.putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(sheet, box.left, box.top, box.width, box.height);
    pen.strokeStyle = style("--rule");
    pen.strokeRect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height + 1);
  }

  /** What colours mean, beside the caption of a picture. */
  function legend(place, largest, words) {
    if (!place.firstChild) {
      element("span", {}, place); element("i", {}, place); element("span", {}, place);
    }
    const [low, bar, high] = place.children, stops = [];
    for (let at = 0; at <= 20; at++) stops.push("rgb(" + heat(at / 20).join(",") + ")");
    bar.style.background = "linear-gradient(to right, " + stops.join(", ") + ")";
    low.textContent = words(largest / Math.pow(10, DECADES)) + " or less";
    high.textContent = words(largest);
  }

  /** All rows of a run over time, in colour. */
  function strip(run, parent, chosen) {
    const shown = picture(parent, "", "one metric of every row over time, as colours");
    let box = null, cursor = [-1, -1];
    const draw = () => {
      const metric = run.byId[chosen()], rows = run.rows.length;
      const rowHeight = Math.max(4, Math.min(18, 420 / rows));
      const { pen, width, height } = context(shown.canvas, rows * rowHeight + 26);
      box = { left: 112, top: 6, width: width - 120, height: rows * rowHeight };
      const largest = largestOf(chosen());
      shown.caption.textContent = metric ? metric.name + (metric.most ? "" : run.sizes.some(size => size > 1) ? ", mean of the processes of a row" : "") : "nothing of that in this run";
      rowNames(pen, run.rows, box, rowHeight, run.selected);
      cells(pen, box, run.columns, rows, i => metric ? metric.values[i] : 0, largest);
      timeAxis(pen, run, box);
      if (metric) legend(shown.scale, largest, value => worded(metric.kind, value));
      shown.scale.hidden = !metric;
      const frame = (row, colour) => { pen.strokeStyle = colour; pen.lineWidth = 2; pen.strokeRect(box.left, box.top + row * rowHeight, box.width, rowHeight); pen.lineWidth = 1; };
      if (run.selected >= 0) frame(run.selected, style("--orange"));
      if (cursor[0] >= 0) {
        pen.fillStyle = style("--orange");
        pen.fillRect(box.left + (cursor[0] + 0.5) / run.columns * box.width, box.top, 1, box.height);
        if (cursor[1] >= 0) pen.strokeStyle = style("--orange"), pen.strokeRect(box.left + 0.5, box.top + cursor[1] * rowHeight + 0.5, box.width - 1, rowHeight - 1);
      }
    };
    const say = () => {
      const metric = run.byId[chosen()], [column, row] = cursor;
      shown.said.textContent = column < 0 || row < 0 || !metric ? "" : run.rows[row] + " at " + seconds(timeOf(run, column)) + ": " + worded(metric.kind, metric.values[row * run.columns + column]);
    };
    run.cursors.push(column => { if (cursor[0] !== column) { cursor = [column, column < 0 ? -1 : cursor[1]]; draw(); say(); } });
    follow(shown.canvas, () => ({ ...box, columns: run.columns, rows: run.rows.length }),
      (column, row) => { cursor = [column, row]; draw(); say(); run.cursors.forEach(move => move(column)); },
      row => { run.selected = run.selected === row ? -1 : row; redrawAll(); });
    redraws.push(draw);
  }

  /** Who waited for whom. */
  function matrix(run, parent, chosen) {
    const shown = picture(parent, "", "matrix: how long each row waited for each column");
    let box = null, cursor = [-1, -1];
    const waits = () => run.waits.find(waits => waits.cause === chosen());
    const draw = () => {
      const found = waits(), rows = run.rows.length, room = (shown.canvas.clientWidth || 300) - 130;
      const side = Math.max(rows * 2, Math.min(room, 560, rows * 36)), cell = side / rows;
      const { pen } = context(shown.canvas, side + 24);
      box = { left: 112, top: 6, width: side, height: side };
      const largest = Math.max(...runs.map(run => Math.max(0, ...run.waits.filter(waits => waits.cause === chosen()).map(waits => waits.largest))));
      shown.caption.textContent = !found ? "no such waits in this run" : found.unknown_s > 0 ? seconds(found.unknown_s) + " more were waited for processes of which no rows were kept" : "";
      rowNames(pen, run.rows, box, cell, run.selected);
      cells(pen, box, rows, rows, i => found ? found.values[i] : 0, largest);
      pen.fillStyle = style("--muted"); pen.textAlign = "center";
      const every = Math.ceil(24 / cell);
      for (let column = 0; column < rows; column++) {
        const chosen = run.selected;
        if (column !== chosen && (column % every || chosen >= 0 && Math.abs(column - chosen) < every)) continue;
        pen.fillStyle = style(column === chosen ? "--orange" : "--muted");
        pen.fillText(run.rows[column].replace(/^ranks? /, ""), box.left + (column + 0.5) * cell, box.top + box.height + 10);
      }
      if (run.selected >= 0) {
        pen.strokeStyle = style("--orange"); pen.lineWidth = 2;
        pen.strokeRect(box.left + run.selected * cell, box.top, cell, box.height);
      }
      if (found) legend(shown.scale, largest, seconds);
      shown.scale.hidden = !found;
      if (cursor[0] >= 0) {
        pen.strokeStyle = style("--orange"); pen.lineWidth = 2;
        pen.strokeRect(box.left + cursor[0] * cell, box.top + cursor[1] * cell, cell, cell);
      }
    };
    const move = (column, row) => {
      const found = waits();
      cursor = [column, row];
      draw();
      shown.said.textContent = column < 0 || !found ? "" : run.rows[row] + " waited " + seconds(found.values[row * run.rows.length + column]) + " for " + run.rows[column] + (chosen() === "anything" ? "" : " (" + chosen() + ")");
    };
    follow(shown.canvas, () => ({ ...box, columns: run.rows.length, rows: run.rows.length }), move);
    redraws.push(draw);
  }

  function redrawAll() { redraws.forEach(draw => draw()); }

  // ---- the page ------------------------------------------------------------------------------------------------

  root.classList.add("js");
  if (document.getElementById("metric")) pictures();

  function pictures() {
    const select = document.getElementById("metric"), about = document.getElementById("about"), cause = document.getElementById("cause");
    for (const id of metricIds) element("option", { value: id }, select, metricOf(id).name);
    const first = runs.map(run => run.first).concat("waiting").find(id => metricIds.includes(id));
    select.value = first || metricIds[0];
    const tell = () => { about.textContent = (metricOf(select.value) || { about: "" }).about; };
    select.addEventListener("change", () => { tell(); redrawAll(); });
    tell();
    const causes = [];
    for (const run of runs) for (const waits of run.waits) if (!causes.includes(waits.cause)) causes.push(waits.cause);
    for (const name of causes) element("option", { value: name }, cause, name);
    if (!causes.length) cause.closest("p").style.display = "none";
    cause.addEventListener("change", redrawAll);

    // Four pictures: that which shows what there is to say, and receive memory with its bound, are among them.
    const wanted = [first, "messages", "memory", "messages-awaited", "waiting"].concat(metricIds);
    const picked = wanted.filter((id, at) => metricIds.includes(id) && wanted.indexOf(id) === at).slice(0, 4);
    const charted = metricIds.filter(id => picked.includes(id));
    const places = name => document.querySelectorAll("." + name);
    runs.forEach((run, index) => {
      run.cursors = [];
      for (const id of charted) {
        if (run.byId[id]) chart(run, run.byId[id], places("charts")[index]);
      }
      // A run that opened no endpoint has no rows.
      if (run.rows.length) strip(run, places("strips")[index], () => select.value);
    });
    runs.filter(run => run.waits.length).forEach((run, index) => matrix(run, places("matrix")[index], () => cause.value));
  }

  // The reader's own time, in the order of ISO 8601, with its offset: no country reads that otherwise.
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime), offset = -moment.getTimezoneOffset(), two = number => String(Math.abs(number)).padStart(2, "0");
    const shifted = new Date(moment.getTime() + offset * 60000).toISOString();
    const zone = offset === 0 ? "UTC" : "UTC" + (offset < 0 ? "\u2212" : "+") + two(Math.trunc(offset / 60)) + ":" + two(offset % 60);
    time.textContent = shifted.slice(0, 10) + " " + shifted.slice(11, 19) + " " + zone;
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", () => {
      const code = button.parentNode.querySelector("code"), range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      const tell = done => { button.textContent = done ? "Copied" : "Press Ctrl+C"; setTimeout(() => { button.textContent = "Copy"; }, 2000); };
      // A file that was opened from a disk has no clipboard in some browsers: the older way works there.
      const older = () => { try { tell(document.execCommand("copy")); } catch (error) { tell(false); } };
      if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(() => tell(true), older); else older();
    });
  }

  const button = document.getElementById("theme"), themes = ["system", "light", "dark"];
  const choose = theme => {
    if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = "colours: " + theme;
    redrawAll();
  };
  button.addEventListener("click", () => choose(themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  let width = 0;
  new ResizeObserver(() => { if (root.clientWidth !== width) { width = root.clientWidth; redrawAll(); } }).observe(root);
  // On paper everything is light and open.
  let before = [];
  addEventListener("beforeprint", () => {
    before = [root.dataset.theme, [...document.querySelectorAll("details:not([open])")]];
    root.dataset.theme = "light";
    before[1].forEach(part => { part.open = true; });
    redrawAll();
  });
  addEventListener("afterprint", () => {
    if (before[0]) root.dataset.theme = before[0]; else delete root.dataset.theme;
    (before[1] || []).forEach(part => { part.open = false; });
    redrawAll();
  });
  redrawAll();
})();
