"""Rows of files that others wrote: read, checked against their block, hashed, compared and written anew.

All of it runs in a sandbox: ``program`` is what is started there, and opens files; ``host.reader_process`` starts and
asks it, and opens none. Nothing outside of a sandbox decodes Parquet that another could have chosen (SANDBOX-17).
"""
