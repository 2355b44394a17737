"""The command line: parses words, calls one service, shows what came of it. It decides nothing."""
