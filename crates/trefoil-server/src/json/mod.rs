//! JSON as the server reads and writes it: arguments are looked at where they stand, answers are
//! written into one buffer.

mod object;
mod read;
mod write;

pub(crate) use object::{ObjectWriter, put_array};
pub(crate) use read::{
    Misfit, RpcCall, elements, fields, is_object, is_shallow, number, only_fields, present, text,
};
pub(crate) use write::{put_display, put_id, put_number, put_on_one_line, put_string, put_time};
