"""The program that asks an FTP server: run as a process of its own, of bounded memory.

A server may answer with lines without end, and the library keeps each answer whole. ``sources.ftp`` starts it; see
``sources.reader_process``. It imports nothing else of the node.

Source: clause ING-32 in ``spec/ingest.md``.
"""
