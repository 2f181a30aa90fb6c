"""One training on two machines: this one, and an accelerator recorded on another."""
