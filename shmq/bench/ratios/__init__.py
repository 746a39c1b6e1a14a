"""The cost of a use of a queue beside the comfortable case, by the table ratios.toml."""
