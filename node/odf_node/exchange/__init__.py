"""Datasets between nodes: pull, push, subscriptions, repositories, and the tokens that open other servers."""
