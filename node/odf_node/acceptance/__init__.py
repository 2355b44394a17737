"""Blocks of others: verify, then decode, then judge, then accept. ``acceptor`` is the one gate."""
