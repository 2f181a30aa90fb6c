"""Small files that several processes share: read as typed values, written whole or not at all."""
