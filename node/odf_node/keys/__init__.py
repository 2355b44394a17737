"""Who may sign for a dataset: key logs, changes of keys, proofs of two histories by one key, heads and their age."""
