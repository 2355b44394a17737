"""Datasets of this node.

Creation, names, reading of chains and rows, questions, growth by our own blocks, deletion.
"""
