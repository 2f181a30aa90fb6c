"""What is measured once the blocks are over: parts of a step, busy time, and what was learned."""
