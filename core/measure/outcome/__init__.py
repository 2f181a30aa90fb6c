"""What becomes of a measurement of a contender: how it ends, and the row that it leaves."""
