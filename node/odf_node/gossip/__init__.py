"""What nodes tell each other without being asked: heads, proofs, attestations, peers."""
