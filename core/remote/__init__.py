"""The address of a store: a folder that pyarrow.fs reaches, read through a cache on this machine."""
