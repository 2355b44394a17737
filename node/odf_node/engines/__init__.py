"""Engine sessions of one run of the node, and the files that engines hand back."""
