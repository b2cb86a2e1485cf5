//! Objects that are written field by field.

use super::write::{put_number, put_string};

/// An object that is being written.
pub(crate) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> ObjectWriter<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            is_first: true,
        }
    }

    /// Begins a field, and returns where its value goes.
    pub(crate) fn field(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        put_string(self.out, name);
        self.out.push(b':');
        self.out
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        put_string(self.field(name), text);
    }

    pub(crate) fn number(&mut self, name: &str, number: impl itoa::Integer) {
        put_number(self.field(name), number);
    }

    /// A text, or `null`.
    pub(crate) fn text_or_null(&mut self, name: &str, text: Option<&str>) {
        match text {
            Some(text) => self.text(name, text),
            None => self.json(name, "null"),
        }
    }

    /// What is JSON already.
    pub(crate) fn json(&mut self, name: &str, json: &str) {
        self.field(name).extend_from_slice(json.as_bytes());
    }

    pub(crate) fn flag(&mut self, name: &str, flag: bool) {
        self.json(name, if flag { "true" } else { "false" });
    }

    /// A number, or `null`.
    pub(crate) fn number_or_null(&mut self, name: &str, number: Option<impl itoa::Integer>) {
        match number {
            Some(number) => self.number(name, number),
            None => self.json(name, "null"),
        }
    }

    /// A number, if there is one.
    pub(crate) fn known_number(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.number(name, number);
        }
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Appends an array of what `put` writes of each element.
pub(crate) fn put_array<T>(
    out: &mut Vec<u8>,
    elements: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, element) in elements.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put(out, element);
    }
    out.push(b']');
}
