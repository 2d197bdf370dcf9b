//! Drawing of a bed: its VMs side by side, crossed by the subnets, with a NIC where a VM is in a subnet. Client and server of a plan have the
//! same drawing with an arm in place of a subnet.
//!
//! A drawing is as wide as a phone and grows downwards. The table of its figure, or its label, contains everything that the drawing shows.
use maud::{Markup, html};

use crate::document::chart::{BedDrawing, DrawnBand, DrawnNic, VmRow};
use crate::words::plain;

/// Width of the drawing, pixels.
const WIDTH: f64 = 328.0;
/// Padding of a box, pixels.
const PAD: f64 = 6.0;
/// Height of a line of small text, pixels.
const LINE: f64 = 13.0;
/// Mean width of a character of small text, pixels.
const CHAR: f64 = 5.6;

/// A picture under construction, from the top down.
struct Picture {
    y: f64,
    frames: Vec<Markup>,
    texts: Vec<Markup>,
}

/// The drawing.
pub(super) fn drawing(bed: &BedDrawing) -> Markup {
    let mut picture = Picture { y: 18.0, frames: Vec::new(), texts: Vec::new() };
    picture.text(PAD + 1.0, 13.0, "small", &bed.title, WIDTH - 2.0 * PAD);
    for row in &bed.rows {
        picture.row(row);
    }
    let height = picture.y + 1.0;
    html! {
        svg.topology viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height) role="img"
            aria-label=(plain(&bed.label)) {
            rect.node x="1" y="1" width=(WIDTH - 2.0) height=(height - 2.0) rx="3" {}
            @for part in &picture.frames { (part) }
            @for part in &picture.texts { (part) }
        }
    }
}

impl Picture {
    fn text(&mut self, x: f64, y: f64, class: &str, text: &str, width: f64) {
        let chars = ((width / CHAR) as usize).max(1);
        self.texts.push(html! { text class=(class) x=(x) y=(y) { (short(&plain(text), chars)) } });
    }

    fn frame(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.frames.push(html! { rect class=(class) x=(x) y=(y) width=(width) height=(height) rx="3" {} });
    }

    /// VMs side by side and the subnets below one another.
    fn row(&mut self, row: &VmRow) {
        let count = row.vms.len().max(1) as f64;
        let column = (WIDTH - 2.0 - PAD * (count + 1.0)) / count;
        let left = |index: usize| 1.0 + PAD + index as f64 * (column + PAD);
        let top = self.y;
        // The frames of the VMs come first, so that they are below the subnets; their height is known at the end.
        let place = self.frames.len();
        let mut lines: f64 = 0.0;
        for (index, vm) in row.vms.iter().enumerate() {
            self.text(left(index) + PAD, top + 15.0, "name", &vm.name, column - 2.0 * PAD);
            for (number, line) in vm.lines.iter().enumerate() {
                let y = top + 15.0 + LINE * (number + 1) as f64;
                self.text(left(index) + PAD, y, "small", line, column - 2.0 * PAD);
            }
            lines = lines.max(vm.lines.len() as f64);
        }
        self.y = top + 22.0 + LINE * lines;
        for band in &row.bands {
            self.band(band, column, &left);
        }
        let height = self.y - top;
        for index in 0..row.vms.len() {
            let (x, width) = (left(index), column);
            let frame = html! { rect.nic x=(x) y=(top) width=(width) height=(height) rx="3" {} };
            self.frames.insert(place, frame);
        }
        self.y += PAD;
    }

    /// A subnet with the NICs in it.
    fn band(&mut self, band: &DrawnBand, column: f64, left: &dyn Fn(usize) -> f64) {
        let top = self.y;
        let place = self.frames.len();
        self.text(1.0 + 2.0 * PAD, top + 11.0, "small", &band.title, WIDTH - 4.0 * PAD);
        let mut bottom = top + 16.0;
        for (index, nics) in band.nics.iter().enumerate() {
            let mut y = top + 16.0;
            for nic in nics {
                y = self.nic(nic, (left(index) + PAD, y), column - 2.0 * PAD) + 4.0;
            }
            bottom = bottom.max(y);
        }
        let (x, width) = (1.0 + PAD / 2.0, WIDTH - 2.0 - PAD);
        let frame = html! { rect.band x=(x) y=(top) width=(width) height=(bottom - top) rx="3" {} };
        self.frames.insert(place, frame);
        self.y = bottom + PAD;
    }

    /// A NIC; the bottom of its box.
    fn nic(&mut self, nic: &DrawnNic, (x, y): (f64, f64), width: f64) -> f64 {
        let lines = 1 + nic.lines.len() + usize::from(nic.guest.is_some());
        let height = LINE * lines as f64 + 6.0;
        let class = match (nic.is_attached, nic.is_accelerated) {
            (false, _) => "cell withheld",
            (true, true) => "cell serves",
            (true, false) => "cell",
        };
        self.frame(class, (x, y), (width, height));
        self.text(x + 4.0, y + LINE, "number name", &nic.name, width - 8.0);
        for (number, line) in nic.lines.iter().enumerate() {
            self.text(x + 4.0, y + LINE * (number + 2) as f64, "number", line, width - 8.0);
        }
        if let Some((text, agrees)) = &nic.guest {
            let class = if *agrees { "number" } else { "number off" };
            self.text(x + 4.0, y + LINE * lines as f64, class, text, width - 8.0);
        }
        y + height
    }
}

/// A text shortened to its box.
fn short(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    text.chars().take(chars.saturating_sub(1)).chain(['…']).collect()
}
