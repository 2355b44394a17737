"""What a node does for its users, one use case per module; services see ports, never adapters."""
