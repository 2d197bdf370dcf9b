//! Drawing of a host: NUMA nodes and cores, interfaces with those below them, queues and the cores that serve them.
//!
//! A drawing is as wide as a phone and grows downwards. It is beside the facts on a wide screen, and above them on a phone. The
//! facts contain everything that the drawing shows.
use maud::{Markup, html};

use crate::document::chart::{DrawnGroup, DrawnInterface, HostDrawing};
use crate::words::{plain, ranges};

/// Width of the drawing, pixels.
const WIDTH: f64 = 328.0;
/// Padding of a box, pixels.
const PAD: f64 = 8.0;
/// Gap between cells, pixels.
const GAP: f64 = 2.0;
/// Maximum number of queues drawn per interface; more cannot be distinguished.
const QUEUES_MOST: u32 = 128;
/// Number of characters that fit a line of a box, by font size.
const LINE_CHARS: usize = 48;

/// A rectangle of the drawing.
#[derive(Debug, Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

/// Cells of equal size in rows.
#[derive(Debug, Clone, Copy)]
struct Grid {
    left: f64,
    top: f64,
    columns: usize,
    cell: (f64, f64),
}

impl Grid {
    /// As many columns as fit; many cells use a smaller size.
    fn within(left: f64, top: f64, width: f64, count: usize, tall: bool) -> Self {
        let cell = match (count > 40, tall) {
            (true, _) => (20.0, 15.0),
            (false, true) => (29.0, 27.0),
            (false, false) => (29.0, 19.0),
        };
        let columns = (((width + GAP) / (cell.0 + GAP)) as usize).max(1);
        Self { left, top, columns, cell }
    }

    fn at(&self, index: usize) -> Point {
        let (column, row) = ((index % self.columns) as f64, (index / self.columns) as f64);
        Point { x: self.left + column * (self.cell.0 + GAP), y: self.top + row * (self.cell.1 + GAP) }
    }

    fn height(&self, count: usize) -> f64 {
        count.div_ceil(self.columns) as f64 * (self.cell.1 + GAP) - GAP
    }
}

/// The state of the drawing, from the top down.
struct Drawing<'a> {
    host: &'a HostDrawing,
    /// Top of the next box.
    y: f64,
    /// Layers, the lowest first: frames, lines between queues and cores, cells and text.
    frames: Vec<Markup>,
    lines: Vec<Markup>,
    boxes: Vec<Markup>,
    /// End points of lines to cores, while all cores are in one row.
    core_ends: Vec<(u16, Point)>,
    /// Whether the lines of an interface are already drawn; those of a second one would cross them.
    lined: bool,
}

/// The drawing.
pub(super) fn drawing(host: &HostDrawing) -> Markup {
    let mut drawing = Drawing {
        host,
        y: 1.0,
        frames: Vec::new(),
        boxes: Vec::new(),
        lines: Vec::new(),
        core_ends: Vec::new(),
        lined: false,
    };
    drawing.nodes();
    for group in &host.groups {
        drawing.group(group);
    }
    if host.groups_left > 0 {
        let text = format!("and {} more interfaces", host.groups_left);
        drawing.boxes.push(line(Point { x: 0.0, y: drawing.y + 12.0 }, "small", &text));
        drawing.y += 18.0;
    }
    let height = drawing.y;
    html! {
        svg.topology viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height) role="img"
            aria-label={ "Cores, nodes, interfaces and queues of " (host.name) "; the same stands in the facts in words" } {
            @for part in &drawing.frames { (part) }
            g.wires { @for part in &drawing.lines { (part) } }
            @for part in &drawing.boxes { (part) }
        }
    }
}

fn line(at: Point, class: &str, text: &str) -> Markup {
    html! { text class=(class) x=(at.x) y=(at.y) { (short(&plain(text), LINE_CHARS)) } }
}

/// A text shortened to its box.
fn short(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    text.chars().take(chars.saturating_sub(1)).chain(['…']).collect()
}

fn frame(class: &str, at: Point, size: (f64, f64)) -> Markup {
    html! { rect class=(class) x=(at.x) y=(at.y) width=(size.0) height=(size.1) rx="3" {} }
}

impl Drawing<'_> {
    /// The nodes with their cores: two small ones side by side, otherwise one below the other.
    fn nodes(&mut self) {
        let nodes = &self.host.nodes;
        let all: usize = nodes.iter().map(|(_, cores)| cores.len()).sum();
        let beside = nodes.len() == 2 && nodes.iter().all(|(_, cores)| cores.len() <= 4);
        let one_row = beside || nodes.len() == 1 && all <= 10;
        let width = if beside { (WIDTH - PAD) / 2.0 - 1.0 } else { WIDTH - 2.0 };
        let mut tallest: f64 = 0.0;
        for (index, (title, cores)) in nodes.iter().enumerate() {
            let left = if beside { 1.0 + index as f64 * (width + PAD) } else { 1.0 };
            let height = self.node(Point { x: left, y: self.y }, width, title, (cores, all), one_row);
            if beside {
                tallest = tallest.max(height);
            } else {
                self.y += height + PAD;
            }
        }
        if beside {
            self.y += tallest + PAD;
        }
        if one_row && all > 0 {
            // Room for the lines from queues to cores.
            self.y += 14.0;
        }
    }

    fn node(
        &mut self,
        at: Point,
        width: f64,
        title: &str,
        (cores, all): (&[u16], usize),
        one_row: bool,
    ) -> f64 {
        let grid = Grid::within(at.x + PAD, at.y + 22.0, width - 2.0 * PAD, all, false);
        let height = 22.0 + grid.height(cores.len()) + PAD;
        self.frames.push(frame("node", at, (width, height)));
        self.boxes.push(line(Point { x: at.x + PAD, y: at.y + 15.0 }, "small", title));
        for (index, core) in cores.iter().enumerate() {
            let place = grid.at(index);
            let class = match () {
                () if self.host.withheld.contains(core) => "cell withheld",
                () if self.host.busy.contains(core) => "cell serves",
                () => "cell",
            };
            self.boxes.push(cell(class, place, grid.cell, &core.to_string(), ""));
            if one_row {
                let end = Point { x: place.x + grid.cell.0 / 2.0, y: place.y + grid.cell.1 };
                self.core_ends.push((*core, end));
            }
        }
        height
    }

    /// An interface, with those below it inside its box.
    fn group(&mut self, group: &DrawnGroup) {
        let top = Point { x: 1.0, y: self.y };
        // The frame comes first, so that it is below its content; its height is known at the end.
        let place = self.frames.len();
        self.y += 4.0;
        self.interface(
            &group.top,
            Point { x: top.x + PAD, y: self.y },
            WIDTH - 2.0 - 2.0 * PAD,
            group.acceleration.as_ref(),
        );
        for port in &group.ports {
            let at = Point { x: top.x + PAD, y: self.y };
            let width = WIDTH - 2.0 - 2.0 * PAD;
            let inner = self.frames.len();
            self.y += 3.0;
            self.interface(&port.interface, Point { x: at.x + PAD, y: self.y }, width - 2.0 * PAD, None);
            let class = if port.carries { "port carries" } else { "port" };
            self.frames.insert(inner, frame(class, at, (width, self.y - at.y)));
            self.y += 5.0;
        }
        if group.ports_left > 0 {
            let text = format!("and {} more below it", group.ports_left);
            self.boxes.push(line(Point { x: top.x + PAD, y: self.y + 10.0 }, "small", &text));
            self.y += 16.0;
        }
        self.frames.insert(place, frame("nic", top, (WIDTH - 2.0, self.y - top.y)));
        self.y += PAD;
    }

    fn interface(
        &mut self,
        interface: &DrawnInterface,
        at: Point,
        width: f64,
        state: Option<&(String, bool)>,
    ) {
        // The name has a larger, bold font.
        let room = LINE_CHARS.saturating_sub(interface.name.chars().count() * 4 / 3);
        self.boxes.push(html! {
            text x=(at.x) y=(at.y + 13.0) {
                tspan.name { (plain(&interface.name)) } " " tspan.small { (short(&plain(&interface.about), room)) }
            }
        });
        self.y = at.y + 19.0;
        if !interface.addresses.is_empty() {
            self.boxes.push(line(
                Point { x: at.x, y: self.y + 9.0 },
                "small",
                &interface.addresses.join(", "),
            ));
            self.y += 14.0;
        }
        if let Some((text, is_on)) = state {
            let class = if *is_on { "small on" } else { "small off" };
            self.boxes.push(line(Point { x: at.x, y: self.y + 9.0 }, class, text));
            self.y += 14.0;
        }
        self.queues(interface, at.x, width);
        self.y += 3.0;
    }

    fn queues(&mut self, interface: &DrawnInterface, left: f64, width: f64) {
        let by_core = &interface.queues_by_core;
        if interface.queues == 0 {
            return;
        }
        let shown = interface.queues.min(QUEUES_MOST);
        let wired = self.wires(shown, by_core);
        if wired && !self.lined {
            // The lines from the queues enter between the text and the queues.
            self.y += 6.0;
        }
        let grid = Grid::within(left, self.y + 2.0, width, shown as usize, true);
        let tall = grid.cell.1 > 20.0;
        for queue in 0..shown {
            let cores: Vec<u16> =
                by_core.iter().filter(|(_, queues)| queues.contains(&queue)).map(|(core, _)| *core).collect();
            let place = grid.at(queue as usize);
            let class = if cores.is_empty() { "cell" } else { "cell serves" };
            let beneath = if tall && !cores.is_empty() {
                format!("c{}", ranges(cores.iter().copied()))
            } else {
                String::new()
            };
            self.boxes.push(cell(class, place, grid.cell, &format!("q{queue}"), &beneath));
            for core in cores.iter().filter(|_| wired) {
                let Some((_, end)) = self.core_ends.iter().find(|(own, _)| own == core) else { continue };
                let from = Point { x: place.x + grid.cell.0 / 2.0, y: place.y };
                let middle = f64::midpoint(from.y, end.y);
                let path = format!(
                    "M{} {} C{} {middle} {} {middle} {} {}",
                    from.x, from.y, from.x, end.x, end.x, end.y
                );
                self.lines.push(html! { path d=(path) {} });
            }
        }
        self.lined |= wired;
        self.y += 2.0 + grid.height(shown as usize) + 4.0;
    }

    /// Whether lines from queues to cores are readable: cores and queues each in one row, and no other interface between them.
    fn wires(&self, queues: u32, by_core: &[(u16, Vec<u32>)]) -> bool {
        !self.lined && !self.core_ends.is_empty() && queues <= 9 && !by_core.is_empty()
    }
}

fn cell(class: &str, at: Point, size: (f64, f64), text: &str, beneath: &str) -> Markup {
    let middle = at.x + size.0 / 2.0;
    let line = if beneath.is_empty() { at.y + size.1 / 2.0 + 3.5 } else { at.y + 11.5 };
    html! {
        rect class=(class) x=(at.x) y=(at.y) width=(size.0) height=(size.1) rx="2" {}
        text.number x=(middle) y=(line) text-anchor="middle" { (text) }
        @if !beneath.is_empty() { text.core x=(middle) y=(at.y + 22.5) text-anchor="middle" { (beneath) } }
    }
}
