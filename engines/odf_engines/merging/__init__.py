"""Merges of new rows with what is there, whoever puts them into an order."""
