"""The object log: a store of objects that are written once and never changed."""
