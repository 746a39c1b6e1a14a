"""What a use of a queue costs beside the comfortable case, by the table ratios.toml."""
