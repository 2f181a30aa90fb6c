"""One training on several machines: this one beside an accelerator recorded on another, or one question on many."""
