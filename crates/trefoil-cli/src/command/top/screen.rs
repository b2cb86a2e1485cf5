//! The terminal while `trefoil top` has it: a screen of its own, and keys as they are pressed.

use std::io::{self, BufWriter, Read as _, Stdout, Write as _};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::termios::{self, OptionalActions, Termios};

/// Another screen without a cursor, and the one before.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// A terminal that is given back as it was when this is dropped, however that comes about.
#[derive(Debug)]
pub(super) struct Screen {
    out: BufWriter<Stdout>,
    before: Termios,
    has_colour: bool,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn enter(has_colour: bool) -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let mut screen = Self {
            out: BufWriter::new(io::stdout()),
            before,
            has_colour,
        };
        screen.out.write_all(ENTER)?;
        screen.out.flush()?;
        Ok(screen)
    }

    /// Everything that a cell looks like, after nothing.
    fn put_style(&mut self, cell: &Cell) -> io::Result<()> {
        self.out.write_all(b"\x1b[0")?;
        for (modifier, code) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2")] {
            if cell.modifier.contains(modifier) {
                self.out.write_all(code.as_bytes())?;
            }
        }
        let code = match cell.fg {
            Color::Red => ";31",
            Color::Green => ";32",
            Color::Yellow => ";33",
            _ => "",
        };
        if self.has_colour {
            self.out.write_all(code.as_bytes())?;
        }
        self.out.write_all(b"m")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing back.
        let _ = self.out.write_all(LEAVE);
        let _ = self.out.flush();
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

impl Backend for Screen {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut next = None;
        let mut style = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.set_cursor_position((x, y))?;
            }
            if style != Some((cell.fg, cell.modifier)) {
                self.put_style(cell)?;
                style = Some((cell.fg, cell.modifier));
            }
            self.out.write_all(cell.symbol().as_bytes())?;
            next = Some((x + 1, y));
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x1b[?25l")
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x1b[?25h")
    }

    /// Nobody moves the cursor but what is drawn.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        write!(self.out, "\x1b[{};{}H", y + 1, x + 1)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.out.write_all(match region {
            ClearType::All => b"\x1b[2J",
            ClearType::AfterCursor => b"\x1b[J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[K",
        })
    }

    fn size(&self) -> io::Result<Size> {
        let size = termios::tcgetwinsize(io::stdout())?;
        Ok(Size::new(size.ws_col, size.ws_row))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What is typed, byte by byte.
pub(super) fn read_keys() -> Receiver<u8> {
    let (sender, keys) = mpsc::channel();
    thread::spawn(move || {
        for key in io::stdin().lock().bytes().map_while(Result::ok) {
            if sender.send(key).is_err() {
                return;
            }
        }
    });
    keys
}
