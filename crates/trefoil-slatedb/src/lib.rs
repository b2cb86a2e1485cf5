//! Trefoil on object stores, by SlateDB.
